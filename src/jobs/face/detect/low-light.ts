// A face in low light is looked at and retouched as more light would show it, because luma that tells
// lips from teeth and skin from shadow is measured on faces in good light. What was made is then
// darkened again.
import type { FacePatch, FaceTints, Yuv } from '../../../media/face-asset.ts';
import { clamp, type RgbImage, smoothstep } from '../imaging/image.ts';
import { LIT, POORLY_LIT } from './exposure.ts';

/**
 * From this luma of the brightest parts of a face on, 0..255, it stays as it is; from POORLY_LIT down
 * it becomes as bright as LIT. Of 528 everyday portraits 35 lie between, most of them with dark skin in
 * good light, and five below.
 */
const WELL_LIT = 150;

/** A portrait in good light, and the way back to its own light. */
export class BrightPortrait {
  /** The portrait with more light. */
  readonly image: RgbImage;
  readonly #gain: number;
  readonly #portrait: RgbImage;

  /** @param brightest luma of the brightest parts of the face */
  constructor(portrait: RgbImage, brightest: number) {
    const full = Math.max(1, LIT / Math.max(1, brightest));
    this.#gain = 1 + (full - 1) * (1 - smoothstep(POORLY_LIT, WELL_LIT, brightest));
    this.#portrait = portrait;
    this.image =
      this.#gain === 1
        ? portrait
        : { ...portrait, data: portrait.data.map((value) => Math.min(255, this.#gain * value)) };
  }

  /**
   * Darkens `image` with changes. Pixels that were not changed are those of the portrait, bit for bit:
   * highlights may have been clipped.
   */
  darken(changed: RgbImage): RgbImage {
    if (this.#gain === 1) {
      return changed;
    }
    const data = changed.data.map((value, i) =>
      value === this.image.data[i]! ? this.#portrait.data[i]! : value / this.#gain + 0.5,
    );
    return { ...changed, data };
  }

  /** The same for a patch that was cut out of it. */
  darkenPatch(patch: FacePatch): FacePatch {
    return {
      ...patch,
      luma: patch.luma.map(this.#luma),
      u: patch.u.map(this.#chroma),
      v: patch.v.map(this.#chroma),
    };
  }

  /** The same for colours that were measured on it. */
  darkenTints({ cavity, gums, tongue, teeth }: FaceTints): FaceTints {
    const darker = ([y, u, v]: Yuv): Yuv => [this.#luma(y), this.#chroma(u), this.#chroma(v)];
    return {
      cavity: darker(cavity),
      gums: darker(gums),
      tongue: darker(tongue),
      teeth: darker(teeth),
    };
  }

  readonly #luma = (value: number): number => this.#darker(value, 16);
  readonly #chroma = (value: number): number => this.#darker(value, 128);
  #darker(value: number, black: number): number {
    return clamp(Math.round(black + (value - black) / this.#gain), 0, 255);
  }
}
