// Resampling of one picture row through a displacement grid: the renderer's inner loop, in a portable and an AVX2 version that agree bit for bit.
#pragma once
#include <cstdint>

namespace mouthpiece::face {

/** Grid nodes are this many luma pixels apart (half as many chroma pixels for every second node: also 4). */
constexpr int NODE_STEP = 4;
/** Unit of node displacements: 1/32 pixel of luma. */
constexpr int NODE_UNIT = 32;

struct Plane {
  const uint8_t* data;
  int stride, width, height;
};

struct WarpSpan {
  /**
   * Displacements along the row at every NODE_STEP pixels from `x` on (count / 4 + 1 of them, readable up to one more), already
   * interpolated between two node rows by weights that sum to NODE_STEP: unit 1/128 luma pixel. Source = place - displacement.
   */
  const int32_t* dx;
  const int32_t* dy;
  int x, y;          // first pixel, in the plane's own pixels; x is a multiple of NODE_STEP
  int count;         // pixels, a multiple of 8
  int scale;         // 1: luma, 2: chroma of half size
};

/** Bilinear samples of `source` into `out`. Places outside the plane read its edge. Weights have 8 bits. */
using WarpRow = void (*)(const Plane& source, const WarpSpan& span, uint8_t* out);

void warp_row_portable(const Plane& source, const WarpSpan& span, uint8_t* out);

/** The fastest version that this processor runs. */
WarpRow choose_warp_row();

#if defined(__x86_64__)
void warp_row_avx2(const Plane& source, const WarpSpan& span, uint8_t* out);
#endif

}  // namespace mouthpiece::face
