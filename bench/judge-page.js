// Runs in Chromium: connects to a session and reads what the browser's own WebRTC stack reports. See
// judge.ts.

const SPEECH_CHUNK_BYTES = 6000;
const GATHERING_LIMIT_MS = 500;
const FREEZE_POLL_MS = 100;

const element = document.querySelector('#v');
const decoded = Promise.withResolvers();
element.requestVideoFrameCallback(() => decoded.resolve(performance.now()));

let socket;
let pc;
let startMs = 0;
let freezes = 0;
let freezeSeconds = 0;
let longestFreezeMs = 0;

/** Chromium reports the sum of all freezes. Frequent reads tell the length of each. */
async function watchFreezes() {
  for (const [, report] of await pc.getStats()) {
    const { type, kind, freezeCount, totalFreezesDuration } = report;
    if (type === 'inbound-rtp' && kind === 'video' && freezeCount !== freezes) {
      const meanSeconds = (totalFreezesDuration - freezeSeconds) / (freezeCount - freezes);
      longestFreezeMs = Math.max(longestFreezeMs, 1000 * meanSeconds);
      freezes = freezeCount;
      freezeSeconds = totalFreezesDuration;
    }
  }
}

function openSocket(url) {
  socket = new WebSocket(url);
  socket.binaryType = 'arraybuffer';
  return new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => reject(new Error('the WebSocket was refused')));
  });
}

/** Resolves with the server's SDP answer. */
function answerOfServer() {
  return new Promise((resolve, reject) => {
    socket.addEventListener('message', ({ data }) => {
      if (data.startsWith('{"sdp"')) {
        resolve(JSON.parse(data).sdp);
      } else if (data.startsWith('ERROR')) {
        reject(new Error(data));
      }
    });
  });
}

function gathered() {
  return new Promise((resolve) => {
    const check = () => {
      if (pc.iceGatheringState === 'complete') {
        resolve();
      }
    };
    pc.addEventListener('icegatheringstatechange', check);
    setTimeout(resolve, GATHERING_LIMIT_MS);
    check();
  });
}

globalThis.judge = {
  /** Opens the session's WebSocket and offers. Resolves with the SDP answer. */
  async open(url) {
    startMs = performance.now();
    pc = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
    const stream = new MediaStream();
    pc.addEventListener('track', ({ track }) => {
      stream.addTrack(track);
      element.srcObject = stream;
    });
    pc.addTransceiver('audio', { direction: 'recvonly' });
    pc.addTransceiver('video', { direction: 'recvonly' });
    await openSocket(url);
    const answer = answerOfServer();
    await pc.setLocalDescription();
    await gathered();
    socket.send(JSON.stringify({ type: 'offer', sdp: pc.localDescription.sdp }));
    return await answer;
  },

  /** Resolves with the milliseconds from `open` to the first frame on the screen. */
  async answer(sdp) {
    await pc.setRemoteDescription({ type: 'answer', sdp });
    setInterval(() => void watchFreezes(), FREEZE_POLL_MS);
    return (await decoded.promise) - startMs;
  },

  /** Sends speech: base64 of PCM16, 16 kHz mono. */
  send(base64) {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    for (let at = 0; at < bytes.length; at += SPEECH_CHUNK_BYTES) {
      socket.send(bytes.slice(at, at + SPEECH_CHUNK_BYTES));
    }
  },

  /** The figures of `JudgeFigures` (judge.ts). */
  async stats() {
    await watchFreezes();
    const found = {};
    for (const [, report] of await pc.getStats()) {
      if (report.type === 'inbound-rtp') {
        found[report.kind] = report;
      } else if (report.type === 'candidate-pair' && report.nominated) {
        found.pair = report;
      }
    }
    const { video, audio, pair } = found;
    return {
      framesDecoded: video.framesDecoded,
      framesDropped: video.framesDropped,
      freezeCount: video.freezeCount,
      totalFreezesDuration: video.totalFreezesDuration,
      longestFreezeMs,
      packetsLost: video.packetsLost,
      nackCount: video.nackCount,
      pliCount: video.pliCount,
      jitterBufferMs: (1000 * video.jitterBufferDelay) / video.jitterBufferEmittedCount,
      bytesReceived: video.bytesReceived + audio.bytesReceived,
      concealedShare: audio.concealedSamples / audio.totalSamplesReceived,
      roundTripMs: 1000 * (pair?.currentRoundTripTime ?? Number.NaN),
    };
  },
};
