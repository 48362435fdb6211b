// Noise that is the same every time: the same portrait must give the same asset.

/**
 * @returns a source of roughly normal values (variance about 1/2) from xorshift32 (Marsaglia 2003).
 */
export function noiseSource(seed: number): () => number {
  let state = seed >>> 0 || 1;
  const uniform = (): number => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
  return () => uniform() + uniform() + uniform() + uniform() + uniform() + uniform() - 3;
}
