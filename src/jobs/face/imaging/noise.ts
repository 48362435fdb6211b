// Pseudo-random noise: the same seed gives the same sequence, because the same portrait must give
// the same asset.

/**
 * A source of approximately normal values with mean 0 and variance 1/2: sums of six uniform values
 * of xorshift32 (Marsaglia 2003).
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
