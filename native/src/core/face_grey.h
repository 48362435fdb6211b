// Small planes of luma, for measuring the portrait when a face is loaded.
#pragma once
#include <cstddef>
#include <vector>

namespace mouthpiece::face {

/** A small plane of luma. */
struct Grey {
  int width, height;
  std::vector<float> data;
  float& at(int x, int y) { return data[size_t(y) * size_t(width) + size_t(x)]; }
};

/** The extreme of each pixel's square neighbourhood: the greatest, or the least. */
Grey extreme(const Grey& in, int radius, bool greatest);

/** The mean of each pixel's square neighbourhood, by running sums. */
Grey mean(const Grey& in, int radius);

/**
 * Morphological closing: removes dark lines narrower than the window of 2 `radius` + 1 pixels, so
 * that the skin beside them continues in their place.
 */
inline Grey closing(const Grey& in, int radius) {
  return extreme(extreme(in, radius, true), radius, false);
}

}  // namespace mouthpiece::face
