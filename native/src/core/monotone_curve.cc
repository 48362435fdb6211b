// Monotone cubic interpolation (see monotone_curve.h).
#include "core/monotone_curve.h"

namespace mouthpiece::face {

MonotoneCurve::MonotoneCurve(std::span<const Point> points) {
  // Points whose x does not rise are dropped: the landmarks of a turned head may fold over.
  for (const Point p : points) {
    if (points_.empty() || p.x > points_.back().x + .25f) {
      points_.push_back(p);
    }
  }
  const size_t n = points_.size();
  slopes_.assign(n, 0.f);
  if (n < 2) {
    return;
  }
  std::vector<float> secants;
  for (size_t i = 0; i + 1 < n; i++) {
    secants.push_back((points_[i + 1].y - points_[i].y) / (points_[i + 1].x - points_[i].x));
  }
  slopes_.front() = secants.front();
  slopes_.back() = secants.back();
  for (size_t i = 1; i + 1 < n; i++) {
    const float a = secants[i - 1], b = secants[i];
    slopes_[i] = a * b <= 0 ? 0.f : 2 * a * b / (a + b);
  }
}

float MonotoneCurve::operator()(float x) const {
  if (points_.empty()) {
    return 0;
  }
  if (x <= points_.front().x) {
    return points_.front().y;
  }
  if (x >= points_.back().x) {
    return points_.back().y;
  }
  size_t i = 0;
  while (x > points_[i + 1].x) {
    i++;
  }
  const float h = points_[i + 1].x - points_[i].x, t = (x - points_[i].x) / h, t2 = t * t,
              t3 = t2 * t;
  return (2 * t3 - 3 * t2 + 1) * points_[i].y + (t3 - 2 * t2 + t) * h * slopes_[i] +
         (-2 * t3 + 3 * t2) * points_[i + 1].y + (t3 - t2) * h * slopes_[i + 1];
}

}  // namespace mouthpiece::face
