// Small planes of luma or chroma, for measuring the portrait when a face is loaded, and for
// blurring.
#pragma once
#include <cstddef>
#include <vector>

namespace mouthpiece::face {

/** A small plane of luma or chroma. */
struct Grey {
  int width, height;
  std::vector<float> data;
  float& at(int x, int y) { return data[size_t(y) * size_t(width) + size_t(x)]; }
};

/** The extreme of each pixel's square neighbourhood: the greatest, or the least. */
Grey extreme(const Grey& in, int radius, bool greatest);

/** The mean of each pixel's square neighbourhood, by running sums. */
Grey mean(const Grey& in, int radius);

/** How far `blur` reaches, in standard deviations. */
constexpr float BLUR_REACH = 2.5f;
/** Blurs a plane by a normal distribution. Beyond its edges it is 0. @param sigma pixels */
void blur(Grey& plane, float sigma);

/**
 * Morphological closing: removes dark lines narrower than the window of 2 `radius` + 1 pixels, so
 * that the skin beside them continues in their place.
 */
inline Grey closing(const Grey& in, int radius) {
  return extreme(extreme(in, radius, true), radius, false);
}

}  // namespace mouthpiece::face
