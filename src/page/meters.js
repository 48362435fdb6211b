// The figures under the video: WebRTC statistics, loudness, and the chart of sound and mouth
// movement.
// @ts-check

/**
 * @typedef {object} Reading
 * @property {number | null} fps Decoded frames per second.
 * @property {number | null} roundTripMs
 * @property {number | null} kbps Audio and video together.
 * @property {number | null} skewMs Positive when the sound lags behind the video.
 * @property {string} picture Size and codec.
 * @property {number} lost Lost packets.
 * @property {number} freezes
 */

/** Turns successive `getStats` reports of one peer connection into readings. */
export class StatsReader {
  #bytes = 0;
  #frames = 0;
  #atMs = 0;

  /** @param {RTCPeerConnection} peer @returns {Promise<Reading>} */
  async read(peer) {
    /** @type {any} */ let video = null;
    /** @type {any} */ let audio = null;
    /** @type {any} */ let pair = null;
    const report = await peer.getStats();
    report.forEach((one) => {
      if (one.type === 'inbound-rtp' && one.kind === 'video') {
        video = one;
      }
      if (one.type === 'inbound-rtp' && one.kind === 'audio') {
        audio = one;
      }
      if (
        one.type === 'candidate-pair' &&
        (one.nominated || one.selected) &&
        one.state === 'succeeded'
      ) {
        pair = one;
      }
    });
    const nowMs = video?.timestamp ?? performance.now();
    const seconds = (nowMs - this.#atMs) / 1000;
    const bytes = (video?.bytesReceived ?? 0) + (audio?.bytesReceived ?? 0);
    const frames = video?.framesDecoded ?? 0;
    const isFirst = this.#atMs === 0 || seconds <= 0;
    /** @type {Reading} */
    const reading = {
      fps: isFirst ? null : (frames - this.#frames) / seconds,
      kbps: isFirst ? null : ((bytes - this.#bytes) * 8) / 1000 / seconds,
      roundTripMs:
        pair?.currentRoundTripTime === undefined ? null : pair.currentRoundTripTime * 1000,
      skewMs: skew(video, audio),
      picture: video?.frameWidth
        ? `${video.frameWidth}×${video.frameHeight} ${codecName(report, video)}`
        : '–',
      lost: (video?.packetsLost ?? 0) + (audio?.packetsLost ?? 0),
      freezes: video?.freezeCount ?? 0,
    };
    [this.#bytes, this.#frames, this.#atMs] = [bytes, frames, nowMs];
    return reading;
  }
}

/**
 * The A/V skew in milliseconds: the difference of the playout times of video and audio on the
 * sender's clock. Where a browser does not report them: the difference of the jitter buffer delays,
 * which is the part of the skew that arises in the browser.
 * @param {any} video @param {any} audio @returns {number | null}
 */
function skew(video, audio) {
  if (!video || !audio) {
    return null;
  }
  if (video.estimatedPlayoutTimestamp && audio.estimatedPlayoutTimestamp) {
    return video.estimatedPlayoutTimestamp - audio.estimatedPlayoutTimestamp;
  }
  if (!video.jitterBufferEmittedCount || !audio.jitterBufferEmittedCount) {
    return null;
  }
  return (
    1000 *
    (audio.jitterBufferDelay / audio.jitterBufferEmittedCount -
      video.jitterBufferDelay / video.jitterBufferEmittedCount)
  );
}

/** @param {RTCStatsReport} report @param {any} video */
function codecName(report, video) {
  const type = /** @type {any} */ (report).get(video.codecId)?.mimeType ?? '';
  return type.replace(/^video\//i, '').replace(/^H264$/i, 'H.264');
}

/** Measures the loudness of the received sound; playback is not affected. */
export class LoudnessMeter {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {AnalyserNode | null} */
  #analyser = null;
  #samples = new Float32Array(1024);

  /** @param {MediaStream} stream */
  attach(stream) {
    this.detach();
    if (stream.getAudioTracks().length === 0) {
      return;
    }
    this.#context = new AudioContext();
    this.#analyser = this.#context.createAnalyser();
    this.#analyser.fftSize = this.#samples.length;
    this.#context.createMediaStreamSource(stream).connect(this.#analyser);
  }

  /** Browsers suspend an audio context that was created before a user gesture. */
  resume() {
    void this.#context?.resume();
  }

  detach() {
    void this.#context?.close();
    this.#context = null;
    this.#analyser = null;
  }

  /** Root mean square of the last 21 ms (at 48 kHz), 0..1. */
  read() {
    if (!this.#analyser) {
      return 0;
    }
    this.#analyser.getFloatTimeDomainData(this.#samples);
    let sum = 0;
    for (const sample of this.#samples) {
      sum += sample * sample;
    }
    return Math.sqrt(sum / this.#samples.length);
  }
}

/**
 * A chart of ten seconds: sound as a line over mouth movement as bars, one column per frame. It is
 * drawn at every second frame: drawing each costs a fifth of what the page takes of a processor.
 */
export class Sparkline {
  static FRAMES = 300;
  #sound = new Float32Array(Sparkline.FRAMES);
  #lips = new Float32Array(Sparkline.FRAMES);
  #at = 0;
  #canvas;
  #context;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    this.#context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  }

  /** @param {number} loudness 0..1 @param {number} motion grey levels */
  push(loudness, motion) {
    this.#sound[this.#at] = Math.min(1, Math.sqrt(loudness) * 1.6);
    this.#lips[this.#at] = Math.min(1, motion / 28);
    this.#at = (this.#at + 1) % Sparkline.FRAMES;
    if (this.#at % 2 === 0) {
      this.#draw();
    }
  }

  clear() {
    this.#sound.fill(0);
    this.#lips.fill(0);
    this.#draw();
  }

  #draw() {
    const scale = Math.min(2, devicePixelRatio);
    const width = Math.round(this.#canvas.clientWidth * scale);
    const height = Math.round(this.#canvas.clientHeight * scale);
    if (this.#canvas.width !== width) {
      this.#canvas.width = width;
    }
    if (this.#canvas.height !== height) {
      this.#canvas.height = height;
    }
    const style = getComputedStyle(this.#canvas);
    const context = this.#context;
    context.clearRect(0, 0, width, height);
    const column = width / Sparkline.FRAMES;
    const base = height - scale;
    context.fillStyle = style.borderTopColor;
    for (let frame = 0; frame < Sparkline.FRAMES; frame++) {
      const size = (this.#lips[(this.#at + frame) % Sparkline.FRAMES] ?? 0) * (height - 4 * scale);
      context.fillRect(
        frame * column,
        base - size,
        Math.max(1, column - 0.6 * scale),
        size + scale,
      );
    }
    context.strokeStyle = style.color;
    context.lineWidth = 1.75 * scale;
    context.lineJoin = 'round';
    context.beginPath();
    for (let frame = 0; frame < Sparkline.FRAMES; frame++) {
      const y =
        base - (this.#sound[(this.#at + frame) % Sparkline.FRAMES] ?? 0) * (height - 4 * scale);
      if (frame === 0) {
        context.moveTo(0, y);
      } else {
        context.lineTo(frame * column, y);
      }
    }
    context.stroke();
  }
}
