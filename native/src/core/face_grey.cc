#include "core/face_grey.h"

#include <algorithm>

namespace mouthpiece::face {

Grey extreme(const Grey& in, int radius, bool greatest) {
  const size_t width = size_t(in.width), height = size_t(in.height), reach = size_t(radius);
  const auto better = [&](float a, float b) { return greatest ? std::max(a, b) : std::min(a, b); };
  Grey across = in, out = in;
  for (size_t y = 0; y < height; y++) {
    const float* from = in.data.data() + y * width;
    float* to = across.data.data() + y * width;
    for (size_t k = 1; k <= reach && k < width; k++) {
      for (size_t x = 0; x + k < width; x++) {
        to[x] = better(to[x], from[x + k]);
        to[x + k] = better(to[x + k], from[x]);
      }
    }
  }
  out.data = across.data;
  for (size_t k = 1; k <= reach && k < height; k++) {
    for (size_t i = 0; i + k * width < out.data.size(); i++) {
      out.data[i] = better(out.data[i], across.data[i + k * width]);
      out.data[i + k * width] = better(out.data[i + k * width], across.data[i]);
    }
  }
  return out;
}

}  // namespace mouthpiece::face
