// Renders a static video faster than real time, with the same pipeline as live sessions: speech,
// features, model, articulation, picture, coded frame.
import type { Motion } from '../../media/articulation.ts';
import { AUDIO_RATE, FPS } from '../../media/timeline.ts';
import { native } from '../../native/addon.ts';
import { VideoTrack } from '../../pipeline/encode/video-track.ts';
import type { SpeechModel } from '../../pipeline/inference/speech-model.ts';
import { RigRenderer } from '../../pipeline/render/rig-renderer.ts';
import type { PcmStream } from './audio/pcm-stream.ts';
import { ArticulationSource } from './articulation-source.ts';
import { Muxer } from './muxer.ts';
import { isSegmentStart } from './hls.ts';
import { Soundtrack } from './soundtrack.ts';

/**
 * Video bitrate, kbit/s: above that of live video, because these frames do not cross a network in
 * real time.
 */
const VIDEO_KBPS = 1500;
/** Samples per channel and frame. */
const SOUND_PER_FRAME = AUDIO_RATE / FPS;
/** The mouth closes over these last frames, because the audio may end in the middle of a sound. */
const CLOSING_FRAMES = 2;

/** What to render, and where to. */
export interface RenderOptions {
  readonly model: SpeechModel;
  /** A face asset (src/media/face-asset.ts). */
  readonly face: SharedArrayBuffer;
  readonly emotion: number;
  readonly motion: Motion;
  /** The frame of the idle motion at which the video begins. */
  readonly startFrame: number;
  /** The same seed gives the same video, bit for bit. */
  readonly seed: number;
  readonly sound: PcmStream;
  readonly frames: number;
  readonly mp4File: string;
  /** Called before each frame; what it throws ends the rendering. */
  readonly check?: () => void;
  readonly onInit: (bytes: Uint8Array) => Promise<void>;
  readonly onSegment: (bytes: Uint8Array, index: number) => Promise<void>;
}

/**
 * Renders one video.
 * @throws AudioError when the audio is broken
 * @throws whatever onInit and onSegment throw
 */
export async function renderVideo({
  model,
  face,
  emotion,
  motion,
  startFrame,
  seed,
  sound,
  frames,
  mp4File,
  check = () => {},
  onInit,
  onSegment,
}: RenderOptions): Promise<void> {
  const soundtrack = new Soundtrack(sound);
  const articulation = new ArticulationSource(model, soundtrack);
  const renderer = new RigRenderer(new native.FaceAsset(new Uint8Array(face)), {
    seed,
    emotion,
    motion,
    startFrame,
  });
  const { size } = renderer;
  const video = new VideoTrack('h264', VIDEO_KBPS, undefined, size);
  const pending: (() => Promise<void>)[] = [];
  let segments = 0;
  const muxer = await Muxer.start({
    ...size,
    channels: sound.channels,
    frames,
    mp4File,
    onInit: (bytes) => {
      pending.push(() => onInit(bytes));
    },
    onSegment: (bytes) => {
      const index = segments;
      segments++;
      pending.push(() => onSegment(bytes, index));
    },
  });
  const deliver = async (): Promise<void> => {
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
      await next();
    }
  };
  try {
    await articulation.start();
    for (let frame = 0; frame < frames; frame++) {
      check();
      if (frame === frames - CLOSING_FRAMES) {
        articulation.close();
      }
      await articulation.step();
      renderer.draw(startFrame + frame, articulation.track.values, articulation.isSpeaking);
      if (isSegmentStart(frame)) {
        video.requestKeyFrame();
      }
      if (!video.encode(renderer.picture, renderer.dirty, renderer.motion)) {
        throw new Error('the video encoder dropped a frame');
      }
      const [unit, samples] = [
        video.data.slice(0, video.length),
        await soundtrack.readSound(SOUND_PER_FRAME),
      ];
      await muxer.addSound(samples);
      await muxer.addFrame(frame, unit, video.isKey);
      await deliver();
    }
    await muxer.finish();
    await deliver();
  } catch (error) {
    await muxer.cancel();
    throw error;
  } finally {
    video.close();
    soundtrack.close();
  }
}
