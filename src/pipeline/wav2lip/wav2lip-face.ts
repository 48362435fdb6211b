// A face as a Wav2Lip-type network takes it: the crop of its picture, whole and with the lower half
// masked.
import { LANDMARK_COUNT, decodeFaceAsset } from '../../media/face-asset.ts';
import { native } from '../../native/addon.ts';
import type { FaceBox } from './patch.ts';

/** The published inference code extends the detector's box below the chin (pads 0 10 0 0). */
const CHIN_PADDING = 0.04;
const MIN_BOX_PIXELS = 32;

/** Immutable; one per session. */
export class Wav2LipFace {
  readonly box: FaceBox;
  /**
   * [6][side][side], BGR, 0 to 1: three planes with the lower half masked, then three of the whole.
   */
  readonly image: Float32Array;

  /**
   * @param bytes a face asset file
   * @param side of the network's input, in pixels
   * @throws FaceAssetError
   */
  constructor(bytes: Uint8Array, side: number) {
    const { neutral, landmarks, width, height } = decodeFaceAsset(bytes);
    this.box = boxOf(landmarks, width, height);
    const rgba = new Uint8Array(width * height * 4);
    native.i420ToRgba(neutral, width, height, rgba);
    this.image = imageOf(rgba, width, this.box, side);
  }
}

/** The rectangle round all landmarks. */
function boxOf(landmarks: Float32Array, width: number, height: number): FaceBox {
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
  const [x, y] = [even(left, width - MIN_BOX_PIXELS), even(top, height - MIN_BOX_PIXELS)];
  const boxHeight = even(bottom, height) - y;
  return {
    x,
    y,
    width: even(right, width) - x,
    height: boxHeight,
    top: even(boxHeight / 2, boxHeight),
  };
}

/** Nearest pixel: the picture is larger than the network's input. */
function imageOf(rgba: Uint8Array, stride: number, box: FaceBox, side: number): Float32Array {
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
        const value = rgba[source + 2 - channel]! / 255; // BGR, the order of OpenCV
        image[(3 + channel) * plane + y * side + x] = value;
        if (y < side / 2) {
          image[channel * plane + y * side + x] = value;
        }
      }
    }
  }
  return image;
}
