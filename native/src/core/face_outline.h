// The outline of the face, by its landmarks.
#pragma once
#include <algorithm>
#include <array>

#include "core/face_model.h"
#include "core/face_vertices.h"

namespace mouthpiece::face {

/** The face's outline in the mouth's coordinates. Needs the model's asset and frame. */
class Outline {
 public:
  explicit Outline(const Model& model) {
    for (size_t i = 0; i < OVAL.size(); i++) {
      const Point p = model.asset.landmark(OVAL[i]);
      points_[i] = model.frame.to_local(p.x, p.y);
    }
  }
  /** @returns how far a point is inside the outline, along its row */
  float inside(Point p) const {
    float left = 1e9f, right = -1e9f;
    for (size_t i = 0; i < points_.size(); i++) {
      const Point a = points_[i], b = points_[(i + 1) % points_.size()];
      if ((a.y <= p.y) == (b.y <= p.y)) {
        continue;
      }
      const float x = mix(a.x, b.x, (p.y - a.y) / (b.y - a.y));
      left = std::min(left, x);
      right = std::max(right, x);
    }
    return std::min(p.x - left, right - p.x);
  }

 private:
  std::array<Point, OVAL.size()> points_{};
};

}  // namespace mouthpiece::face
