// The portable row warp, and the choice between it and the AVX2 one.
#include "core/face_warp.h"

#include <algorithm>

namespace mouthpiece::face {

void warp_row_portable(const Plane& source, const WarpSpan& span, uint8_t* out) {
  const int unit = span.scale == 1 ? 9 : 10;   // fraction bits of the place before it is cut to 8
  const int right = (source.width - 1) << 8, bottom = (source.height - 1) << 8;
  for (int i = 0; i < span.count; i++) {
    const int node = i / NODE_STEP, f = i % NODE_STEP;
    const int dx = span.dx[node] * (NODE_STEP - f) + span.dx[node + 1] * f;
    const int dy = span.dy[node] * (NODE_STEP - f) + span.dy[node + 1] * f;
    const int x = std::clamp((((span.x + i) << unit) - dx) >> (unit - 8), 0, right);
    const int y = std::clamp(((span.y << unit) - dy) >> (unit - 8), 0, bottom);
    const int fx = x & 255, fy = y & 255;
    const uint8_t* top = source.data + (y >> 8) * source.stride + (x >> 8);
    const uint8_t* low = top + (y < bottom ? source.stride : 0);
    const int next = x < right ? 1 : 0;
    const int a = top[0] * (256 - fx) + top[next] * fx;
    const int b = low[0] * (256 - fx) + low[next] * fx;
    out[i] = uint8_t((a * (256 - fy) + b * fy + 32768) >> 16);
  }
}

WarpRow choose_warp_row() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return warp_row_avx2;
#endif
  return warp_row_portable;
}

}  // namespace mouthpiece::face
