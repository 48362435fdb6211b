// Weights of the networks that set-up converts: decoding and order of axes.

/** Values row by row. */
export interface Weight {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** The value of a half-precision float (IEEE 754 binary16). */
export function halfToFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) {
    return sign * fraction * 2 ** -24;
  }
  if (exponent === 31) {
    return fraction === 0 ? sign * Infinity : NaN;
  }
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** The data of a 4-D weight with its axes in `order`. */
export function transpose(
  { shape, data }: Weight,
  order: readonly [number, number, number, number],
): Float32Array {
  const strides = [0, 1, 2, 3].map((axis) =>
    shape.slice(axis + 1).reduce((product, dim) => product * dim, 1),
  );
  const [d0, d1, d2, d3] = order.map((axis) => shape[axis] ?? 1) as [
    number,
    number,
    number,
    number,
  ];
  const [s0, s1, s2, s3] = order.map((axis) => strides[axis] ?? 1) as [
    number,
    number,
    number,
    number,
  ];
  const out = new Float32Array(data.length);
  let at = 0;
  for (let a = 0; a < d0; a++) {
    for (let b = 0; b < d1; b++) {
      for (let c = 0; c < d2; c++) {
        for (let d = 0; d < d3; d++) {
          out[at++] = data[a * s0 + b * s1 + c * s2 + d * s3] ?? 0;
        }
      }
    }
  }
  return out;
}
