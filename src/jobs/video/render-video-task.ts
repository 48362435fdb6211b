// The job-pool task that renders a static video. It sends the output over a port piece by piece,
// and each piece is acknowledged.
import type { MessagePort } from 'node:worker_threads';
import type { Motion } from '../../media/articulation.ts';
import { SpeechModel } from '../../pipeline/inference/speech-model.ts';
import { openAudio, type AudioInput } from './audio/open-audio.ts';
import { AudioError } from './audio/pcm-stream.ts';
import { checkStop, Stopped, type StopFlag } from '../../base/stop-flag.ts';
import { renderVideo } from './render-video.ts';

/** What to render. */
export interface RenderTask {
  readonly audio: AudioInput;
  /** A face asset (src/media/face-asset.ts). */
  readonly face: SharedArrayBuffer;
  readonly emotion: number;
  readonly motion: Motion;
  readonly startFrame: number;
  readonly seed: number;
  readonly frames: number;
  /** Path of the MP4. The file is complete when the task is done. */
  readonly mp4File: string;
  readonly port: MessagePort;
  /** Ends the task before the next frame. */
  readonly stop?: StopFlag;
}

/**
 * A message over the port. Answer it with any message when it is stored, so that only one piece
 * waits for the disk.
 */
export type RenderedPiece =
  | { readonly type: 'init'; readonly bytes: Uint8Array }
  | { readonly type: 'segment'; readonly index: number; readonly bytes: Uint8Array };

/** `failed`: why the audio could not be rendered, as a text for the client that sent it. */
export type RenderResult = { readonly failed?: string };

let model: Promise<SpeechModel> | undefined;

/**
 * Renders a static video and posts its pieces to `port`: the initialization segment, then the media
 * segments in order. Waits for the acknowledgement of each piece before it makes the next one, so
 * one piece at most is in flight. Closes the port at the end.
 * @returns `failed` when the audio cannot be used, with text for the client
 * @throws Error when the receiver closes the port early, or when rendering fails
 */
export default async function renderTask({
  audio,
  port,
  stop,
  ...options
}: RenderTask): Promise<RenderResult> {
  // From the start: the port may close while a frame is drawn, and tells that only once.
  const closed = new Promise<never>((_, reject) => {
    port.once('close', () => {
      reject(new Error('the receiver of the rendered video closed its port'));
    });
  });
  closed.catch(() => {});
  const send = async (piece: RenderedPiece): Promise<void> => {
    const stored = new Promise((resolve) => {
      port.once('message', resolve);
    });
    port.postMessage(piece);
    await Promise.race([stored, closed]);
  };
  try {
    model ??= SpeechModel.load({ maxBatch: 1 });
    await renderVideo({
      ...options,
      check: () => {
        checkStop(stop);
      },
      model: await model,
      sound: await openAudio(audio),
      onInit: (bytes) => send({ type: 'init', bytes }),
      onSegment: (bytes, index) => send({ type: 'segment', index, bytes }),
    });
    return {};
  } catch (error) {
    if (error instanceof AudioError) {
      return { failed: error.message };
    }
    if (error instanceof Stopped) {
      throw error;
    }
    model = undefined; // try again next time: the model files may have been added
    throw error;
  } finally {
    port.close();
  }
}
