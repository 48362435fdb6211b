// The way of a frame, top to bottom: speech → features → one batched model run → articulation → picture → coded frame → packets.
import { monotonicMs } from '../base/time.ts';
import { FRAME_MS } from '../media/timeline.ts';
import { MAX_STEPS_PER_FRAME } from '../pipeline/speech/speech-stream.ts';
import type { SpeechModel, ModelState } from '../pipeline/inference/speech-model.ts';
import type { WorkerMetrics } from './worker-metrics.ts';
import type { WorkerSession } from './worker-session.ts';

/** Turns the crank for all sessions that are due on the same beat. Holds nothing of theirs between two calls. */
export class FramePipeline {
  readonly #model: SpeechModel;
  readonly #metrics: WorkerMetrics;
  readonly #steps: Int32Array;
  readonly #batch: ModelState[] = [];

  constructor(model: SpeechModel, instruments: WorkerMetrics, maxSessions: number) {
    this.#model = model;
    this.#metrics = instruments;
    this.#steps = new Int32Array(maxSessions);
  }

  /** @param due sessions whose frame is due; `frameOf` each is `session.lastFrame`, already advanced by the beat. */
  async run(due: readonly WorkerSession[], count: number): Promise<void> {
    const deepest = this.#prepareSpeech(due, count);
    for (let round = 0; round < deepest; round++) {
      await this.#runModel(due, count, round);
    }
    for (let i = 0; i < count; i++) {
      const session = due[i]!;
      try {
        if (this.#steps[i]! > 0 && !session.isSoundOnly) {
          session.audioRenderer?.requestFrame(session.lastFrame);
        }
        this.#produceFrame(session, this.#steps[i]!);
      } catch (error) {
        session.fail(error);
      }
    }
  }

  /** Asks each session's stream what the model has to hear for this frame. @returns the most steps any of them needs. */
  #prepareSpeech(due: readonly WorkerSession[], count: number): number {
    const nowMs = monotonicMs();
    let deepest = 0;
    for (let i = 0; i < count; i++) {
      const session = due[i]!;
      const { stream } = session;
      const steps = stream.prepareFrame(session.lastFrame * FRAME_MS, session.nextPacketMs, nowMs);
      if (stream.restarted) {
        session.audioRenderer?.reset();
        session.mel.reset();
        session.modelState.reset();
        session.articulation.reopen();
      }
      this.#steps[i] = steps;
      deepest = Math.max(deepest, Math.min(steps, MAX_STEPS_PER_FRAME));
    }
    const drainMs = (monotonicMs() - nowMs) / count;
    for (let i = 0; i < count; i++) {
      due[i]!.stats.stage('drain', drainMs);
    }
    this.#metrics.stage.drain.observe(drainMs / 1000);
    return deepest;
  }

  /** Features of step `round` of each session that has one, then a single run of the model for all of them. */
  async #runModel(due: readonly WorkerSession[], count: number, round: number): Promise<void> {
    const batch = this.#batch;
    const instruments = this.#metrics;
    const startMs = monotonicMs();
    batch.length = 0;
    for (let i = 0; i < count; i++) {
      if (this.#steps[i]! <= round || due[i]!.isSoundOnly) {
        continue;
      }
      const { stream, mel, modelState: slot, audioRenderer: hearing } = due[i]!;
      if (hearing !== undefined) {
        hearing.pushAudio(stream.stepPcm[round]!, stream.stepSamples[round]!);
        continue;
      }
      mel.step(stream.stepPcm[round]!, stream.stepSamples[round]!, slot.mel, 0);
      batch.push(slot);
    }
    if (batch.length === 0) {
      return;
    }
    const featuresMs = monotonicMs();
    await this.#model.run(batch);
    const doneMs = monotonicMs();
    instruments.stage.features.observe((featuresMs - startMs) / batch.length / 1000);
    instruments.stage.inference.observe((doneMs - featuresMs) / 1000);
    instruments.batch.observe(batch.length);
    for (let i = 0; i < count; i++) {
      if (this.#steps[i]! <= round || due[i]!.isSoundOnly || due[i]!.audioRenderer !== undefined) {
        continue;
      }
      due[i]!.stats.stage('features', (featuresMs - startMs) / batch.length);
      due[i]!.stats.stage('inference', (doneMs - featuresMs) / batch.length);
    }
  }

  /** Draws, codes and sends one session's frame; one without a picture only says when it speaks. */
  #produceFrame(session: WorkerSession, steps: number): void {
    const instruments = this.#metrics;
    const { video, peer, renderer: face, stats: ledger, stream, state } = session;
    if (session.isSoundOnly && !session.isOver) {
      session.announce(state.update(stream, monotonicMs()));
    }
    if (session.isOver || video === undefined || peer === undefined) {
      return;
    }
    const startMs = monotonicMs();
    session.articulation.update(stream.isActive ? session.modelState.articulation : undefined);
    const isFrozen = !session.spec.handleSilence && !stream.isActive && ledger.framesSent > 0;
    const isPrepared = video.takePrepared();
    if (isPrepared || isFrozen) {
      face.hold();
    } else {
      face.draw(session.lastFrame, session.articulation.values, state.isSpeaking);
    }
    const drawnMs = monotonicMs();
    const cause = video.keyCause;
    const isCoded = isPrepared || video.encode(face.picture, face.dirty);
    const codedMs = monotonicMs();
    let packets = 0;
    if (isCoded) {
      packets = peer.sendVideo(
        video.data,
        video.length,
        video.isKey,
        session.lastFrame * FRAME_MS,
        codedMs,
      );
    } else {
      instruments.skippedByRateControl.add();
    }
    const sentMs = monotonicMs();

    if (video.isKey) {
      video.keyCause = undefined;
      ledger.keyFrames++;
      instruments.keyFrames[video.codec][cause ?? 'other'].add();
    }
    // The first frame's time is the beat of its phase before the session was ready: it is late for nobody, and placement must not take it for a neighbour's that is.
    if (ledger.framesSent > 0) {
      const lateMs = sentMs - (session.epochMs + session.lastFrame * FRAME_MS);
      ledger.latenessMs.record(lateMs);
      instruments.lateness.observe(lateMs / 1000);
    }
    ledger.framesSent++;
    ledger.bytesSent += video.length;
    ledger.stage('render', drawnMs - startMs);
    ledger.stage('encode', codedMs - drawnMs);
    const packetizeMs = isCoded ? peer.packetizeMs : 0;
    ledger.stage('packetize', packetizeMs);
    ledger.stage('send', sentMs - codedMs - packetizeMs);
    instruments.stage.render.observe((drawnMs - startMs) / 1000);
    instruments.stage.encode.observe((codedMs - drawnMs) / 1000);
    instruments.stage.packetize.observe(packetizeMs / 1000);
    instruments.stage.send.observe((sentMs - codedMs - packetizeMs) / 1000);
    instruments.framesSent[video.codec][state.isSpeaking ? 'speaking' : 'idle'].add();
    instruments.encodedBytes[video.codec].add(video.length);
    instruments.rtp.video.add(packets);
    instruments.rtp.videoBytes.add(video.length);
    if (stream.hasJustStarted && steps > 0) {
      // The picture that was prepared does not know of it yet: the next one does.
      const lipsMs = sentMs - stream.utteranceArrivalMs + (isPrepared ? FRAME_MS : 0);
      ledger.audioToLipsMs.record(lipsMs);
      const pace = stream.isBurst
        ? 'burst'
        : session.audioRenderer === undefined
          ? 'paced'
          : 'paced_network';
      instruments.audioToLips[session.speech.input][pace].observe(lipsMs / 1000, session.exemplar);
    }
    session.announce(state.update(stream, sentMs));
    if (ledger.framesSent === 1) {
      session.announceFirstFrame(sentMs);
    }
  }
}
