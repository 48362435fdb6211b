// A face as a Wav2Lip-type network sees it, and where on the picture its answer goes.
import { LANDMARK_COUNT, decodeFaceAsset } from '../../media/face-asset.ts';
import { native } from '../../native/addon.ts';

/** The published inference code gives the detector's box this much more below the chin (pads 0 10 0 0, at its picture sizes). */
const CHIN_PADDING = 0.04;
/** Width of the soft edge, as a share of the box. */
const FEATHER = 0.12;
/** Opacity of what is laid on in full. */
export const OPAQUE = 256;

/** What the network sees, in pixels of the face, all even. Its answer is laid over the part from `top` on: the lower half. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly top: number;
}

/** Luma pixels of a patch: the box from its `top` down. */
export const patchPixels = ({ width, height, top }: Box): number => width * (height - top);

/** Bytes of a patch in I420: luma, then Cb and Cr at half the size. */
export const patchBytes = (box: Box): number => (patchPixels(box) * 3) / 2;

export class Wav2LipFace {
  readonly box: Box;
  /** [6][S][S], BGR 0..1: the face with its lower half masked, then whole. */
  readonly image: Float32Array;

  constructor(bytes: Uint8Array, side: number) {
    const { neutral, landmarks, width, height } = decodeFaceAsset(bytes);
    this.box = boxOf(landmarks, width, height);
    const rgba = new Uint8Array(width * height * 4);
    native.i420ToRgba(neutral, width, height, rgba);
    this.image = imageOf(rgba, width, this.box, side);
  }
}

function boxOf(landmarks: Float32Array, width: number, height: number): Box {
  let [left, right, top, bottom] = [width, 0, height, 0];
  for (let i = 0; i < LANDMARK_COUNT; i++) {
    left = Math.min(left, landmarks[i * 3]!);
    right = Math.max(right, landmarks[i * 3]!);
    top = Math.min(top, landmarks[i * 3 + 1]!);
    bottom = Math.max(bottom, landmarks[i * 3 + 1]!);
  }
  bottom += CHIN_PADDING * (bottom - top);
  const even = (value: number, limit: number): number =>
    Math.min(limit, Math.max(0, Math.round(value / 2) * 2));
  const [x, y] = [even(left, width - 32), even(top, height - 32)];
  const boxHeight = even(bottom, height) - y;
  return {
    x,
    y,
    width: even(right, width) - x,
    height: boxHeight,
    top: even(boxHeight / 2, boxHeight),
  };
}

function imageOf(rgba: Uint8Array, stride: number, box: Box, side: number): Float32Array {
  const plane = side * side;
  const image = new Float32Array(6 * plane);
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const sourceX = Math.min(
        box.x + box.width - 1,
        Math.floor(box.x + ((x + 0.5) * box.width) / side),
      );
      const sourceY = Math.min(
        box.y + box.height - 1,
        Math.floor(box.y + ((y + 0.5) * box.height) / side),
      );
      const source = (sourceY * stride + sourceX) * 4;
      for (let channel = 0; channel < 3; channel++) {
        const value = rgba[source + 2 - channel]! / 255; // BGR, as OpenCV reads pictures
        image[(3 + channel) * plane + y * side + x] = value;
        if (y < side / 2) {
          image[channel * plane + y * side + x] = value;
        }
      }
    }
  }
  return image;
}

/** Opacity of a patch's luma pixels, 0..OPAQUE: full in the middle of the lower half, soft towards the cheeks, the chin and the upper half, which the network only copies. */
export function alphaOf(box: Box): Uint16Array {
  const { width, height, top } = box;
  const ramp = (value: number): number => {
    const t = Math.min(1, Math.max(0, value));
    return t * t * (3 - 2 * t);
  };
  const alpha = new Uint16Array(patchPixels(box));
  for (let y = top; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [u, v] = [(x + 0.5) / width, (y + 0.5) / height];
      alpha[(y - top) * width + x] = Math.round(
        OPAQUE *
          ramp(Math.min(u, 1 - u) / FEATHER) *
          ramp((v - 0.5) / FEATHER) *
          ramp((1 - v) / (FEATHER / 2)),
      );
    }
  }
  return alpha;
}

/** Turns the network's picture ([3][S][S], BGR 0..1) into a patch at the face's own size. BT.601 limited range, as everywhere. */
export class PatchMaker {
  readonly #box: Box;
  readonly #side: number;
  readonly #ycc: readonly Float32Array[];

  constructor(box: Box, side: number) {
    this.#box = box;
    this.#side = side;
    this.#ycc = [0, 1, 2].map(() => new Float32Array(side * side));
  }

  make(picture: Float32Array, patch: Uint8Array): void {
    const box = this.#box;
    const side = this.#side;
    const ycc = this.#ycc;
    const [luma, cb, cr] = ycc as [Float32Array, Float32Array, Float32Array];
    const plane = side * side;
    for (
      let i = Math.max(0, Math.floor((box.top * side) / box.height) - 1) * side;
      i < plane;
      i++
    ) {
      const [b, g, r] = [picture[i]!, picture[plane + i]!, picture[2 * plane + i]!];
      luma[i] = 16 + 65.481 * r + 128.553 * g + 24.966 * b;
      cb[i] = 128 - 37.797 * r - 74.203 * g + 112 * b;
      cr[i] = 128 + 112 * r - 93.786 * g - 18.214 * b;
    }
    const pixels = patchPixels(box);
    this.#scale(luma, 1, patch, 0);
    this.#scale(cb, 2, patch, pixels);
    this.#scale(cr, 2, patch, pixels + pixels / 4);
  }

  /** Bilinear, as the published code resizes; every `step`-th pixel of the box. */
  #scale(from: Float32Array, step: number, patch: Uint8Array, offset: number): void {
    const { width, height, top } = this.#box;
    const side = this.#side;
    const last = side - 1;
    let at = offset;
    for (let y = top; y < height; y += step) {
      const sourceY = Math.min(last, Math.max(0, ((y + step / 2) * side) / height - 0.5));
      const [y0, v] = [Math.floor(sourceY), sourceY % 1];
      const [upper, lower] = [y0 * side, Math.min(last, y0 + 1) * side];
      for (let x = 0; x < width; x += step) {
        const sourceX = Math.min(last, Math.max(0, ((x + step / 2) * side) / width - 0.5));
        const x0 = Math.floor(sourceX);
        const x1 = Math.min(last, x0 + 1);
        const u = sourceX - x0;
        const above = from[upper + x0]! + (from[upper + x1]! - from[upper + x0]!) * u;
        const below = from[lower + x0]! + (from[lower + x1]! - from[lower + x0]!) * u;
        patch[at] = Math.min(255, Math.max(0, Math.round(above + (below - above) * v)));
        at++;
      }
    }
  }
}
