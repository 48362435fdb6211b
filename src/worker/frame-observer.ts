// The figures of the frame pipeline: into the session's own statistics and the worker's metrics.
import { FRAME_MS } from '../media/timeline.ts';
import type { WorkerMetrics } from './worker-metrics.ts';
import type { WorkerSession } from './worker-session.ts';

/**
 * Monotonic times of the steps of one frame. The pipeline refills the same object for each frame.
 */
export interface FrameTimes {
  startMs: number;
  drawnMs: number;
  codedMs: number;
  sentMs: number;
}

/** Keeps nothing of a session; allocates nothing per frame. */
export class FrameObserver {
  readonly #metrics: WorkerMetrics;

  constructor(metrics: WorkerMetrics) {
    this.#metrics = metrics;
  }

  /** The speech of `count` sessions was taken from their streams, `tookMs` in all. */
  speechPrepared(due: readonly WorkerSession[], count: number, tookMs: number): void {
    const perSessionMs = tookMs / count;
    for (let i = 0; i < count; i++) {
      due[i]!.stats.stage('drain', perSessionMs);
    }
    this.#metrics.stage.drain.observe(perSessionMs / 1000);
  }

  /**
   * The model ran once for `size` sessions of `due`, those with the indices in `batch`. Each bears an
   * equal part of `featuresMs` and `modelMs`.
   */
  modelRan(
    due: readonly WorkerSession[],
    batch: Int32Array,
    size: number,
    featuresMs: number,
    modelMs: number,
  ): void {
    const { stage, batch: batchSize } = this.#metrics;
    for (let i = 0; i < size; i++) {
      const { stats } = due[batch[i]!]!;
      stats.stage('features', featuresMs / size);
      stats.stage('inference', modelMs / size);
    }
    stage.features.observe(featuresMs / size / 1000);
    stage.inference.observe(modelMs / 1000);
    batchSize.observe(size);
  }

  /** One frame went through `draw`, `encode` and `send` of the session's FrameTrack. */
  frameSent(session: WorkerSession, times: FrameTimes): void {
    this.#observeFrame(session);
    this.#observeLateness(session, times);
    session.stats.framesSent++;
    this.#observeStages(session, times);
    if (session.stream.hasJustStarted) {
      this.#observeAudioToLips(session, times);
    }
  }

  #observeFrame({ frames, state, stats }: WorkerSession): void {
    const metrics = this.#metrics;
    const { codec, isKey, keyFrameCause, length } = frames.video!;
    if (!frames.isCoded) {
      metrics.skippedByRateControl.add();
    }
    if (isKey) {
      stats.keyFrames++;
      metrics.keyFrames[codec][keyFrameCause].add();
    }
    metrics.framesSent[codec][state.isSpeaking ? 'speaking' : 'idle'].add();
    metrics.encodedBytes[codec].add(length);
    metrics.rtp.video.add(frames.packets);
    metrics.rtp.videoBytes.add(length);
  }

  /**
   * Leaves out the first frame: its time is the tick of its slot before the session was ready.
   * Nobody waited for it, and placement must not take it for a late one.
   */
  #observeLateness({ clock, stats }: WorkerSession, { sentMs }: FrameTimes): void {
    if (stats.framesSent === 0) {
      return;
    }
    const lateMs = clock.lateMs(sentMs);
    stats.latenessMs.record(lateMs);
    this.#metrics.lateness.observe(lateMs / 1000);
  }

  #observeStages({ frames, peer, stats }: WorkerSession, times: FrameTimes): void {
    const { stage } = this.#metrics;
    const renderMs = times.drawnMs - times.startMs;
    const encodeMs = times.codedMs - times.drawnMs;
    const packetizeMs = frames.isCoded ? peer!.packetizeMs : 0;
    const sendMs = times.sentMs - times.codedMs - packetizeMs;
    stats.stage('render', renderMs);
    stats.stage('encode', encodeMs);
    stats.stage('packetize', packetizeMs);
    stats.stage('send', sendMs);
    stage.render.observe(renderMs / 1000);
    stage.encode.observe(encodeMs / 1000);
    stage.packetize.observe(packetizeMs / 1000);
    stage.send.observe(sendMs / 1000);
  }

  /** Time from the arrival of speech to the first frame that shows it. */
  #observeAudioToLips(session: WorkerSession, times: FrameTimes): void {
    const { stream, frames, stats, speech, exemplar } = session;
    // A prepared picture was drawn before the speech came: the next frame is the first to show it.
    const lipsMs = times.sentMs - stream.utteranceArrivalMs + (frames.isPrepared ? FRAME_MS : 0);
    const livePace = frames.audioRenderer === undefined ? 'paced' : 'paced_network';
    const pace = stream.isBurst ? 'burst' : livePace;
    stats.audioToLipsMs.record(lipsMs);
    this.#metrics.audioToLips[speech.input][pace].observe(lipsMs / 1000, exemplar);
    session.announceLips(times);
  }
}
