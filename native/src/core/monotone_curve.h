// Interpolation of contours through landmarks.
#pragma once
#include <span>
#include <vector>

#include "core/face_asset.h"

namespace mouthpiece::face {

/**
 * A monotone piecewise cubic through points with rising x, constant outside them (F. N. Fritsch and
 * R. E. Carlson 1980, with the harmonic mean for the slopes). It does not overshoot.
 */
class MonotoneCurve {
 public:
  explicit MonotoneCurve(std::span<const Point> points);
  float operator()(float x) const;

 private:
  std::vector<Point> points_;
  std::vector<float> slopes_;
};

}  // namespace mouthpiece::face
