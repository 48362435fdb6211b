// Vectors of four floats or integers, in the compiler's own types: SSE, NEON or scalar code, all
// with the same results. Names as in GLSL and OpenCL.
#pragma once
#include <cstdint>

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace mouthpiece::face {

using F4 __attribute__((vector_size(16))) = float;
using I4 __attribute__((vector_size(16))) = int32_t;

constexpr int LANES = 4;

inline F4 splat(float x) {
  return F4{x, x, x, x};
}
inline F4 min(F4 a, F4 b) {
  return a < b ? a : b;
}
inline F4 max(F4 a, F4 b) {
  return a > b ? a : b;
}
inline F4 clamp01(F4 x) {
  return min(max(x, splat(0)), splat(1));
}
inline F4 mix(F4 a, F4 b, F4 t) {
  return a + (b - a) * t;
}
inline F4 smoothstep(F4 from, F4 to, F4 x) {
  const F4 t = clamp01((x - from) / (to - from));
  return t * t * (3 - 2 * t);
}
inline F4 abs(F4 x) {
  return x < 0 ? -x : x;
}
inline bool any(I4 mask) {
#if defined(__SSE4_1__)
  return _mm_testz_si128(__m128i(mask), __m128i(mask)) == 0;
#else
  return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
#endif
}
/** Rounds towards zero. */
inline I4 to_int(F4 x) {
  return __builtin_convertvector(x, I4);
}
inline F4 to_float(I4 x) {
  return __builtin_convertvector(x, F4);
}

}  // namespace mouthpiece::face
