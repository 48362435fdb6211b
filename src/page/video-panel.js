// The panel that renders speech to an MP4 file, without a live session.
// @ts-check
import { decodeSpeech, request } from './client.js';
import { errorMessage } from './messages.js';

/** Interval between requests for the status. */
const POLL_MS = 250;
/** The longest wait for a video. */
const LIMIT_MS = 10 * 60_000;

/** @param {Int16Array} pcm */
function toBase64(pcm) {
  const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(text);
}

/**
 * @typedef {object} VideoOutput The elements that show progress and result.
 * @property {HTMLElement} status
 * @property {HTMLProgressElement} progress
 * @property {HTMLVideoElement} video
 * @property {HTMLElement} link
 */

/**
 * @typedef {object} VideoControls
 * @property {HTMLButtonElement} sample
 * @property {HTMLButtonElement} pick
 * @property {HTMLInputElement} input
 */

/**
 * Connects the two buttons of the panel. Renders one video at a time.
 * @param {VideoOutput & VideoControls} parts
 * @param {{
 *   fetchSample: () => Promise<ArrayBuffer>,
 *   order: () => { apiKey: string, faceId: string } | undefined,
 * }} sources `order` returns undefined while no face is chosen.
 */
export function startVideoPanel({ sample, pick, input, ...shown }, { fetchSample, order }) {
  let isBusy = false;
  // Do not use `disabled`: it would take the focus from the button that was pressed.
  const setBusy = (/** @type {boolean} */ value) => {
    isBusy = value;
    for (const one of [sample, pick]) {
      one.ariaDisabled = String(value);
    }
  };
  const render = async (/** @type {() => Promise<ArrayBuffer>} */ open) => {
    const chosen = order();
    if (!chosen || isBusy) {
      return;
    }
    setBusy(true);
    try {
      await renderVideo(shown, { ...chosen, pcm: await decodeSpeech(await open()) });
    } catch (error) {
      shown.status.textContent = errorMessage(error);
      shown.status.classList.add('bad');
    } finally {
      setBusy(false);
    }
  };
  sample.addEventListener('click', () => void render(fetchSample));
  pick.addEventListener('click', () => {
    if (!isBusy) {
      input.click();
    }
  });
  input.addEventListener('change', () => {
    const file = input.files?.[0];
    input.value = '';
    if (file) {
      void render(() => file.arrayBuffer());
    }
  });
}

/**
 * @param {VideoOutput} parts
 * @param {{ apiKey: string, faceId: string, pcm: Int16Array }} order
 */
async function renderVideo({ status, progress, video, link }, { apiKey, faceId, pcm }) {
  status.classList.remove('bad');
  status.textContent = 'Sending the audio…';
  progress.hidden = false;
  progress.removeAttribute('value');
  link.hidden = true;
  try {
    const job = await request('/static/audio', {
      apiKey,
      json: { faceId, audioBase64: toBase64(pcm), audioFormat: 'pcm16', audioSampleRate: 16_000 },
    });
    const startedMs = performance.now();
    for (;;) {
      const {
        status: state,
        progress: done,
        error,
        queue_position: position,
      } = await request(`/static/status?id=${encodeURIComponent(job.id)}`, { apiKey });
      if (state === 'completed') {
        break;
      }
      if (state === 'failed') {
        throw new Error(error ?? 'The video could not be rendered.');
      }
      if (performance.now() - startedMs > LIMIT_MS) {
        throw new Error('The video was not ready in time. The log of the server may say why.');
      }
      status.textContent =
        state === 'queued'
          ? `Waiting: number ${position ?? 1} in the queue…`
          : `Rendering… ${Math.round(done * 100)} %`;
      if (state !== 'queued') {
        progress.value = done;
      }
      await new Promise((resolve) => {
        setTimeout(resolve, POLL_MS);
      });
    }
    const tookS = (performance.now() - startedMs) / 1000;
    const lengthS = pcm.length / 16_000;
    status.textContent = `${lengthS.toFixed(1)} s of video in ${tookS.toFixed(1)} s.`;
    video.src = job.mp4_url;
    video.hidden = false;
    link.hidden = false;
    const anchor = link.querySelector('a');
    if (anchor) {
      anchor.href = job.mp4_url;
    }
  } catch (error) {
    status.textContent = errorMessage(error);
    status.classList.add('bad');
  } finally {
    progress.hidden = true;
  }
}
