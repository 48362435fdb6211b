// The face of one session: which one it is, how it is drawn, and what it is told to do.
import { randomInt } from 'node:crypto';
import type { SessionSpec } from '../link/messages.ts';
import { EMOTIONS } from '../media/articulation.ts';
import type { LookCommand } from '../pipeline/render/renderer.ts';
import { RigRenderer, type RigRendererOptions } from '../pipeline/render/rig-renderer.ts';
import { type InferenceListener, Wav2LipRenderer } from '../pipeline/wav2lip/wav2lip-renderer.ts';
import { FrameTrack } from './frame-track.ts';
import type { WorkerContext } from './worker-context.ts';

/** One per session, for its life. */
export class SessionFace {
  readonly frames: FrameTrack;
  readonly #spec: SessionSpec;
  readonly #context: Pick<WorkerContext, 'faces' | 'media'>;
  /** Index into EMOTIONS. */
  #emotion: number;

  /** @throws Error when the face is malformed or the inference thread is gone */
  constructor(
    spec: SessionSpec,
    context: Pick<WorkerContext, 'faces' | 'media' | 'inferenceClient'>,
    listener: InferenceListener,
  ) {
    this.#spec = spec;
    this.#context = context;
    this.#emotion = spec.emotion;
    const { face, handleSilence, renderer: kind } = spec;
    const { faces, inferenceClient } = context;
    const look = this.#look();
    const asset = faces.take(face.faceId, face.bytes);
    const audioRenderer =
      kind === 'wav2lip' && inferenceClient !== undefined
        ? new Wav2LipRenderer(asset, face.bytes, inferenceClient, look, listener)
        : undefined;
    this.frames = new FrameTrack({
      renderer: audioRenderer ?? new RigRenderer(asset, look),
      audioRenderer,
      freezesInSilence: !handleSilence,
      delaysFrames: spec.delaysFrames ?? false,
    });
  }

  /**
   * Another face goes on. A renderer that takes the speech itself keeps its own.
   * @returns whether it did
   * @throws Error when it is malformed
   */
  replace({ faceId, bytes }: SessionSpec['face']): boolean {
    if (this.frames.audioRenderer !== undefined) {
      return false;
    }
    const asset = this.#context.faces.take(faceId, bytes);
    this.frames.replaceRenderer(new RigRenderer(asset, this.#look()));
    return true;
  }

  /** What the face is told to do. */
  obey(command: LookCommand): void {
    if (command.type === 'emotion') {
      this.#emotion = EMOTIONS.indexOf(command.emotion);
    }
    this.frames.renderer.obey(command);
  }

  #look(): RigRendererOptions {
    const { startFrame } = this.#spec;
    const { motion } = this.#context.media;
    return { seed: randomInt(2 ** 31), emotion: this.#emotion, motion, startFrame };
  }
}
