// The panel of session statistics (GET /sessions/{id}/stats), updated once a second: time per stage
// of a video frame, lateness of frames, and latency from speech to lips.
import { request } from './client.js';
import { errorMessage } from './messages.js';

/**
 * @typedef {object} Stats The response of GET /sessions/{id}/stats; times in milliseconds.
 * @property {number} framesSent
 * @property {number} framesSkipped
 * @property {{ p50: number, p99: number }} frameLatenessMs
 * @property {{ last: number, p50: number, p99: number }} audioToLipsMs
 * @property {Record<string, number>} stageMs
 * @property {number} bufferedAudioMs
 * @property {number} targetBitrateKbps
 * @property {number} nacks
 * @property {number} keyFrames
 */

const PERIOD_MS = 1000;
/** Stop after this many failed requests in a row. */
const MAX_FAILURES = 3;
/** Length of the chart. */
const SECONDS = 60;
/** The stages of the pipeline, in order. */
const STAGES = ['drain', 'features', 'inference', 'render', 'encode', 'packetize', 'send'];
/** Frame interval at 30 frames a second. */
const FRAME_MS = 1000 / 30;

/** @param {number} ms */
const formatMs = (ms) => {
  const digits = ms < 0.00995 ? 3 : ms < 0.995 ? 2 : ms < 9.95 ? 1 : undefined;
  return `${digits === undefined ? Math.round(ms) : ms.toFixed(digits)} ms`;
};

/** Bar, legend, chart and figures of one session. */
export class SessionStatsPanel {
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  /**
   * One entry per second. `lips` is the latency of an utterance that began in it, else NaN. @type
   * {{ lateness: number, lips: number }[]}
   */
  #history = [];
  #lastLips = 0;
  #failures = 0;
  #parts;
  #onLips;
  /** @type {Map<string, { bar: HTMLElement, value: HTMLElement }>} */
  #stages = new Map();

  /**
   * @param {{ total: HTMLElement, bar: HTMLElement, legend: HTMLElement, canvas: HTMLCanvasElement,
   * facts: HTMLElement, why: HTMLElement, body: HTMLElement }} parts
   * @param {(ms: number) => void} onLips Gets the latency of the latest utterance: from its arrival
   * at the server to the sending of its first video frame.
   */
  constructor(parts, onLips) {
    this.#parts = parts;
    this.#onLips = onLips;
    for (const stage of STAGES) {
      const bar = document.createElement('i');
      bar.dataset['stage'] = stage;
      const item = document.createElement('li');
      item.dataset['stage'] = stage;
      const value = document.createElement('b');
      item.append(stage, value);
      this.#stages.set(stage, { bar, value });
      parts.bar.append(bar);
      parts.legend.append(item);
    }
  }

  /**
   * Shows the statistics of one session until `stop`.
   * @param {string} sessionId
   * @param {string} apiKey
   */
  start(sessionId, apiKey) {
    this.stop();
    this.#history = [];
    this.#lastLips = 0;
    this.#failures = 0;
    this.#timer = setInterval(() => {
      void this.#update(sessionId, apiKey);
    }, PERIOD_MS);
  }

  /** Stops the updates. The last figures stay visible. */
  stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** @param {string} sessionId @param {string} apiKey */
  async #update(sessionId, apiKey) {
    const timer = this.#timer;
    /** @type {Stats} */
    let stats;
    try {
      stats = await request(`/sessions/${sessionId}/stats`, {
        apiKey,
        signal: AbortSignal.timeout(5000),
      });
    } catch (error) {
      if (timer !== this.#timer) {
        return;
      }
      this.#failures++;
      if (this.#failures < MAX_FAILURES) {
        return;
      }
      this.stop();
      this.#say(reasonFor(error));
      return;
    }
    // The session ended in the meantime.
    if (timer !== this.#timer) {
      return;
    }
    this.#failures = 0;
    this.#draw(stats);
  }

  /** Shows a text instead of the figures. @param {string} text */
  #say(text) {
    this.#parts.why.textContent = text;
    this.#parts.why.hidden = false;
    this.#parts.body.hidden = true;
  }

  /** @param {Stats} stats */
  #draw({
    stageMs,
    frameLatenessMs,
    audioToLipsMs,
    framesSent,
    framesSkipped,
    targetBitrateKbps,
    nacks,
  }) {
    const { why, body, total, facts } = this.#parts;
    why.hidden = true;
    body.hidden = false;
    let sum = 0;
    for (const [stage, { bar, value }] of this.#stages) {
      const ms = stageMs[stage] ?? 0;
      sum += ms;
      bar.style.flexGrow = String(ms);
      bar.title = `${stage}: ${formatMs(ms)}`;
      value.textContent = formatMs(ms);
    }
    total.textContent = `${formatMs(sum)} of the ${FRAME_MS.toFixed(0)} ms between frames`;
    const isNew = audioToLipsMs.last > 0 && audioToLipsMs.last !== this.#lastLips;
    this.#lastLips = audioToLipsMs.last;
    if (isNew) {
      this.#onLips(audioToLipsMs.last);
    }
    this.#history.push({
      lateness: frameLatenessMs.p99,
      lips: isNew ? audioToLipsMs.last : Number.NaN,
    });
    if (this.#history.length > SECONDS) {
      this.#history.shift();
    }
    this.#plot();
    const shown = [
      [
        'Speech in → lips out',
        audioToLipsMs.last > 0
          ? `${formatMs(audioToLipsMs.p50)} · ${formatMs(audioToLipsMs.p99)}`
          : '–',
      ],
      ['Frame lateness', `${formatMs(frameLatenessMs.p50)} · ${formatMs(frameLatenessMs.p99)}`],
      ['Frames sent · skipped', `${framesSent} · ${framesSkipped}`],
      ['Bitrate target · NACKs', `${targetBitrateKbps} kbit/s · ${nacks}`],
    ];
    facts.replaceChildren(
      ...shown.map(([name, value]) => {
        const row = document.createElement('div');
        const term = document.createElement('dt');
        const description = document.createElement('dd');
        term.textContent = name ?? '';
        description.textContent = value ?? '';
        row.append(term, description);
        return row;
      }),
    );
  }

  /**
   * Draws the last minute: lateness as an area, utterances as dots; the newest second is at the
   * right.
   */
  #plot() {
    const { canvas } = this.#parts;
    const scale = Math.min(2, devicePixelRatio);
    const width = Math.round(canvas.clientWidth * scale);
    const height = Math.round(canvas.clientHeight * scale);
    if (canvas.width !== width) {
      canvas.width = width;
    }
    if (canvas.height !== height) {
      canvas.height = height;
    }
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    const style = getComputedStyle(canvas);
    const most = Math.max(
      ...this.#history.flatMap(({ lateness, lips }) => [lateness, Number.isNaN(lips) ? 0 : lips]),
    );
    const top = [20, 50, 100, 200, 500, 1000].find((limit) => limit >= most * 1.1) ?? most * 1.1;
    const left = 34 * scale;
    const right = width - 6 * scale;
    const base = height - 4 * scale;
    const high = 8 * scale;
    const x = (/** @type {number} */ second) =>
      right - ((this.#history.length - 1 - second) / (SECONDS - 1)) * (right - left);
    const y = (/** @type {number} */ ms) => base - Math.min(1, ms / top) * (base - high);
    context.clearRect(0, 0, width, height);
    context.font = `${11 * scale}px ${style.fontFamily}`;
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    context.lineWidth = scale;
    for (const share of [0, 0.5, 1]) {
      const line = Math.round(y(share * top)) + 0.5;
      context.fillStyle = style.outlineColor;
      context.fillText(String(share * top), left - 7 * scale, Math.min(base - 2 * scale, line));
      context.strokeStyle = style.borderTopColor;
      context.beginPath();
      context.moveTo(left, line);
      context.lineTo(right, line);
      context.stroke();
    }
    context.strokeStyle = style.color;
    context.fillStyle = style.color;
    context.lineJoin = 'round';
    context.lineWidth = 1.75 * scale;
    context.beginPath();
    this.#history.forEach(({ lateness }, second) => {
      if (second === 0) {
        context.moveTo(x(0), y(lateness));
      } else {
        context.lineTo(x(second), y(lateness));
      }
    });
    context.stroke();
    context.lineTo(x(this.#history.length - 1), base);
    context.lineTo(x(0), base);
    context.globalAlpha = 0.14;
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = style.borderBottomColor;
    this.#history.forEach(({ lips }, second) => {
      if (Number.isNaN(lips)) {
        return;
      }
      context.beginPath();
      context.arc(x(second), y(lips), 4 * scale, 0, 2 * Math.PI);
      context.fill();
    });
  }
}

/** Why there are no figures, as a text for the user. @param {unknown} error */
function reasonFor(error) {
  const { status } = /** @type {{ status?: number }} */ (error);
  if (status === 404) {
    return (
      'No statistics: they are available to the owner of the session only, from the server ' +
      'that runs it. Another server answered, or your API key belongs to another owner.'
    );
  }
  return `No statistics: ${errorMessage(error)}`;
}
