// The room behind the head.
#pragma once
#include <vector>

#include "character.h"

class Backdrop {
 public:
  explicit Backdrop(const Character& character);
  /** @returns what is seen there; u to the right and v up, -1 to 1 */
  Vec3 at(float u, float v) const;

 private:
  static constexpr int kSize = 512;
  Vec3 wall(float u, float v) const;
  Vec3 paint(float u, float v) const;
  /** Fills `blurred_`. */
  void spread(const std::vector<Vec3>& sharp);

  const Character& c_;
  std::vector<Vec3> blurred_;
};
