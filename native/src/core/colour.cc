// Colour conversion through libyuv (see colour.h).
#include "core/colour.h"

#include <libyuv.h>

#include <cstddef>

namespace mouthpiece {

// libyuv names formats by the order in a little-endian word: its ABGR is R, G, B, A in memory.
void rgba_to_i420(const uint8_t* rgba, int width, int height, uint8_t* i420) {
  uint8_t* u = i420 + size_t(width) * size_t(height);
  uint8_t* v = u + size_t(width / 2) * size_t(height / 2);
  libyuv::ABGRToI420(rgba, width * 4, i420, width, u, width / 2, v, width / 2, width, height);
}

void i420_to_rgba(const uint8_t* i420, int width, int height, uint8_t* rgba) {
  const uint8_t* u = i420 + size_t(width) * size_t(height);
  const uint8_t* v = u + size_t(width / 2) * size_t(height / 2);
  libyuv::I420ToABGR(i420, width, u, width / 2, v, width / 2, rgba, width * 4, width, height);
}

}  // namespace mouthpiece
