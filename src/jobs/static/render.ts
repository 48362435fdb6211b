// Renders a static video, faster than real time, through the stages of the live path: speech → features → model → articulation → picture → coded frame.
import { PICTURE_SIZE } from '../../media/picture.ts';
import { AUDIO_RATE, FPS, FRAME_MS, SPEECH_RATE, speechSamplesInStep } from '../../media/timeline.ts';
import { native, type MelFrontEnd } from '../../native/addon.ts';
import { VideoTrack } from '../../worker/encode/video-track.ts';
import { ArticulationTrack } from '../../worker/features/articulation-track.ts';
import type { SpeechModel, SpeechSlot } from '../../worker/inference/speech-model.ts';
import { FaceStage, faceAssetOf } from '../../worker/render/face-stage.ts';
import type { PcmStream } from './audio/pcm-stream.ts';
import { Muxer } from './muxer.ts';
import { isSegmentStart } from './plan.ts';
import { Soundtrack } from './soundtrack.ts';

/** Nobody waits for these frames on a narrow path, so they get more bits than live ones. */
const VIDEO_KBPS = 1500;
const SOUND_PER_FRAME = AUDIO_RATE / FPS;
/** The mouth is eased shut over the last frames, lest it stands open when the video ends in the middle of a sound. */
const CLOSING_FRAMES = 2;
/** Louder than this (of 32768) is speech to the idle motion; quiet for this long is not, as in the live path. */
const AUDIBLE_PEAK = 128;
const INAUDIBLE_FRAMES = Math.round(1200 / FRAME_MS);

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
export async function renderVideo({ model, face, emotion, startFrame, seed, sound, frames, mp4File, onInit, onSegment }: RenderOptions): Promise<void> {
  const soundtrack = new Soundtrack(sound);
  const lips = new Lips(model, soundtrack);
  const stage = new FaceStage(faceAssetOf(face), { seed, emotion, startFrame });
  const video = new VideoTrack('h264', VIDEO_KBPS);
  const out: (() => Promise<void>)[] = [];
  let segments = 0;
  const muxer = await Muxer.start({
    width: PICTURE_SIZE, height: PICTURE_SIZE, channels: sound.channels, frames, mp4File,
    onInit: (bytes) => { out.push(() => onInit(bytes)); },
    onSegment: (bytes) => { const index = segments; segments += 1; out.push(() => onSegment(bytes, index)); },
  });
  const deliver = async (): Promise<void> => { for (let next = out.shift(); next !== undefined; next = out.shift()) await next(); };
  try {
    await lips.start();
    for (let frame = 0; frame < frames; frame += 1) {
      if (frame === frames - CLOSING_FRAMES) lips.close();
      await lips.step();
      stage.draw(startFrame + frame, lips.articulation.values, lips.isSpeaking);
      if (isSegmentStart(frame)) video.requestKeyFrame();
      if (!video.encode(stage.picture, stage.dirty)) throw new Error('the video encoder dropped a frame');
      if (video.isKey) video.keyCause = null;
      const [unit, samples] = [video.data.slice(0, video.length), await soundtrack.readSound(SOUND_PER_FRAME)];
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

/**
 * What the model says of each frame. Its answer after step k is of the instant (k + 1) / 30 s - lookahead, and a frame shows the middle of
 * its interval. So the model hears some silence first, of just such a length that its steps end where they must, and runs some whole steps ahead.
 */
class Lips {
  readonly articulation = new ArticulationTrack();
  private readonly mel: MelFrontEnd = new native.MelFrontEnd();
  private readonly slot: SpeechSlot;
  private readonly batch: SpeechSlot[];
  private readonly pcm = new Int16Array(Math.ceil(SPEECH_RATE / FPS));
  private readonly model: SpeechModel;
  private readonly soundtrack: Soundtrack;
  private readonly stepsAhead: number;
  private silenceLeft: number;
  private nextStep = 0;
  private quietFrames = INAUDIBLE_FRAMES;

  constructor(model: SpeechModel, soundtrack: Soundtrack) {
    this.model = model;
    this.soundtrack = soundtrack;
    this.slot = model.createSlot();
    this.batch = [this.slot];
    this.stepsAhead = Math.ceil(model.lookaheadMs / FRAME_MS - 0.5);
    this.silenceLeft = Math.round(((this.stepsAhead + 0.5) * FRAME_MS - model.lookaheadMs) * SPEECH_RATE / 1000);
  }

  get isSpeaking(): boolean { return this.quietFrames < INAUDIBLE_FRAMES; }

  /** Runs ahead, up to the first frame. */
  async start(): Promise<void> {
    for (let step = 0; step < this.stepsAhead; step += 1) await this.hear();
  }

  /** Shuts the mouth from the next frame on. */
  close(): void { this.articulation.close(); }

  /** The next frame's articulation. */
  async step(): Promise<void> {
    await this.hear();
    this.articulation.update(this.slot.articulation);
  }

  private async hear(): Promise<void> {
    const { pcm } = this;
    const count = speechSamplesInStep(this.nextStep);
    const silence = Math.min(count, this.silenceLeft);
    pcm.fill(0, 0, silence);
    await this.soundtrack.readSpeech(pcm.subarray(silence), count - silence);
    this.silenceLeft -= silence;
    this.nextStep += 1;
    this.quietFrames = pcm.subarray(0, count).some((sample) => sample >= AUDIBLE_PEAK || sample <= -AUDIBLE_PEAK) ? 0 : this.quietFrames + 1;
    this.mel.step(pcm, count, this.slot.mel, 0);
    await this.model.run(this.batch);
  }
}
