// A session's speech on the media clock: what the model hears in each video frame, and what the listener hears in each audio packet.
//
// The model looks ahead: its answer for a moment needs `lookahead` more audio. So the model's end of the stream (`fed`) runs ahead of the
// listener's end (`played`) by just that much, and both lie in one ring. Which stream position belongs to which media time is computed
// anew for every frame from `played`, so that lips and sound cannot drift apart, whatever is late.
import {
  FRAME_MS,
  SPEECH_PACKET_SAMPLES,
  SPEECH_RATE,
  speechSamplesInStep,
} from '../../media/timeline.ts';
import type { SpeechSource } from './speech-source.ts';

const RING = 1 << 14; // 1.02 s: far more than the look-ahead
const SAMPLES_PER_MS = SPEECH_RATE / 1000;
const SAMPLES_PER_FRAME = (SPEECH_RATE * FRAME_MS) / 1000;

/**
 * At most this many model steps in one frame: to start an utterance at once takes 2 or 3 (7 for a network that looks 210 ms ahead), to catch
 * up after a late frame one more each.
 */
export const MAX_STEPS_PER_FRAME = 8;
const MAX_STEP_SAMPLES = Math.ceil(SAMPLES_PER_FRAME);

/** Louder than this (of 32768, about -48 dBFS) counts as something to be heard. */
const AUDIBLE_PEAK = 128;

/** After an utterance the model is fed silence for this long before the stream rests, so that the mouth closes by itself. */
const TAIL_MS = 500;

/** How much real-time audio must lie ready beyond the bare need before an utterance starts; grows with each underrun. */
const MARGIN_START_MS = 20;
const MARGIN_MAX_MS = 160;
const MARGIN_STEP_MS = 30;
const MARGIN_DECAY_MS = 5;
/** Audio that comes in this soon after the source ran dry belongs to the same utterance: it was late. */
const SAME_UTTERANCE_MS = 300;
/** An utterance too short to fill the look-ahead and the margin starts when it has waited for the first and this long all the same. */
const START_PATIENCE_MS = 60;

export class SpeechStream {
  /** PCM of the steps to run this frame, one after another; step `i` has `stepSamples[i]` samples from `stepPcm[i * STRIDE]`. */
  readonly stepPcm: readonly Int16Array[];
  readonly stepSamples = new Int32Array(MAX_STEPS_PER_FRAME);
  /** An utterance began in the frame just prepared: the model must forget what came before. */
  restarted = false;
  /** The frame just prepared is the first to show speech that came in while the stream rested. */
  hasJustStarted = false;
  /** By how much the picture's place in the speech, as last prepared, is before that of the sound at the same media time. */
  lipsAheadMs = 0;
  isActive = false;
  underruns = 0;
  /** Stream time since the source last gave anything, and since anything was audible. */
  starvedMs = Infinity;
  inaudibleMs = Infinity;
  /** Monotonic arrival of the utterance that started last. */
  utteranceArrivalMs = 0;
  /**
   * Whether the utterance that started last came faster than real time: then its latency is ours alone. One that is paced in real time
   * waits for its own look-ahead first (60 ms, and the margin).
   */
  isBurst = false;

  readonly #source: SpeechSource;
  readonly #lookaheadSamples: number;
  readonly #ring = new Int16Array(RING);
  #fed = 0;
  #played = 0;
  #step = 0;
  #marginMs = MARGIN_START_MS;
  #waitingSinceMs = -1;
  #isRebuffering = false;
  #mustForget = false;

  constructor(source: SpeechSource, lookaheadMs: number) {
    this.#source = source;
    this.#lookaheadSamples = Math.round(lookaheadMs * SAMPLES_PER_MS);
    this.stepPcm = Array.from(
      { length: MAX_STEPS_PER_FRAME },
      () => new Int16Array(MAX_STEP_SAMPLES),
    );
  }

  /** Milliseconds of speech that have come in and not been heard yet. */
  get bufferedMs(): number {
    return (
      (this.#source.available + (this.isActive ? Math.max(0, this.#fed - this.#played) : 0)) /
      SAMPLES_PER_MS
    );
  }

  /** Milliseconds of silence that the listener has heard since the source last gave anything; 0 or less while its audio is still playing. */
  get gapMs(): number {
    return this.isActive ? this.starvedMs - (this.#fed - this.#played) / SAMPLES_PER_MS : Infinity;
  }

  /** Nothing more will ever be heard: all was played and the source said that it is done. */
  get isFinished(): boolean {
    return (
      this.#source.isDone && this.#source.available === 0 && (!this.isActive || this.#isSilentAhead)
    );
  }

  /** All that the model was fed beyond what was played is silence. */
  get #isSilentAhead(): boolean {
    return this.starvedMs * SAMPLES_PER_MS >= this.#fed - this.#played;
  }

  /**
   * Gets the audio ready that the model must hear for the video frame at `mediaMs`.
   * @param nextPacketMs media time of the audio packet that `takePacket` will fill next
   * @returns model steps to run now (their PCM is in `stepPcm`), 0 while the stream rests
   */
  prepareFrame(mediaMs: number, nextPacketMs: number, nowMs: number): number {
    this.restarted = false;
    this.hasJustStarted = false;
    const heardInFrame = (mediaMs + FRAME_MS / 2 - nextPacketMs) * SAMPLES_PER_MS;
    if (!this.isActive || (this.#isSilentAhead && this.starvedMs > 2 * FRAME_MS)) {
      if (this.#canStart(heardInFrame, nowMs)) {
        return this.#start(heardInFrame, nowMs);
      }
      if (!this.isActive) {
        return 0;
      }
    }
    const target = this.#played + heardInFrame + this.#lookaheadSamples;
    const steps = Math.min(
      MAX_STEPS_PER_FRAME,
      Math.max(0, Math.round((target - this.#fed) / SAMPLES_PER_FRAME)),
    );
    for (let i = 0; i < steps; i++) {
      this.#feed(i, 0);
    }
    this.lipsAheadMs = (this.#fed - target) / SAMPLES_PER_MS;
    if (this.starvedMs >= TAIL_MS && this.#isSilentAhead) {
      this.#rest();
    }
    return steps;
  }

  #canStart(heardInFrame: number, nowMs: number): boolean {
    const { available } = this.#source;
    if (available === 0) {
      this.#waitingSinceMs = -1;
      return false;
    }
    if (this.#waitingSinceMs < 0) {
      this.#waitingSinceMs = nowMs;
    }
    const needed = heardInFrame + this.#lookaheadSamples;
    return (
      available >= needed + this.#marginMs * SAMPLES_PER_MS ||
      this.#source.isDone ||
      nowMs - this.#waitingSinceMs >= START_PATIENCE_MS + this.#lookaheadSamples / SAMPLES_PER_MS
    );
  }

  /** Places the first sample in the very next audio packet and feeds the model, at once, as much as this frame's lips need. */
  #start(heardInFrame: number, nowMs: number): number {
    const isFresh = !this.isActive;
    this.#waitingSinceMs = -1;
    this.utteranceArrivalMs = this.#source.arrivalMs;
    // By how much more came in than real time would have brought: as much as a start needs, and nothing had to be waited for.
    const aheadMs = this.#source.available / SAMPLES_PER_MS - (nowMs - this.#source.arrivalMs);
    this.isBurst =
      this.#source.isDone ||
      aheadMs >= (heardInFrame + this.#lookaheadSamples) / SAMPLES_PER_MS + this.#marginMs;
    this.isActive = true;
    this.#isRebuffering = false;
    this.hasJustStarted = true;
    this.restarted = isFresh || this.#mustForget;
    this.#mustForget = false;
    this.#marginMs = Math.max(MARGIN_START_MS, this.#marginMs - MARGIN_DECAY_MS);
    this.#played = this.#fed;
    const needed = Math.max(1, Math.round(heardInFrame + this.#lookaheadSamples));
    const steps = Math.min(MAX_STEPS_PER_FRAME, Math.ceil(needed / SAMPLES_PER_FRAME));
    let total = 0;
    for (let i = 0; i < steps; i++) {
      total += speechSamplesInStep(this.#step + i);
    }
    // Silence before the first sample makes whole steps of it; the listener never hears that silence.
    const padding = Math.max(0, total - needed);
    this.#feed(0, padding);
    for (let i = 1; i < steps; i++) {
      this.#feed(i, 0);
    }
    this.#played += padding;
    return steps;
  }

  /** Feeds one step: `padding` samples of silence, then what the source has, then silence again if it has too little. */
  #feed(slot: number, padding: number): void {
    const count = speechSamplesInStep(this.#step);
    const pcm = this.stepPcm[slot]!;
    pcm.fill(0, 0, padding);
    const wanted = count - padding;
    let got = 0;
    if (
      !this.#isRebuffering ||
      this.#source.isDone ||
      this.#source.available >= wanted + this.#marginMs * SAMPLES_PER_MS
    ) {
      this.#isRebuffering = false;
      got = this.#source.read(pcm, padding, wanted);
    }
    pcm.fill(0, padding + got, count);
    this.#measure(pcm, count, got);
    if (got < wanted && !this.#source.isDone && !this.#isRebuffering) {
      this.#isRebuffering = true;
    }
    const start = this.#fed % RING;
    for (let i = 0; i < count; i++) {
      this.#ring[(start + i) % RING] = pcm[i]!;
    }
    this.stepSamples[slot] = count;
    this.#fed += count;
    this.#step++;
  }

  #measure(pcm: Int16Array, count: number, got: number): void {
    const durationMs = count / SAMPLES_PER_MS;
    let peak = 0;
    for (let i = 0; i < count; i++) {
      const value = pcm[i]!;
      const size = value < 0 ? -value : value;
      if (size > peak) {
        peak = size;
      }
    }
    this.inaudibleMs = peak >= AUDIBLE_PEAK ? 0 : this.inaudibleMs + durationMs;
    if (got > 0) {
      // Audio that comes in again soon after it ran dry was late, not over: keep more in hand from now on.
      if (this.starvedMs > 0 && this.starvedMs < SAME_UTTERANCE_MS) {
        this.underruns++;
        this.#marginMs = Math.min(MARGIN_MAX_MS, this.#marginMs + MARGIN_STEP_MS);
      }
      this.starvedMs = 0;
    } else {
      this.starvedMs += durationMs;
    }
  }

  /** Fills `out` with the next 20 ms (320 samples) that the listener hears. @returns false if it is silence because the stream rests. */
  takePacket(out: Int16Array): boolean {
    if (!this.isActive) {
      out.fill(0);
      return false;
    }
    const ready = Math.max(0, Math.min(SPEECH_PACKET_SAMPLES, this.#fed - this.#played));
    const start = this.#played % RING;
    for (let i = 0; i < ready; i++) {
      out[i] = this.#ring[(start + i) % RING]!;
    }
    out.fill(0, ready);
    this.#played += ready;
    return true;
  }

  /** Forgets everything not yet heard (SKIP, PLAY_IMMEDIATE). A few milliseconds fade out so that the cut does not click. */
  flush(): void {
    const fade = Math.min(SAMPLES_PER_MS * 5, Math.max(0, this.#fed - this.#played));
    for (let i = 0; i < fade; i++) {
      const at = (this.#played + i) % RING;
      this.#ring[at] = Math.round(this.#ring[at]! * (1 - i / fade));
    }
    this.#fed = this.#played + fade;
    // Silent ahead, and one frame from rest: long enough for the next packet to take the fade along.
    this.starvedMs = TAIL_MS - 1.5 * FRAME_MS;
    this.inaudibleMs = Infinity;
    this.#isRebuffering = false;
    this.#mustForget = true;
    this.#waitingSinceMs = -1;
  }

  #rest(): void {
    this.isActive = false;
    this.#isRebuffering = false;
    this.starvedMs = Infinity;
    this.#played = this.#fed;
  }
}
