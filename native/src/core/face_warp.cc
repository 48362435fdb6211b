// The portable tile warp, and the choice between it and the AVX2 version.
#include "core/face_warp.h"

#include <algorithm>

namespace mouthpiece::face {
namespace {

struct Place {
  int pixel, fraction;
};

/**
 * @returns the pixel and fraction of a position on an axis of `size` pixels, clamped to the axis
 */
inline Place place(int subpixels, int size) {
  if (subpixels < 0) {
    return {0, 0};
  }
  if (subpixels >= (size - 1) * SUBPIXEL) {
    return {size - 1, 0};
  }
  return {subpixels >> SUBPIXEL_BITS, subpixels & (SUBPIXEL - 1)};
}

/** @returns a sample in 1/SUBPIXEL grey level, rounded as the instruction pmulhrsw rounds */
int bilinear(const uint8_t* data, int stride, Place x, Place y) {
  const uint8_t* top = data + y.pixel * stride + x.pixel;
  const uint8_t* low = top + (y.fraction != 0 ? stride : 0);
  const int next = x.fraction != 0 ? 1 : 0;
  const int a = top[0] * (SUBPIXEL - x.fraction) + top[next] * x.fraction;
  const int b = low[0] * (SUBPIXEL - x.fraction) + low[next] * x.fraction;
  return a + (((b - a) * (y.fraction << 9) + (1 << 14)) >> 15);
}

uint8_t grey(int value) {
  return uint8_t(std::clamp((value + SUBPIXEL / 2) >> SUBPIXEL_BITS, 0, 255));
}

/**
 * The displacement of a tile's pixel: between nodes first across, then down in equal steps.
 * @param step nodes between those used: 1 for luma, 2 for chroma, whose displacements are halved
 */
inline int displacement(const int16_t* nodes, int columns, int step, int row, int column) {
  const int k = column / NODE_STEP * step, f = column % NODE_STEP;
  const int16_t* bottom = nodes + columns * step;
  const auto across = [&](const int16_t* from) {
    return from[k] * (NODE_STEP - f) + (f == 0 ? 0 : from[k + step] * f);
  };
  const int first = across(nodes);
  return (first + ((across(bottom) - first) >> 2) * row) >> (step == 1 ? 2 : 3);
}

void warp_luma(const LumaPlane& source, const Nodes& nodes, int x, int y, uint8_t* out,
               int stride) {
  for (int row = 0; row < NODE_STEP; row++, out += stride) {
    for (int i = 0; i < TILE_WIDTH; i++) {
      const int dx = displacement(nodes.x, nodes.columns, 1, row, i),
                dy = displacement(nodes.y, nodes.columns, 1, row, i);
      const Place px = place((x + i) * SUBPIXEL - dx, source.width),
                  py = place((y + row) * SUBPIXEL - dy, source.height);
      const int plain = bilinear(source.data, source.stride, px, py),
                sharp = bilinear(source.sharp, source.stride, px, py);
      const int between = std::min(
          px.fraction * (SUBPIXEL - px.fraction) + py.fraction * (SUBPIXEL - py.fraction), 2047);
      out[i] = grey(plain + (((sharp - plain) * (between << 4) + (1 << 14)) >> 15));
    }
  }
}

void warp_chroma(const Plane& u, const Plane& v, const Nodes& nodes, int x, int y, uint8_t* out_u,
                 uint8_t* out_v, int stride) {
  for (int row = 0; row < NODE_STEP; row++, out_u += stride, out_v += stride) {
    for (int i = 0; i < TILE_WIDTH / 2; i++) {
      const int dx = displacement(nodes.x, nodes.columns, 2, row, i),
                dy = displacement(nodes.y, nodes.columns, 2, row, i);
      const Place px = place((x + i) * SUBPIXEL - dx, u.width),
                  py = place((y + row) * SUBPIXEL - dy, u.height);
      out_u[i] = grey(bilinear(u.data, u.stride, px, py));
      out_v[i] = grey(bilinear(v.data, v.stride, px, py));
    }
  }
}

}  // namespace

const Warp WARP_PORTABLE{warp_luma, warp_chroma};

const Warp& choose_warp() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return WARP_AVX2;
  }
#endif
  return WARP_PORTABLE;
}

}  // namespace mouthpiece::face
