// The figures below the player.
// @ts-check
import { part } from './elements.js';

/** @param {number} latencyMs Measured in the server. */
export function showLipLatency(latencyMs) {
  part('m-lips').textContent = `${Math.round(latencyMs)} ms`;
  part('latency-badge').textContent = `${Math.round(latencyMs)} ms to lips`;
  part('latency-badge').title =
    'In the server: from the arrival of the speech to the sending of its first video frame';
  part('latency-badge').hidden = false;
}

/** @param {import('./meters.js').Reading} reading */
export function showReading(reading) {
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
