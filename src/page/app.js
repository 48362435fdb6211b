// The page's controller: connects the buttons to a Session, and shows the Session's events.
// @ts-check
import { Session, createToken, getIceServers } from './client.js';
import { button, byId, chosen, field, part, video } from './elements.js';
import { FacePicker } from './face-picker.js';
import { SessionStatsPanel } from './session-stats.js';
import { keepFocus } from './focus.js';
import { MouthMotionMeter } from './mouth-motion.js';
import { LoudnessMeter, Sparkline, StatsReader } from './meters.js';
import { endMessage, errorMessage } from './messages.js';
import { showLipLatency, showReading } from './readings.js';
import { play, startSoundButtons } from './sound.js';
import { fetchFile, say, startSpeechPanel } from './speech-panel.js';
import { startTalkPanel } from './talk-panel.js';
import { startUsagePanel } from './usage-panel.js';
import { startVideoPanel } from './video-panel.js';
import { startIntegratePanel } from './integrate-panel.js';
import { startTheme } from './theme.js';

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
      void reader.read(session.peer).then((reading) => {
        if (session.state !== 'ended') {
          showReading(reading);
        }
      });
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

button('connect').addEventListener('click', () => void connect());
button('disconnect').addEventListener('click', () => session?.close());
button('interrupt').addEventListener('click', interrupt);
button('finish').addEventListener('click', () => {
  void session?.finish();
  say('Disconnecting after the last word.');
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

startSoundButtons(() => loudness.resume());

const { stopMicrophone } = startSpeechPanel({
  session: () => session,
  connect,
  offerPicture: (picture) => void picker.offer(picture),
  showError,
});

// The panels.

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

video.addEventListener('loadeddata', () => {
  if (session) {
    part('m-start').textContent = `${Math.round(performance.now() - connectedAtMs)} ms`;
  }
});

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

startTheme(button('theme'));

void signIn();
