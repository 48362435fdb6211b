// Inpainting: fills unknown pixels from known ones by push-pull over a pyramid (Gortler et al., The
// Lumigraph, 1996, section 3.4.2).
import type { RgbImage } from './image.ts';

/** A pyramid level: premultiplied colour [height][width][3], and weight 0..1 per pixel. */
interface Level {
  readonly width: number;
  readonly height: number;
  readonly colour: Float32Array;
  readonly weight: Float32Array;
}

/**
 * Overwrites each pixel whose `known` is 0 with a smooth continuation of the known ones. At least
 * one pixel must be known.
 */
export function inpaint(image: RgbImage, known: Uint8Array): void {
  const { data } = image;
  const base: Level = {
    width: image.width,
    height: image.height,
    colour: new Float32Array(data),
    weight: new Float32Array(known),
  };
  for (let i = 0; i < known.length; i++) {
    if (!known[i]) {
      base.colour.fill(0, i * 3, i * 3 + 3);
    }
  }
  const levels = [base];
  for (let last = base; last.width > 1 || last.height > 1;) {
    levels.push((last = push(last)));
  }
  for (let i = levels.length - 2; i >= 0; i--) {
    pull(levels[i]!, levels[i + 1]!);
  }
  for (let i = 0; i < known.length; i++) {
    if (known[i]) {
      continue;
    }
    for (let c = i * 3; c < i * 3 + 3; c++) {
      data[c] = base.colour[c]! + 0.5;
    }
  }
}

/**
 * Halves a level. The weight of a coarse pixel is the sum of the four below it, 1 at most. Colours
 * are premultiplied.
 */
function push(fine: Level): Level {
  const width = (fine.width + 1) >> 1;
  const height = (fine.height + 1) >> 1;
  const colour = new Float32Array(width * height * 3);
  const weight = new Float32Array(width * height);
  for (let y = 0; y < fine.height; y++) {
    for (let x = 0; x < fine.width; x++) {
      const from = y * fine.width + x;
      const to = (y >> 1) * width + (x >> 1);
      weight[to] = weight[to]! + fine.weight[from]!;
      for (let c = 0; c < 3; c++) {
        colour[to * 3 + c] = colour[to * 3 + c]! + fine.colour[from * 3 + c]!;
      }
    }
  }
  for (let i = 0; i < weight.length; i++) {
    const sum = weight[i]!;
    if (sum <= 1) {
      continue;
    }
    weight[i] = 1;
    for (let c = i * 3; c < i * 3 + 3; c++) {
      colour[c] = colour[c]! / sum;
    }
  }
  return { width, height, colour, weight };
}

/**
 * Completes a level from the complete coarser one: interpolated bilinearly where nothing is known,
 * blended where the weight is below 1.
 */
function pull(fine: Level, coarse: Level): void {
  for (let y = 0; y < fine.height; y++) {
    const sy = Math.max(0, (y + 0.5) / 2 - 0.5);
    const y0 = Math.min(Math.floor(sy), coarse.height - 1);
    const y1 = Math.min(y0 + 1, coarse.height - 1);
    const fy = sy - y0;
    for (let x = 0; x < fine.width; x++) {
      const at = y * fine.width + x;
      const weight = fine.weight[at]!;
      if (weight >= 1) {
        continue;
      }
      const sx = Math.max(0, (x + 0.5) / 2 - 0.5);
      const x0 = Math.min(Math.floor(sx), coarse.width - 1);
      const x1 = Math.min(x0 + 1, coarse.width - 1);
      const fx = sx - x0;
      for (let c = 0; c < 3; c++) {
        const above =
          coarse.colour[(y0 * coarse.width + x0) * 3 + c]! * (1 - fx) +
          coarse.colour[(y0 * coarse.width + x1) * 3 + c]! * fx;
        const below =
          coarse.colour[(y1 * coarse.width + x0) * 3 + c]! * (1 - fx) +
          coarse.colour[(y1 * coarse.width + x1) * 3 + c]! * fx;
        fine.colour[at * 3 + c] =
          fine.colour[at * 3 + c]! + (1 - weight) * (above * (1 - fy) + below * fy);
      }
      fine.weight[at] = 1;
    }
  }
}
