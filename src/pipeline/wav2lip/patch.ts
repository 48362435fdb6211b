// A patch: the part of a face's picture that a Wav2Lip-type network redraws, as I420 with soft
// edges.

/** Width of the soft edge, as a share of the box. */
const FEATHER = 0.12;
/** The value of full opacity. */
export const OPAQUE = 256;

/**
 * The rectangle of the picture that the network takes, in pixels, all even. Its output replaces the
 * part from row `top` of the rectangle on: the lower half.
 */
export interface FaceBox {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly top: number;
}

/** Luma pixels of a patch. */
export const patchPixels = ({ width, height, top }: FaceBox): number => width * (height - top);

/** Bytes of a patch in I420: luma, then Cb and Cr at half the width and height. */
export const patchBytes = (box: FaceBox): number => (patchPixels(box) * 3) / 2;

/**
 * Opacity of a patch's luma pixels, 0 to OPAQUE: full in the middle of the lower half, with a soft
 * edge towards the cheeks, the chin and the upper half, which the network only copies.
 */
export function patchAlpha(box: FaceBox): Uint16Array {
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

/**
 * Converts the network's output to a patch at the size of the face: BT.601 limited range, as
 * everywhere.
 */
export class PatchConverter {
  readonly #box: FaceBox;
  readonly #side: number;
  readonly #ycc: readonly Float32Array[];

  constructor(box: FaceBox, side: number) {
    this.#box = box;
    this.#side = side;
    this.#ycc = [0, 1, 2].map(() => new Float32Array(side * side));
  }

  /**
   * @param picture [3][side][side], BGR, 0 to 1
   * @param patch I420, `patchBytes(box)` bytes, overwritten
   */
  convert(picture: Float32Array, patch: Uint8Array): void {
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

  /**
   * Bilinear, as the published code resizes; every `step`-th pixel of the box. Writes from
   * `offset`.
   */
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
