// The room of a conversation: joins with the secret of its link, sends the microphone, and shows the
// face, what it does, and what both sides say.
// @ts-check
import { request, Session } from '../client.js';
import { errorMessage } from '../messages.js';

/**
 * @typedef {'start' | 'connecting' | 'listening' | 'hearing' | 'thinking' | 'speaking' | 'ended'} RoomState
 *
 * @typedef {object} Ticket The reply of POST /auto/room/{id}/join.
 * @property {string} session_token
 * @property {string} name
 * @property {boolean} scripted
 * @property {RTCIceServer[]} ice_servers
 */

const $ = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const room = $('room');
const video = /** @type {HTMLVideoElement} */ ($('video'));
const level = /** @type {HTMLMeterElement} */ ($('level'));
const devices = /** @type {HTMLSelectElement} */ ($('device'));
const id = location.pathname.split('/').at(-1) ?? '';
const storageKey = `room:${id}`;

/** @type {Record<RoomState, string>} */
const STATES = {
  start: 'Not connected',
  connecting: 'Connecting',
  listening: 'Listening',
  hearing: 'Listening to you',
  thinking: 'Thinking',
  speaking: 'Speaking',
  ended: 'The conversation is over',
};
/** Captions stay for this long after they are complete. */
const CAPTION_MS = 6000;

/** @type {Session | null} */
let session = null;
/** @type {MediaStream | null} */
let microphone = null;
/** @type {AudioContext | null} */
let meterContext = null;

/** States of a conversation that goes on. */
const TURNS = new Set(['listening', 'hearing', 'thinking', 'speaking']);

/** @param {RoomState} state */
function show(state) {
  const wasTurn = TURNS.has(room.dataset['state'] ?? '');
  room.dataset['state'] = state;
  $('state').textContent = STATES[state];
  const isTurn = TURNS.has(state);
  if (isTurn !== wasTurn) {
    $('announcement').textContent = isTurn ? 'Connected. You can speak now.' : STATES[state];
  }
  const hadFocus = document.activeElement === $('start') || document.activeElement === $('again');
  $('controls').hidden = state === 'start' || state === 'ended';
  $('start-card').hidden = state !== 'start';
  if (hadFocus && !$('controls').hidden) {
    // The button that was pressed is gone: the keyboard goes on where the person needs it.
    $('mute').focus();
  }
}

/** @param {string} text @param {boolean} [canRetry] */
function notice(text, canRetry = false) {
  $('notice').hidden = text === '';
  $('notice-text').textContent = text;
  $('again').hidden = !canRetry;
}

/** @returns {Promise<Ticket>} from the link, or from the last load of this page */
async function takeTicket() {
  const kept = sessionStorage.getItem(storageKey);
  if (kept !== null) {
    return JSON.parse(kept);
  }
  const ticket = await request(`/auto/room/${encodeURIComponent(id)}/join`, {
    json: { secret: location.hash.slice(1) },
  });
  sessionStorage.setItem(storageKey, JSON.stringify(ticket));
  return ticket;
}

/** @param {string} [deviceId] */
const openMicrophone = (deviceId) => {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new Error(
      'Browsers allow the microphone on secure pages only. Open this page as http://localhost or ' +
        'over HTTPS.',
    );
  }
  return navigator.mediaDevices.getUserMedia({
    audio: {
      echoCancellation: true,
      noiseSuppression: true,
      channelCount: 1,
      ...(deviceId && { deviceId: { exact: deviceId } }),
    },
  });
};

/** @param {unknown} error */
function microphoneProblem(error) {
  const { name, message } = /** @type {Error} */ (error);
  if (name === 'NotAllowedError') {
    return 'The microphone is blocked for this page. Allow it in the address bar and try again.';
  }
  return name === 'NotFoundError'
    ? 'No microphone was found. Plug one in and try again.'
    : message || 'The microphone could not be opened. Another program may be using it.';
}

async function start() {
  notice('');
  show('connecting');
  try {
    microphone = await openMicrophone();
  } catch (error) {
    show('start');
    notice(microphoneProblem(error));
    return;
  }
  /** @type {Ticket} */
  let ticket;
  try {
    ticket = await takeTicket();
  } catch (error) {
    stopMicrophone();
    show('ended');
    notice(errorMessage(error));
    return;
  }
  if (ticket.name !== '') {
    $('agent-name').textContent = ticket.name;
    document.title = ticket.name;
    $('title').textContent = `Conversation with ${ticket.name}`;
  }
  $('scripted').hidden = !ticket.scripted;
  connect(ticket, microphone);
}

/** @param {Ticket} ticket @param {MediaStream} stream */
function connect(ticket, stream) {
  const [track] = stream.getAudioTracks();
  const live = new Session({
    reconnect: false,
    sessionToken: ticket.session_token,
    iceServers: ticket.ice_servers,
    ...(track && { microphone: track }),
  });
  session = live;
  video.srcObject = live.stream;
  live.on('started', () => show('listening'));
  live.on('conversation', onConversation);
  live.on('end', onEnd);
  void listDevices();
  startMeter(stream);
}

/**
 * @param {{ state?: RoomState, problem?: string,
 * caption?: { role: 'user' | 'assistant', text: string, final: boolean } }} told
 */
function onConversation({ state, problem, caption }) {
  if (state !== undefined) {
    show(state);
    if (state === 'thinking' || state === 'speaking') {
      notice(''); // the next answer: what went wrong with the last one is read by now
    }
  }
  if (problem !== undefined) {
    notice(`${problem}.`);
  }
  if (caption !== undefined) {
    showCaption(caption.role === 'user' ? 'user-caption' : 'agent-caption', caption);
  }
}

/** @type {Record<string, ReturnType<typeof setTimeout>>} */
const captionTimers = {};

/** @param {string} element @param {{ text: string, final: boolean }} caption */
function showCaption(element, { text, final }) {
  const line = $(element);
  line.hidden = text === '';
  /** @type {HTMLElement} */ (line.querySelector('span')).textContent = text;
  clearTimeout(captionTimers[element]);
  if (final) {
    captionTimers[element] = setTimeout(() => {
      line.hidden = true;
    }, CAPTION_MS);
  }
}

/** @param {{ reason: string, error: { code: string, message: string } | null }} end */
function onEnd({ reason, error }) {
  stopMicrophone();
  session = null;
  show('ended');
  if (error === null) {
    sessionStorage.removeItem(storageKey);
    notice(reason === 'idle_limit' ? 'Nobody spoke for a while, so the conversation ended.' : '');
    return;
  }
  const canReturn = ['CONNECTION_LOST', 'ICE_FAILED', 'WORKER_LOST', 'PEER_LOST'].includes(
    error.code,
  );
  // A failed conversation says in words which of its services failed.
  const words = error.message.replace(/^CONVERSATION_FAILED\s*/, '');
  notice(
    error.code === 'CONVERSATION_FAILED' && words !== ''
      ? `The conversation ended. ${words}.`
      : errorMessage({ code: error.code }),
    canReturn,
  );
}

function stopMicrophone() {
  for (const track of microphone?.getTracks() ?? []) {
    track.stop();
  }
  microphone = null;
  void meterContext?.close();
  meterContext = null;
}

async function listDevices() {
  const all = await navigator.mediaDevices.enumerateDevices();
  const inputs = all.filter(({ kind }) => kind === 'audioinput');
  devices.replaceChildren(
    ...inputs.map(({ deviceId, label }, index) => {
      const option = document.createElement('option');
      option.value = deviceId;
      option.textContent = label || `Microphone ${index + 1}`;
      return option;
    }),
  );
  devices.hidden = inputs.length < 2;
}

/** @param {MediaStream} stream */
function startMeter(stream) {
  void meterContext?.close();
  meterContext = new AudioContext();
  const analyser = meterContext.createAnalyser();
  analyser.fftSize = 512;
  meterContext.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  const own = meterContext;
  const tick = () => {
    if (meterContext !== own) {
      return;
    }
    analyser.getFloatTimeDomainData(samples);
    const power = samples.reduce((sum, value) => sum + value * value, 0) / samples.length;
    level.value = Math.min(1, Math.sqrt(power) * 6);
    requestAnimationFrame(tick);
  };
  tick();
}

function toggleMute() {
  const [track] = microphone?.getAudioTracks() ?? [];
  if (track !== undefined) {
    track.enabled = !track.enabled;
    $('mute').setAttribute('aria-pressed', String(!track.enabled));
    /** @type {HTMLElement} */ ($('mute').querySelector('span')).textContent = track.enabled
      ? 'Mute'
      : 'Muted';
  }
}

function toggleCaptions() {
  const isOn = $('captions-toggle').getAttribute('aria-pressed') !== 'true';
  $('captions-toggle').setAttribute('aria-pressed', String(isOn));
  $('captions').hidden = !isOn;
}

$('start').addEventListener('click', () => void start());
$('again').addEventListener('click', () => void start());
$('mute').addEventListener('click', toggleMute);
$('interrupt').addEventListener('click', () => session?.interrupt());
$('captions-toggle').addEventListener('click', toggleCaptions);
$('hang-up').addEventListener('click', () => void session?.finish());
devices.addEventListener('change', () => {
  void (async () => {
    const stream = await openMicrophone(devices.value);
    const [track] = stream.getAudioTracks();
    const sender = session?.peer.getSenders().find((one) => one.track?.kind === 'audio');
    if (track === undefined || sender === undefined) {
      return;
    }
    await sender.replaceTrack(track);
    const old = microphone;
    microphone = stream;
    for (const one of old?.getTracks() ?? []) {
      one.stop();
    }
    startMeter(stream);
  })().catch((error) => notice(microphoneProblem(error)));
});
document.addEventListener('keydown', (event) => {
  if (event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey) {
    return;
  }
  if (event.key === 'Escape') {
    session?.interrupt();
  } else if (event.key === 'm') {
    toggleMute();
  } else if (event.key === 'c') {
    toggleCaptions();
  }
});
show('start');
