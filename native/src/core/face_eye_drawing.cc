// The portable drawing of eyes, and the choice between it and the AVX2 version.
#include "core/face_eye_drawing.h"

#include <cstddef>
#include <cstring>

#include "core/face_mouth_interior.h"
#include "core/face_simd.h"

namespace mouthpiece::face {
namespace {
namespace four {

using F = F4;
using I = I4;
template <size_t STEP>
using Taps = BilinearTaps<STEP>;
#define EYE_TARGET

struct Margins {
  F upper, lower;
};
inline Margins margins_at(const Eye& eye, F t) {
  const F at = clamp01(t) * float(Eye::SAMPLES - 1);
  const I whole = to_int(at), i = whole < Eye::SAMPLES - 2 ? whole : I{} + (Eye::SAMPLES - 2);
  // Both margins at a sample and at the next: a row for each pixel, then a column for each number.
  const auto row = [&](int lane) {
    F out;
    std::memcpy(&out, eye.margins[size_t(i[lane])].data(), sizeof out);
    return out;
  };
  const F a = row(0), b = row(1), c = row(2), d = row(3);
  const F upper_ab = __builtin_shufflevector(a, b, 0, 4, 2, 6),
          upper_cd = __builtin_shufflevector(c, d, 0, 4, 2, 6),
          lower_ab = __builtin_shufflevector(a, b, 1, 5, 3, 7),
          lower_cd = __builtin_shufflevector(c, d, 1, 5, 3, 7);
  const F share = at - to_float(i);
  const auto between = [&](F ab, F cd) {
    return mix(__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
               __builtin_shufflevector(ab, cd, 2, 3, 6, 7), share);
  };
  return {between(upper_ab, upper_cd), between(lower_ab, lower_cd)};
}

inline F along_cell(float step) {
  return F{0, step, 2 * step, 3 * step};
}
inline F along(float step) {
  return along_cell(step);
}
inline F between_nodes(const int16_t* nodes, int next, F share) {
  return mix(splat(nodes[0]), splat(nodes[next]), share);
}
inline F take(const uint8_t* bytes) {
  return to_float(I{bytes[0], bytes[1], bytes[2], bytes[3]});
}
inline void put(F value, I mask, uint8_t* bytes) {
  const I rounded = to_int(min(max(value + .5f, splat(0)), splat(255)));
  for (int lane = 0; lane < LANES; lane++) {
    if (mask[lane]) {
      bytes[lane] = uint8_t(rounded[lane]);
    }
  }
}

#include "core/face_eye_pixels.h"
#undef EYE_TARGET

}  // namespace four
}  // namespace

void draw_eye_portable(const EyeState& state, const EyeCanvas& canvas) {
  four::draw_luma(state, canvas);
  four::draw_chroma(state, canvas);
}

DrawEye choose_eye_drawing() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return draw_eye_avx2;
  }
#endif
  return draw_eye_portable;
}

}  // namespace mouthpiece::face
