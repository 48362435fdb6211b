// The page's controller: connects the buttons to a Session, and shows the Session's events.
// @ts-check
import { SPEECH_RATE, Session, createToken, decodeSpeech, getIceServers } from './client.js';
import { openMicrophone } from './audio.js';
import { FacePicker } from './face-picker.js';
import { SessionStatsPanel } from './session-stats.js';
import { keepFocus } from './focus.js';
import { MouthMotionMeter } from './mouth-motion.js';
import { LoudnessMeter, Sparkline, StatsReader } from './meters.js';
import { endMessage, errorMessage } from './messages.js';
import { startTalkPanel } from './talk-panel.js';
import { startUsagePanel } from './usage-panel.js';
import { startVideoPanel } from './video-panel.js';
import { startIntegratePanel } from './integrate-panel.js';
import { startTheme } from './theme.js';

/**
 * @template {HTMLElement} T
 * @param {string} id @param {new () => T} type The class of the element.
 * @throws {Error} when the page has no such element
 */
function byId(id, type) {
  const element = document.getElementById(id);
  if (element instanceof type) {
    return element;
  }
  throw new Error(`the page has no ${type.name} #${id}`);
}
const part = (/** @type {string} */ id) => byId(id, HTMLElement);
const button = (/** @type {string} */ id) => byId(id, HTMLButtonElement);
const field = (/** @type {string} */ id) => byId(id, HTMLInputElement);

const SENTENCES = [
  { file: 'samples/hello.mp3', text: 'Hello! I am a picture that learned to speak.' },
  { file: 'samples/lips.mp3', text: 'My lips should meet on purple, on baby, and on maybe.' },
  { file: 'samples/vowels.mp3', text: 'Five wise owls flew south over the valley.' },
];
const PLAY_ICON =
  '<svg viewBox="0 0 24 24" aria-hidden="true"><path class="fill" d="M8 5.5v13l11-6.5z"/></svg>';

const video = byId('video', HTMLVideoElement);
const poster = byId('poster', HTMLImageElement);
const loudness = new LoudnessMeter();
const sparkline = new Sparkline(byId('spark', HTMLCanvasElement));
const lips = new MouthMotionMeter(video, (motion) => {
  if (session) {
    sparkline.push(loudness.read(), motion);
  }
});
const statsPanel = new SessionStatsPanel(
  {
    total: part('stats-total'),
    bar: part('stats-bar'),
    legend: part('stats-legend'),
    canvas: byId('stats-chart', HTMLCanvasElement),
    facts: part('stats-facts'),
    why: part('stats-message'),
    body: part('stats-body'),
  },
  showLipLatency,
);
const picker = new FacePicker({
  list: part('faces'),
  status: part('face-status'),
  input: field('portrait'),
  own: part('own-face'),
  dialog: byId('portrait-dialog', HTMLDialogElement),
  change: part('change-picture'),
  onChange: showChoice,
});

let apiKey = '';
/** @type {Session | null} */
let session = null;
/** @type {MediaStream | null} */
let microphone = null;
/** @type {ReturnType<typeof setInterval> | undefined} */
let statsTimer;
let connectedAtMs = 0;
/** The face of the session. @type {import('./face-picker.js').Face | null} */
let shown = null;

// The API key: from the address that the server printed at start (#key=…), else from the session
// storage of this tab, else entered in the form.

function readKey() {
  const inAddress = new URLSearchParams(location.hash.slice(1)).get('key');
  if (inAddress) {
    sessionStorage.setItem('api-key', inAddress);
    // Keep the key out of the browser history and of screenshots.
    history.replaceState(null, '', location.pathname + location.search);
  }
  return inAddress ?? sessionStorage.getItem('api-key') ?? '';
}

function askForKey() {
  // Without a key nothing else works.
  if (!picker.chosen) {
    document.body.dataset['locked'] = '';
  }
  part('key-form').hidden = false;
  button('key-cancel').hidden = !picker.chosen;
  button('key-change').hidden = true;
  field('key').focus();
  field('key').select();
}

/** @param {HTMLElement} next Gets the focus. */
function hideKeyForm(next) {
  button('key-change').hidden = false;
  keepFocus(
    () => {
      part('key-form').hidden = true;
    },
    next,
    part('player'),
  );
  field('key').value = '';
}

async function signIn() {
  apiKey = readKey();
  if (!apiKey) {
    askForKey();
    return;
  }
  try {
    await picker.load(apiKey);
    delete document.body.dataset['locked'];
    hideKeyForm(button('connect'));
  } catch (error) {
    showError(error);
  }
}

part('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('api-key', field('key').value.trim());
  field('key').ariaInvalid = null;
  hideError();
  void signIn();
});
button('key-change').addEventListener('click', askForKey);
button('key-cancel').addEventListener('click', () => hideKeyForm(button('key-change')));
addEventListener('hashchange', () => {
  if (location.hash.includes('key=')) {
    void signIn();
  }
});

// The session.

/** @param {MediaStreamTrack} [track] A microphone track to send as Opus. */
async function connect(track) {
  const face = picker.chosen;
  if (!face || session) {
    return;
  }
  hideError();
  showState('connecting', 'Connecting…');
  connectedAtMs = performance.now();
  try {
    const [sessionToken, iceServers] = await Promise.all([
      createToken({
        apiKey,
        faceId: `${face.id}/${chosen('emotion')}`,
        handleSilence: field('handle-silence').checked,
      }),
      getIceServers({ apiKey }).catch(() => []),
    ]);
    const codec = chosen('codec');
    shown = face;
    session = new Session({
      sessionToken,
      iceServers,
      ...(codec && { codec: /** @type {'vp8' | 'h264'} */ (codec) }),
      ...(track && { microphone: track }),
    });
    showEventsOf(session);
    await session.started();
  } catch (error) {
    // An existing session reports its end itself.
    if (!session) {
      showState('none', 'Not connected');
    }
    if (/** @type {{ code?: string }} */ (error).code !== 'CLOSED') {
      showError(error);
    }
  }
}

/** @param {Session} session */
function showEventsOf(session) {
  video.srcObject = session.stream;
  session.on('started', () => {
    showState('idle', 'Listening');
    void play();
    loudness.attach(session.stream);
    lips.reset();
    if (session.id) {
      statsPanel.start(session.id, apiKey);
    }
    const reader = new StatsReader();
    clearInterval(statsTimer);
    statsTimer = setInterval(() => {
      void reader.read(session.peer).then(showReading);
      session.ping();
    }, 500);
  });
  session.on('reconnecting', () => {
    clearInterval(statsTimer);
    statsPanel.stop();
    showState('connecting', 'The connection was lost. Connecting again…');
  });
  session.on('speaking', () => showState('speaking', 'Speaking'));
  session.on('silent', () => {
    showState('idle', 'Listening');
  });
  session.on('rate', () => say('Too much audio at once: the server limited the rate.'));
  session.on('rejected', ({ message }) => say(message, true));
  session.on('closing', () => say('The server is about to close this session.'));
  session.on('end', ({ reason, error }) => {
    changeView(leave);
    say('');
    showState('none', endMessage(reason));
    void loadUsage();
    if (error) {
      showError(error);
    }
  });
}

/** Resets the page after the end of a session. */
function leave() {
  clearInterval(statsTimer);
  statsPanel.stop();
  stopMicrophone();
  loudness.detach();
  session = null;
  video.srcObject = null;
  button('unmute').hidden = true;
  part('latency-badge').hidden = true;
}

/**
 * Plays with sound if the browser allows it; otherwise muted, with a button to turn the sound on.
 */
async function play() {
  video.muted = false;
  try {
    await video.play();
  } catch {
    video.muted = true;
    await video.play().catch(() => {});
    button('unmute').hidden = false;
  }
  showSound();
}

button('connect').addEventListener('click', () => void connect());
button('disconnect').addEventListener('click', () => session?.close());
button('interrupt').addEventListener('click', interrupt);
button('finish').addEventListener('click', () => {
  void session?.finish();
  say('Disconnecting after the last word.');
});
button('sound').addEventListener('click', () => {
  video.muted = !video.muted;
  showSound();
});
button('unmute').addEventListener('click', () => {
  video.muted = false;
  loudness.resume();
  keepFocus(() => {
    button('unmute').hidden = true;
  }, button('sound'));
  showSound();
});
addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !document.querySelector('dialog[open]')) {
    interrupt();
  }
});
addEventListener('pagehide', () => session?.close());

function interrupt() {
  session?.interrupt();
  say('');
}

// Speech.

/** @param {Int16Array<ArrayBuffer>} pcm */
function speak(pcm) {
  if (!session) {
    return;
  }
  void session.speak(pcm, { interrupt: field('replace').checked });
  say(`${(pcm.length / SPEECH_RATE).toFixed(1)} s of speech sent.`);
}

/**
 * Sends an audio file as speech; connects first when there is no session.
 * @param {ArrayBuffer | Promise<ArrayBuffer>} file
 */
async function speakFile(file) {
  try {
    const [pcm] = await Promise.all([
      Promise.resolve(file).then(decodeSpeech),
      session ? session.started() : connect(),
    ]);
    if (session) {
      speak(pcm);
    }
  } catch (error) {
    say(errorMessage(error), true);
  }
}

/** @param {string} address */
const fetchFile = async (address) => (await fetch(new URL(address, import.meta.url))).arrayBuffer();

for (const { file, text } of SENTENCES) {
  const item = document.createElement('button');
  item.type = 'button';
  item.className = 'sentence';
  item.innerHTML = PLAY_ICON;
  item.append(text);
  item.addEventListener('click', () => void speakFile(fetchFile(file)));
  part('sentences').append(item);
}

button('pick').addEventListener('click', () => field('file').click());
field('file').addEventListener('change', () => {
  const file = field('file').files?.[0];
  field('file').value = '';
  if (file) {
    void speakFile(file.arrayBuffer());
  }
});

let dragDepth = 0; // dragenter and dragleave fire for every element that is crossed
addEventListener('dragenter', () => {
  dragDepth++;
  document.body.classList.add('dragging');
});
addEventListener('dragleave', () => {
  dragDepth--;
  if (dragDepth <= 0) {
    document.body.classList.remove('dragging');
  }
});
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', (event) => {
  event.preventDefault();
  dragDepth = 0;
  document.body.classList.remove('dragging');
  const file = event.dataTransfer?.files[0];
  if (!file) {
    return;
  }
  if (file.type.startsWith('image/')) {
    void picker.offer(file);
  } else {
    void speakFile(file.arrayBuffer());
  }
});

button('microphone').addEventListener(
  'click',
  () => void (microphone ? stopMicrophone() : startMicrophone()),
);

async function startMicrophone() {
  try {
    microphone = await openMicrophone();
    const track = microphone.getAudioTracks()[0];
    if (chosen('mic') === 'opus' && track) {
      // The track must be part of the offer, so open a new connection.
      const kept = microphone;
      microphone = null;
      session?.close();
      await connect(track);
      if (!session) {
        stopTracks(kept);
        return;
      }
      microphone = kept;
    } else {
      if (!session) {
        await connect();
      }
      await session?.started();
      if (!session || !microphone) {
        stopMicrophone();
        return;
      }
    }
    if (chosen('mic') !== 'opus') {
      session.speak(microphone).catch(showError);
    }
    // Mute the face: one's own words with a delay make it hard to speak, and loudspeakers cause
    // echo.
    video.muted = true;
    showSound();
    button('microphone').dataset['on'] = 'true';
    button('microphone').querySelector('span')?.replaceChildren('Stop microphone');
    say(
      'The face repeats your words. The sound is off to prevent echo; with headphones you can turn it on.',
    );
  } catch (error) {
    stopMicrophone();
    say(errorMessage(error), true);
  }
}

/** @param {MediaStream} stream */
function stopTracks(stream) {
  for (const track of stream.getTracks()) {
    track.stop();
  }
}

function stopMicrophone() {
  if (!microphone) {
    return;
  }
  stopTracks(microphone);
  microphone = null;
  video.muted = false;
  showSound();
  button('microphone').dataset['on'] = 'false';
  button('microphone').querySelector('span')?.replaceChildren('Microphone');
  say('');
}

// A video file.

startVideoPanel(
  {
    sample: button('render-sample'),
    pick: button('render-pick'),
    input: field('render-file'),
    status: part('render-status'),
    progress: byId('render-progress', HTMLProgressElement),
    video: byId('render-video', HTMLVideoElement),
    link: part('render-link'),
  },
  {
    fetchSample: () => fetchFile('samples/hello.mp3'),
    order: () => (picker.chosen ? { apiKey, faceId: picker.chosen.id } : undefined),
  },
);

startTalkPanel(
  { start: button('talk-start'), status: part('talk-status'), link: part('talk-link') },
  () => (picker.chosen ? { apiKey, faceId: picker.chosen.id } : undefined),
);

const loadUsage = startUsagePanel(byId('usage', HTMLDetailsElement), () => apiKey);

const writeSnippets = startIntegratePanel(part('integrate'), () =>
  picker.chosen
    ? {
        baseUrl: location.origin,
        faceId: picker.chosen.id,
        emotion: chosen('emotion'),
        size: picker.chosen.size,
        background: picker.chosen.background,
      }
    : undefined,
);

// The view.

/**
 * Changes the page and keeps the keyboard focus usable: while the Connect button is hidden, the
 * focus goes to the player.
 * @param {() => void} change
 */
function changeView(change) {
  keepFocus(change, button('connect'), part('player'));
  if (document.activeElement === part('player')) {
    button('connect').focus(); // has no effect while the button is hidden
  }
}

/** @param {'none' | 'connecting' | 'idle' | 'speaking'} state @param {string} text */
function showState(state, text) {
  changeView(() => {
    part('player').dataset['state'] = state;
    part('state').textContent = text;
    const isLive = state === 'idle' || state === 'speaking';
    for (const id of ['interrupt', 'finish', 'sound']) {
      button(id).disabled = !isLive;
    }
    button('disconnect').disabled = state === 'none';
    button('connect').hidden = state !== 'none';
    showChoice();
  });
}

function showChoice() {
  const face = picker.chosen;
  button('connect').disabled = !face;
  const [width = 1, height = 1] = (face?.size ?? '1x1').split('x').map(Number);
  part('player').dataset['shape'] = width === height ? 'square' : width < height ? 'tall' : 'wide';
  writeSnippets();
  const isLive = session?.state === 'idle' || session?.state === 'speaking';
  if (session && isLive && face && shown && face.id !== shown.id) {
    showFace(session, face, shown);
  }
  poster.hidden = picker.poster === '' || isLive;
  if (picker.poster !== '' && poster.src !== picker.poster) {
    poster.src = picker.poster;
  }
}

/**
 * The session goes on with another face; it begins anew, where the size of the pictures is another.
 * @param {Session} live @param {import('./face-picker.js').Face} face
 * @param {import('./face-picker.js').Face} before
 */
function showFace(live, face, before) {
  shown = face;
  if (face.size === before.size) {
    live.command({ type: 'face', faceId: face.id });
  } else {
    live.close();
    void connect();
  }
}

for (const input of document.querySelectorAll('input[name=emotion]')) {
  input.addEventListener('change', () => {
    writeSnippets();
    if (session?.id) {
      const emotion = /** @type {'neutral'} */ (chosen('emotion'));
      session.command({ type: 'emotion', emotion });
    }
  });
}

function showSound() {
  const isOn = !video.muted;
  button('sound')
    .querySelector('span')
    ?.replaceChildren(isOn ? 'Sound on' : 'Sound off');
}

/** @param {number} latencyMs Measured in the server. */
function showLipLatency(latencyMs) {
  part('m-lips').textContent = `${Math.round(latencyMs)} ms`;
  part('latency-badge').textContent = `${Math.round(latencyMs)} ms to lips`;
  part('latency-badge').title =
    'In the server: from the arrival of the speech to the sending of its first video frame';
  part('latency-badge').hidden = false;
}

/** @param {import('./meters.js').Reading} reading */
function showReading(reading) {
  if (!session) {
    return;
  }
  part('m-fps').textContent = reading.fps === null ? '–' : `${reading.fps.toFixed(0)} /s`;
  part('m-rtt').textContent =
    reading.roundTripMs === null
      ? '–'
      : `${reading.roundTripMs.toFixed(reading.roundTripMs < 10 ? 1 : 0)} ms`;
  part('m-rate').textContent = reading.kbps === null ? '–' : `${reading.kbps.toFixed(0)} kbit/s`;
  part('m-skew').textContent =
    reading.skewMs === null
      ? '–'
      : `${reading.skewMs > 0 ? '+' : ''}${reading.skewMs.toFixed(0)} ms`;
  part('m-picture').textContent = reading.picture;
  part('m-loss').textContent = `${reading.lost} · ${reading.freezes}`;
}

video.addEventListener('loadeddata', () => {
  if (session) {
    part('m-start').textContent = `${Math.round(performance.now() - connectedAtMs)} ms`;
  }
});

/** @param {string} text */
function say(text, isBad = false) {
  part('speak-status').textContent = text;
  part('speak-status').classList.toggle('bad', isBad);
}

/** A rejected API key opens the form for another one. @param {unknown} error */
function showError(error) {
  // Show it first: screen readers announce an alert when its text changes while it is visible.
  part('error').hidden = false;
  part('error-text').textContent = errorMessage(error);
  if (/** @type {{ code?: string } | null} */ (error)?.code !== 'INVALID_API_KEY') {
    return;
  }
  sessionStorage.removeItem('api-key');
  askForKey();
  field('key').ariaInvalid = 'true';
}
function hideError() {
  changeView(() => {
    part('error').hidden = true;
  });
  part('error-text').textContent = '';
}
button('error-close').addEventListener('click', hideError);

/** @param {string} name */
function chosen(name) {
  const input = document.querySelector(`input[name="${name}"]:checked`);
  return input instanceof HTMLInputElement ? input.value : '';
}

startTheme(button('theme'));

void signIn();
