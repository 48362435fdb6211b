// A session's speech on the media clock: the speech that the model gets for each video frame, and
// the speech that the listener gets in each audio packet.
//
// The model looks ahead: its output for a moment needs `lookahead` more speech. So the model's
// position in the stream (`fed`) is ahead of the listener's (`played`) by that much; both are in
// one ring. The stream position that belongs to a media time is computed again for every frame from
// `played`: lips and sound cannot drift apart, whatever is late.
import { isAudible } from '../../media/audio-level.ts';
import {
  FRAME_MS,
  SPEECH_PACKET_SAMPLES,
  SPEECH_RATE,
  speechSamplesInStep,
} from '../../media/timeline.ts';
import type { SpeechSource } from './speech-source.ts';
import { UtteranceStart } from './utterance-start.ts';

/** Samples: 1.02 s, far more than the look-ahead. */
const RING = 1 << 14;
const SAMPLES_PER_MS = SPEECH_RATE / 1000;
const SAMPLES_PER_FRAME = (SPEECH_RATE * FRAME_MS) / 1000;

/**
 * Most model steps in one frame. The start of an utterance takes 2 or 3, or 7 for a network that
 * looks 210 ms ahead; each late frame takes one more.
 */
export const MAX_STEPS_PER_FRAME = 8;
const MAX_STEP_SAMPLES = Math.ceil(SAMPLES_PER_FRAME);

/**
 * After an utterance the model gets this much silence before the stream rests, so that the mouth
 * closes by itself.
 */
const TAIL_MS = 500;

/**
 * Audio that arrives this soon after the source ran empty belongs to the same utterance: it was
 * late.
 */
const SAME_UTTERANCE_MS = 300;
/** What was cut off or ran dry fades out in this time, and late audio fades in. */
const FADE_MS = 5;
/** The fields tell the state after the last `prepareFrame`. */
export class SpeechStream {
  /**
   * PCM of the model steps of this frame: step `i` is the first `stepSamples[i]` samples of
   * `stepPcm[i]`.
   */
  readonly stepPcm: readonly Int16Array[];
  readonly stepSamples = new Int32Array(MAX_STEPS_PER_FRAME);
  /** An utterance began in this frame: the model must forget the speech before it. */
  restarted = false;
  /** This frame is the first to show speech that arrived while the stream rested. */
  hasJustStarted = false;
  /** How far the picture is ahead of the sound in the speech, at the same media time. */
  lipsAheadMs = 0;
  /** An utterance is being played; otherwise the stream rests. */
  isActive = false;
  /** Times that audio arrived too late within an utterance. */
  underruns = 0;
  /** Stream time since the source last had samples. */
  starvedMs = Infinity;
  /** Stream time since the speech was audible. */
  inaudibleMs = Infinity;
  /** Monotonic time at which the last utterance arrived. */
  utteranceArrivalMs = 0;
  /**
   * The last utterance arrived faster than real time: its latency is that of this server alone. One
   * that is paced in real time waits for its own look-ahead (60 ms, and the margin).
   */
  isBurst = false;

  readonly #source: SpeechSource;
  readonly #lookaheadSamples: number;
  readonly #start: UtteranceStart;
  readonly #ring = new Int16Array(RING);
  // Places in the stream, in samples. A lead-in before the first sample has a place too.
  #fed = RING;
  #played = RING;
  /** Samples that fade out after a cut, at the end of the array; they end at `#fadeEnd`. */
  readonly #fade = new Int16Array(FADE_MS * SAMPLES_PER_MS);
  #fadeEnd = 0;
  #step = 0;
  #isRebuffering = false;
  /** The last sample before `fed` is the source's. */
  #endsInSpeech = false;
  #mustForget = false;

  constructor(source: SpeechSource, lookaheadMs: number) {
    this.#source = source;
    this.#lookaheadSamples = Math.round(lookaheadMs * SAMPLES_PER_MS);
    this.#start = new UtteranceStart(lookaheadMs);
    this.stepPcm = Array.from(
      { length: MAX_STEPS_PER_FRAME },
      () => new Int16Array(MAX_STEP_SAMPLES),
    );
  }

  /** Milliseconds of speech that have arrived and were not played yet. */
  get bufferedMs(): number {
    return (
      (this.#source.available + (this.isActive ? Math.max(0, this.#fed - this.#played) : 0)) /
      SAMPLES_PER_MS
    );
  }

  /** Samples of the source that were read and not played yet. */
  get unheardSamples(): number {
    return this.isActive
      ? Math.max(0, Math.round(this.#fed - this.#played - this.starvedMs * SAMPLES_PER_MS))
      : 0;
  }

  /**
   * Milliseconds of silence played since the end of the source's audio; 0 or less while that audio
   * is still playing.
   */
  get gapMs(): number {
    return this.isActive ? this.starvedMs - (this.#fed - this.#played) / SAMPLES_PER_MS : Infinity;
  }

  /**
   * The next packet is to hear speech that no frame has prepared yet: the frame is late. Packets wait
   * for it, else they would tear a word apart with silence. What was cut needs no frame.
   */
  get isBehind(): boolean {
    return (
      this.isActive &&
      this.#fed - this.#played < SPEECH_PACKET_SAMPLES &&
      this.#fed !== this.#fadeEnd
    );
  }

  /** Everything was played, and the source is done. */
  get isFinished(): boolean {
    return (
      this.#source.isDone && this.#source.available === 0 && (!this.isActive || this.#isSilentAhead)
    );
  }

  /** Everything between `played` and `fed` is silence. */
  get #isSilentAhead(): boolean {
    return this.starvedMs * SAMPLES_PER_MS >= this.#fed - this.#played;
  }

  /**
   * Prepares the speech that the model needs for a video frame. All times are monotonic.
   * @param frameMs time of the frame
   * @param packetMs time of the audio packet that `takePacket` will fill next
   * @returns model steps to run now, with their PCM in `stepPcm`; 0 while the stream rests
   */
  prepareFrame(frameMs: number, packetMs: number, nowMs: number): number {
    this.restarted = false;
    this.hasJustStarted = false;
    const playedInFrame = (frameMs + FRAME_MS / 2 - packetMs) * SAMPLES_PER_MS;
    const leadInMs = this.#leadInMs(packetMs, nowMs);
    if (leadInMs !== undefined) {
      return this.#begin(playedInFrame, leadInMs, nowMs);
    }
    if (!this.isActive) {
      return 0;
    }
    const target = this.#played + playedInFrame + this.#lookaheadSamples;
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

  /**
   * Whether an utterance waits that can begin in the next packet.
   * @param packetMs as for `prepareFrame`
   */
  canStart(packetMs: number, nowMs: number): boolean {
    return this.#leadInMs(packetMs, nowMs) !== undefined;
  }

  /** As `UtteranceStart.leadInMs`; undefined also while an utterance is being played. */
  #leadInMs(packetMs: number, nowMs: number): number | undefined {
    const isOver = !this.isActive || (this.#isSilentAhead && this.starvedMs > 2 * FRAME_MS);
    return isOver ? this.#start.leadInMs(this.#source, packetMs, nowMs) : undefined;
  }

  /**
   * Puts the first sample into the next audio packet, after `leadInMs` of silence, and feeds the
   * model all that this frame needs.
   */
  #begin(playedInFrame: number, leadInMs: number, nowMs: number): number {
    const isFresh = !this.isActive;
    this.utteranceArrivalMs = this.#source.arrivalMs;
    this.isBurst = this.#start.isBurst(this.#source, nowMs);
    this.#start.begun();
    this.isActive = true;
    this.#isRebuffering = false;
    this.hasJustStarted = true;
    this.restarted = isFresh || this.#mustForget;
    this.#mustForget = false;
    // What is left of a cut utterance fades out in the lead-in.
    const fade = Math.max(0, this.#fadeEnd - this.#played);
    const leadIn = Math.max(fade, Math.round(leadInMs * SAMPLES_PER_MS));
    const needed = Math.max(1, Math.round(playedInFrame + this.#lookaheadSamples) - leadIn);
    const steps = Math.min(MAX_STEPS_PER_FRAME, Math.ceil(needed / SAMPLES_PER_FRAME));
    let total = 0;
    for (let i = 0; i < steps; i++) {
      total += speechSamplesInStep(this.#step + i);
    }
    // Silence before the first sample makes whole steps. The listener hears the lead-in of it.
    const padding = Math.max(0, total - needed);
    const firstSample = this.#fed + padding;
    this.#feed(0, padding);
    for (let i = 1; i < steps; i++) {
      this.#feed(i, 0);
    }
    this.#played = firstSample - leadIn;
    for (let i = 0; i < leadIn; i++) {
      this.#ring[(this.#played + i) % RING] =
        i < fade ? this.#fade[this.#fade.length - fade + i]! : 0;
    }
    return steps;
  }

  /**
   * Feeds one step: `padding` samples of silence, then the source's samples, then silence if they
   * are too few.
   */
  #feed(slot: number, padding: number): void {
    const count = speechSamplesInStep(this.#step);
    const pcm = this.stepPcm[slot]!;
    pcm.fill(0, 0, padding);
    const wanted = count - padding;
    const wasShort = this.#isRebuffering;
    let got = 0;
    if (
      !wasShort ||
      this.#source.isDone ||
      this.#source.available >= wanted + this.#start.reserveMs * SAMPLES_PER_MS
    ) {
      this.#isRebuffering = false;
      got = this.#source.read(pcm, padding, wanted);
    }
    this.#start.taken(got, this.#source.available);
    pcm.fill(0, padding + got, count);
    this.#measure(pcm, count, got, wasShort);
    if (got < wanted && !this.#source.isDone && !this.#isRebuffering) {
      this.#isRebuffering = true;
    }
    const start = this.#fed % RING;
    for (let i = 0; i < count; i++) {
      this.#ring[(start + i) % RING] = pcm[i]!;
    }
    if (wasShort && got > 0) {
      this.#ramp(this.#fed, 1);
    }
    if (got < wanted && (got > 0 || this.#endsInSpeech)) {
      this.#ramp(this.#fed + padding + got - 1, -1);
    }
    this.#endsInSpeech = got === wanted;
    this.stepSamples[slot] = count;
    this.#fed += count;
    this.#step++;
  }

  /**
   * Softens an edge of speech for the listener, so that it does not click: a source that runs dry
   * stops anywhere in a wave. Only what was not played yet changes.
   * @param edge the place of the first or last sample of speech
   * @param inwards the direction from there into the speech
   */
  #ramp(edge: number, inwards: 1 | -1): void {
    const length = this.#fade.length + 1;
    for (let i = 1; i < length; i++) {
      const place = edge + inwards * (i - 1);
      if (place >= this.#played) {
        const at = place % RING;
        this.#ring[at] = Math.round((this.#ring[at]! * i) / length);
      }
    }
  }

  /** @param wasShort the source ran empty within the step before */
  #measure(pcm: Int16Array, count: number, got: number, wasShort: boolean): void {
    const durationMs = count / SAMPLES_PER_MS;
    this.inaudibleMs = isAudible(pcm, count) ? 0 : this.inaudibleMs + durationMs;
    if (got > 0) {
      // Audio that arrives soon after the source ran empty was late: keep a larger margin from now
      // on.
      if ((wasShort || this.starvedMs > 0) && this.starvedMs < SAME_UTTERANCE_MS) {
        this.underruns++;
        this.#start.pieceWasLate();
      }
      this.starvedMs = 0;
    } else {
      this.starvedMs += durationMs;
    }
  }

  /**
   * Fills `out` with the next 20 ms (320 samples) for the listener.
   * @returns false for silence because the stream rests
   */
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

  /**
   * Drops everything not yet played (SKIP, PLAY_IMMEDIATE). The next FADE_MS fade out, so that the
   * cut does not click.
   */
  flush(): void {
    const count = Math.min(this.#fade.length, Math.max(0, this.#fed - this.#played));
    for (let i = 0; i < count; i++) {
      const at = (this.#played + i) % RING;
      const faded = Math.round(this.#ring[at]! * (1 - i / count));
      this.#ring[at] = faded;
      this.#fade[this.#fade.length - count + i] = faded;
    }
    this.#fed = this.#fadeEnd = this.#played + count;
    this.#endsInSpeech = false;
    // One and a half frames before rest: long enough for the next packet to contain the fade.
    this.starvedMs = TAIL_MS - 1.5 * FRAME_MS;
    this.inaudibleMs = Infinity;
    this.#isRebuffering = false;
    this.#mustForget = true;
    this.#start.reset();
  }

  #rest(): void {
    this.isActive = false;
    this.#isRebuffering = false;
    this.starvedMs = Infinity;
    this.#played = this.#fed;
  }
}
