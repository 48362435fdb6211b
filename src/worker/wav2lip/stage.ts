// Draws a face with a user's own Wav2Lip-type network: the rig keeps the eyes alive, the network's lower face is laid over it with soft edges.
import { ARTICULATION_SIZE, POSE_INDEX } from '../../media/articulation.ts';
import { LANDMARK_COUNT, decodeFaceAsset } from '../../media/face-asset.ts';
import { i420Bytes, macroblocks } from '../../media/picture.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { type FaceAsset, type FaceRenderer, native } from '../../native/addon.ts';
import { IdleMotion } from '../render/idle-motion.ts';
import type { HearingStage } from '../render/stage.ts';
import { WAV2LIP_LOOKAHEAD_MS, Wav2LipMel } from './mel.ts';
import type { Wav2LipNetwork } from './network.ts';

/** The published inference code gives the detector's box this much more below the chin (pads 0 10 0 0, at its picture sizes). */
const CHIN_PADDING = 0.04;
/** Width of the soft edge, as a share of the box. */
const FEATHER = 0.12;
/** How fast the network's mouth takes the place of the resting one, and gives it back, per frame. */
const FADE = 0.34;

interface Box { readonly x: number; readonly y: number; readonly width: number; readonly height: number }

/** What is the same for every session with this face and network: the network's view of it, and where its answer goes. */
export class Wav2LipFace {
  readonly asset: FaceAsset;
  readonly box: Box;
  /** [6][S][S], BGR 0..1: the face with its lower half masked, then whole. */
  readonly image: Float32Array;
  /** Opacity of the network's picture over the box, 0..1. */
  readonly alpha: Float32Array;

  constructor(bytes: Uint8Array, asset: FaceAsset, side: number) {
    const { neutral, landmarks, width, height } = decodeFaceAsset(bytes);
    this.asset = asset;
    this.box = boxOf(landmarks, width, height);
    const rgba = new Uint8Array(width * height * 4);
    native.i420ToRgba(neutral, width, height, rgba);
    this.image = imageOf(rgba, width, this.box, side);
    this.alpha = alphaOf(this.box);
  }
}

function boxOf(landmarks: Float32Array, width: number, height: number): Box {
  let [left, right, top, bottom] = [width, 0, height, 0];
  for (let i = 0; i < LANDMARK_COUNT; i += 1) {
    left = Math.min(left, landmarks[i * 3]!);
    right = Math.max(right, landmarks[i * 3]!);
    top = Math.min(top, landmarks[i * 3 + 1]!);
    bottom = Math.max(bottom, landmarks[i * 3 + 1]!);
  }
  bottom += CHIN_PADDING * (bottom - top);
  const even = (value: number, limit: number): number => Math.min(limit, Math.max(0, Math.round(value / 2) * 2));
  const [x, y] = [even(left, width - 32), even(top, height - 32)];
  return { x, y, width: even(right, width) - x, height: even(bottom, height) - y };
}

function imageOf(rgba: Uint8Array, stride: number, box: Box, side: number): Float32Array {
  const plane = side * side;
  const image = new Float32Array(6 * plane);
  for (let y = 0; y < side; y += 1) {
    for (let x = 0; x < side; x += 1) {
      const sourceX = Math.min(box.x + box.width - 1, Math.floor(box.x + (x + 0.5) * box.width / side));
      const sourceY = Math.min(box.y + box.height - 1, Math.floor(box.y + (y + 0.5) * box.height / side));
      const source = (sourceY * stride + sourceX) * 4;
      for (let channel = 0; channel < 3; channel += 1) {
        const value = rgba[source + 2 - channel]! / 255; // BGR, as OpenCV reads pictures
        image[(3 + channel) * plane + y * side + x] = value;
        if (y < side / 2) image[channel * plane + y * side + x] = value;
      }
    }
  }
  return image;
}

/** Full in the middle of the lower half, soft towards the cheeks, the chin and the upper half, which the network only copies. */
function alphaOf({ width, height }: Box): Float32Array {
  const ramp = (value: number): number => { const t = Math.min(1, Math.max(0, value)); return t * t * (3 - 2 * t); };
  const alpha = new Float32Array(width * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const [u, v] = [(x + 0.5) / width, (y + 0.5) / height];
      alpha[y * width + x] = ramp(Math.min(u, 1 - u) / FEATHER) * ramp((v - 0.5) / FEATHER) * ramp((1 - v) / (FEATHER / 2));
    }
  }
  return alpha;
}

const STILL = [POSE_INDEX.yaw, POSE_INDEX.pitch, POSE_INDEX.roll, POSE_INDEX.shiftX, POSE_INDEX.shiftY, POSE_INDEX.breath] as const;

export class Wav2LipStage implements HearingStage {
  readonly picture: Uint8Array;
  readonly dirty: Uint8Array;
  readonly lookaheadMs = WAV2LIP_LOOKAHEAD_MS;
  private readonly face: Wav2LipFace;
  private readonly network: Wav2LipNetwork;
  private readonly renderer: FaceRenderer;
  private readonly motion: IdleMotion;
  private readonly mel = new Wav2LipMel();
  private readonly image;
  private readonly base: Uint8Array;
  private readonly rest = new Float32Array(ARTICULATION_SIZE);
  private readonly mouth: Float32Array;
  private heardSamples = 0;
  private presence = 0;
  private wasLaid = false;

  constructor(face: Wav2LipFace, network: Wav2LipNetwork, { seed, emotion, startFrame }: { seed: number; emotion: number; startFrame: number }) {
    const { width, height } = face.asset;
    this.face = face;
    this.network = network;
    this.image = network.imageTensor(face.image);
    this.mouth = new Float32Array(network.picture.length);
    this.picture = new Uint8Array(i420Bytes(width, height));
    this.base = new Uint8Array(i420Bytes(width, height));
    this.dirty = new Uint8Array(macroblocks(width, height));
    this.renderer = new native.FaceRenderer(face.asset);
    this.renderer.setEmotion(emotion, 1);
    this.motion = new IdleMotion(seed, startFrame);
  }

  reset(): void {
    this.mel.reset();
    this.heardSamples = 0;
  }

  hear(pcm: Int16Array, count: number): void {
    this.mel.push(pcm, count);
    this.heardSamples += count;
  }

  async prepare(): Promise<void> {
    this.mel.window(this.heardSamples * 1000 / SPEECH_RATE - this.lookaheadMs, this.network.mel);
    await this.network.run(this.image);
    this.mouth.set(this.network.picture);
  }

  draw(frame: number, _articulation: Float32Array, isSpeaking: boolean): void {
    // The network knows one pose only, so the head stays where it was photographed; eyes and brows live.
    const pose = this.motion.step(frame, isSpeaking, 0);
    for (const channel of STILL) pose[channel] = 0;
    this.renderer.render(this.rest, pose, this.base, this.dirty);
    this.picture.set(this.base);
    this.presence = Math.min(1, Math.max(0, this.presence + (isSpeaking ? FADE : -FADE)));
    if (this.presence > 0) this.lay();
    if (this.presence > 0 || this.wasLaid) this.markBox();
    this.wasLaid = this.presence > 0;
  }

  hold(): void { this.dirty.fill(0); }

  /** Lays the network's mouth over the picture. BT.601 limited range, as everywhere. */
  private lay(): void {
    const { face: { box, alpha, asset }, mouth, picture, presence, network: { side } } = this;
    const plane = side * side;
    const chroma = asset.width * asset.height;
    for (let y = box.height >> 1; y < box.height; y += 1) {
      const sourceY = Math.min(side - 1, Math.floor((y + 0.5) * side / box.height));
      for (let x = 0; x < box.width; x += 1) {
        const opacity = alpha[y * box.width + x]! * presence;
        if (opacity < 0.004) continue;
        const at = sourceY * side + Math.min(side - 1, Math.floor((x + 0.5) * side / box.width));
        const [b, g, r] = [mouth[at]!, mouth[plane + at]!, mouth[2 * plane + at]!];
        const target = (box.y + y) * asset.width + box.x + x;
        picture[target] = mix(picture[target]!, 16 + 65.481 * r + 128.553 * g + 24.966 * b, opacity);
        if (((x | y) & 1) !== 0) continue;
        const half = chroma + ((box.y + y) >> 1) * (asset.width >> 1) + ((box.x + x) >> 1);
        picture[half] = mix(picture[half]!, 128 - 37.797 * r - 74.203 * g + 112 * b, opacity);
        picture[half + (chroma >> 2)] = mix(picture[half + (chroma >> 2)]!, 128 + 112 * r - 93.786 * g - 18.214 * b, opacity);
      }
    }
  }

  private markBox(): void {
    const { box, asset } = this.face;
    const columns = Math.ceil(asset.width / 16);
    for (let row = (box.y + (box.height >> 1)) >> 4; row <= (box.y + box.height - 1) >> 4; row += 1) {
      this.dirty.fill(1, row * columns + (box.x >> 4), row * columns + ((box.x + box.width - 1) >> 4) + 1);
    }
  }
}

const mix = (from: number, to: number, share: number): number => Math.min(255, Math.max(0, Math.round(from + (to - from) * share)));
