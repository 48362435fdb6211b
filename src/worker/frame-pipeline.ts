// The way of a frame, from top to bottom: speech → features → one batched run of the model →
// articulation → picture → coded frame → packets.
import { monotonicMs } from '../base/time.ts';
import type { ModelState, SpeechModel } from '../pipeline/inference/speech-model.ts';
import { FrameObserver, type FrameTimes } from './frame-observer.ts';
import type { WorkerMetrics } from './worker-metrics.ts';
import type { WorkerSession } from './worker-session.ts';

/** Makes the frames of all sessions that are due at one tick. Allocates nothing per frame. */
export class FramePipeline {
  readonly #model: SpeechModel;
  readonly #observer: FrameObserver;
  /** Model steps that each due session needs for its frame. */
  readonly #steps: Int32Array;
  /** The most steps that any of them needs. */
  #rounds = 0;
  /** Indices in `due` of the sessions in one run of the model, and their states. Never shrink. */
  readonly #batch: Int32Array;
  readonly #states: ModelState[] = [];
  readonly #times: FrameTimes = { startMs: 0, drawnMs: 0, codedMs: 0, sentMs: 0 };

  /** @param maxSessions most sessions of one `run` */
  constructor(model: SpeechModel, metrics: WorkerMetrics, maxSessions: number) {
    this.#model = model;
    this.#observer = new FrameObserver(metrics);
    this.#steps = new Int32Array(maxSessions);
    this.#batch = new Int32Array(maxSessions);
  }

  /**
   * Makes and sends the picture that is due by the `clock` of the first `count` sessions of `due`,
   * for which `prepareSpeech` was called. What goes wrong with one of them ends that session alone.
   */
  async run(due: readonly WorkerSession[], count: number): Promise<void> {
    for (let round = 0; round < this.#rounds; round++) {
      const startMs = monotonicMs();
      const size = this.#computeFeatures(due, count, round);
      if (size > 0) {
        const featuresMs = monotonicMs();
        await this.#model.run(this.#states, size);
        const modelMs = monotonicMs() - featuresMs;
        this.#observer.modelRan(due, this.#batch, size, featuresMs - startMs, modelMs);
      }
    }
    for (let i = 0; i < count; i++) {
      const session = due[i]!;
      try {
        if (session.isAudioOnly) {
          announceSpeech(session);
        } else {
          this.#showFrame(session, this.#steps[i]!);
        }
      } catch (error) {
        session.fail(error);
      }
    }
  }

  /**
   * Takes from each session's stream the speech that the model must hear for this frame. An
   * utterance that begins is in the packet of sound that is sent next.
   * @param nowMs monotonic time of the tick
   */
  prepareSpeech(due: readonly WorkerSession[], count: number, nowMs: number): void {
    const startMs = monotonicMs();
    this.#rounds = 0;
    for (let i = 0; i < count; i++) {
      const session = due[i]!;
      this.#steps[i] = 0;
      try {
        this.#steps[i] = prepareFrame(session, nowMs);
      } catch (error) {
        session.fail(error);
      }
      this.#rounds = Math.max(this.#rounds, this.#steps[i]!);
    }
    this.#observer.speechPrepared(due, count, monotonicMs() - startMs);
  }

  /**
   * Features of step `round` of each session that has one, into `#states` for one run of the model.
   * @returns sessions in the run
   */
  #computeFeatures(due: readonly WorkerSession[], count: number, round: number): number {
    const batch = this.#batch;
    const states = this.#states;
    let size = 0;
    for (let i = 0; i < count; i++) {
      const session = due[i]!;
      if (this.#steps[i]! <= round || session.isAudioOnly || session.isOver) {
        continue;
      }
      const { stream, frames, mel, modelState } = session;
      const pcm = stream.stepPcm[round]!;
      const samples = stream.stepSamples[round]!;
      if (frames.audioRenderer !== undefined) {
        frames.audioRenderer.pushAudio(pcm, samples);
        continue;
      }
      mel.step(pcm, samples, modelState.mel, 0);
      batch[size] = i;
      states[size] = modelState;
      size++;
    }
    return size;
  }

  /** Draws, codes and sends one frame, and tells the client when its speech begins or ends. */
  #showFrame(session: WorkerSession, steps: number): void {
    const { clock, frames, peer, stream, state, modelState } = session;
    if (session.isOver || frames.video === undefined || peer === undefined) {
      return;
    }
    if (steps > 0) {
      frames.audioRenderer?.requestFrame(clock.frame);
    }
    const times = this.#times;
    times.startMs = monotonicMs();
    const articulation = stream.isActive ? modelState.articulation : undefined;
    frames.draw(clock.picturePosition, articulation, state.isSpeaking);
    times.drawnMs = monotonicMs();
    frames.encode();
    times.codedMs = monotonicMs();
    frames.send(peer, clock.pictureMediaMs, times.codedMs);
    session.motion?.add(frames, peer);
    times.sentMs = monotonicMs();
    this.#observer.frameSent(session, times);
    session.announce(state.update(stream, times.sentMs));
    if (session.stats.framesSent === 1) {
      session.announceFirstFrame(times.sentMs);
    }
  }
}

/** @returns model steps */
function prepareFrame(session: WorkerSession, nowMs: number): number {
  const { clock, stream, audio } = session;
  const steps = stream.prepareFrame(clock.frameMs, clock.epochMs + audio.nextPacketMs, nowMs);
  if (stream.restarted) {
    session.forgetSpeech();
  }
  return steps;
}

function announceSpeech(session: WorkerSession): void {
  if (!session.isOver) {
    session.announce(session.state.update(session.stream, monotonicMs()));
  }
}
