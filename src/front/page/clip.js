// The panel that renders a video file: speech in, an MP4 out, without a live session.
// @ts-check
import { request } from './client.js';
import { inWords } from './words.js';

const POLL_MS = 500;
const LIMIT_MS = 10 * 60_000;

/** @param {Int16Array} pcm */
function toBase64(pcm) {
  const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/**
 * @param {{ status: HTMLElement, progress: HTMLProgressElement, video: HTMLVideoElement, link: HTMLElement }} parts
 * @param {{ apiKey: string, faceId: string, pcm: Int16Array }} order
 */
export async function renderClip({ status, progress, video, link }, { apiKey, faceId, pcm }) {
  status.classList.remove('bad');
  status.textContent = 'Sending the audio…';
  progress.hidden = false;
  progress.removeAttribute('value');
  link.hidden = true;
  try {
    const job = await request('/static/audio', { apiKey, json: { faceId, audioBase64: toBase64(pcm), audioFormat: 'pcm16', audioSampleRate: 16_000 } });
    const startedMs = performance.now();
    const expectedMs = Math.max(1, job.mp4_availability_eta_seconds ?? 10) * 1000;
    status.textContent = 'Rendering…';
    while (!(await fetch(job.mp4_url, { method: 'HEAD' })).ok) {
      const waitedMs = performance.now() - startedMs;
      if (waitedMs > LIMIT_MS) throw new Error('The video did not become ready. The server’s log may say why.');
      progress.value = 1 - Math.exp(-1.6 * waitedMs / expectedMs); // an estimate may be too short: never claims to be done
      await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
    }
    const tookS = (performance.now() - startedMs) / 1000;
    const lengthS = pcm.length / 16_000;
    status.textContent = `${lengthS.toFixed(1)} s of video in ${tookS.toFixed(1)} s.`;
    video.src = job.mp4_url;
    video.hidden = false;
    link.hidden = false;
    const anchor = link.querySelector('a');
    if (anchor) anchor.href = job.mp4_url;
  } catch (error) {
    status.textContent = inWords(error);
    status.classList.add('bad');
  } finally {
    progress.hidden = true;
  }
}
