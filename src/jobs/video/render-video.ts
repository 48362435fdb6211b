// Renders a static video, faster than real time, through the stages of the live path: speech → features → model → articulation → picture → coded frame.
import { PICTURE_SIZE } from '../../media/picture.ts';
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

/** Nobody waits for these frames on a narrow path, so they get more bits than live ones. */
const VIDEO_KBPS = 1500;
const SOUND_PER_FRAME = AUDIO_RATE / FPS;
/** The mouth is eased shut over the last frames, lest it stands open when the video ends in the middle of a sound. */
const CLOSING_FRAMES = 2;

export interface RenderOptions {
  readonly model: SpeechModel;
  readonly face: SharedArrayBuffer;
  readonly emotion: number;
  readonly startFrame: number;
  /** The same seed gives the same video, bit for bit. */
  readonly seed: number;
  readonly sound: PcmStream;
  readonly frames: number;
  readonly mp4File: string;
  readonly onInit: (bytes: Uint8Array) => Promise<void>;
  readonly onSegment: (bytes: Uint8Array, index: number) => Promise<void>;
}

/** @throws AudioError when the sound turns out broken; whatever onInit and onSegment throw */
export async function renderVideo({
  model,
  face,
  emotion,
  startFrame,
  seed,
  sound,
  frames,
  mp4File,
  onInit,
  onSegment,
}: RenderOptions): Promise<void> {
  const soundtrack = new Soundtrack(sound);
  const lips = new ArticulationSource(model, soundtrack);
  const stage = new RigRenderer(new native.FaceAsset(new Uint8Array(face)), {
    seed,
    emotion,
    startFrame,
  });
  const video = new VideoTrack('h264', VIDEO_KBPS);
  const out: (() => Promise<void>)[] = [];
  let segments = 0;
  const muxer = await Muxer.start({
    width: PICTURE_SIZE,
    height: PICTURE_SIZE,
    channels: sound.channels,
    frames,
    mp4File,
    onInit: (bytes) => {
      out.push(() => onInit(bytes));
    },
    onSegment: (bytes) => {
      const index = segments;
      segments++;
      out.push(() => onSegment(bytes, index));
    },
  });
  const deliver = async (): Promise<void> => {
    for (let next = out.shift(); next !== undefined; next = out.shift()) {
      await next();
    }
  };
  try {
    await lips.start();
    for (let frame = 0; frame < frames; frame++) {
      if (frame === frames - CLOSING_FRAMES) {
        lips.close();
      }
      await lips.step();
      stage.draw(startFrame + frame, lips.articulation.values, lips.isSpeaking);
      if (isSegmentStart(frame)) {
        video.requestKeyFrame();
      }
      if (!video.encode(stage.picture, stage.dirty)) {
        throw new Error('the video encoder dropped a frame');
      }
      if (video.isKey) {
        video.keyCause = undefined;
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
