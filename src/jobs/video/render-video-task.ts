// The task that renders one static video on a thread of the jobs pool. What it makes goes back piece by piece over a port, each piece acknowledged.
import type { MessagePort } from 'node:worker_threads';
import { SpeechModel } from '../../pipeline/inference/speech-model.ts';
import { openAudio, type AudioInput } from './audio/open-audio.ts';
import { AudioError } from './audio/pcm-stream.ts';
import { renderVideo } from './render-video.ts';

export interface RenderTask {
  readonly audio: AudioInput;
  /** A face asset (src/media/face-asset.ts). */
  readonly face: SharedArrayBuffer;
  readonly emotion: number;
  readonly startFrame: number;
  readonly seed: number;
  readonly frames: number;
  /** Where the MP4 is written. It is of use once the task is done. */
  readonly mp4File: string;
  readonly port: MessagePort;
}

/** Over the port, to be answered with any message when it is stored: so no more than one piece waits for the disk. */
export type RenderedPiece =
  | { readonly type: 'init'; readonly bytes: Uint8Array }
  | { readonly type: 'segment'; readonly index: number; readonly bytes: Uint8Array };

/** `failed`: in words for whoever sent the audio. */
export type RenderResult = { readonly failed?: string };

let model: Promise<SpeechModel> | undefined;

export default async function renderTask({
  audio,
  port,
  ...options
}: RenderTask): Promise<RenderResult> {
  const send = (piece: RenderedPiece): Promise<void> =>
    new Promise((resolve, reject) => {
      const gone = (): void => {
        reject(new Error('nobody stores what is rendered any more'));
      };
      port.once('close', gone);
      port.once('message', () => {
        port.off('close', gone);
        resolve();
      });
      port.postMessage(piece);
    });
  try {
    model ??= SpeechModel.load({ maxBatch: 1 });
    await renderVideo({
      ...options,
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
    model = undefined; // perhaps its files come later
    throw error;
  } finally {
    port.close();
  }
}
