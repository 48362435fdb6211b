// The outline of the lips as seen from the front.
#pragma once
#include <array>

#include "vec.h"

class Head;

class LipOutline {
 public:
  /** The arguments are a box about the lips, decimetres. */
  void measure(const Head& head, float left, float right, float low, float high);
  /** @returns how far a point is from the lips, decimetres; negative on them */
  float distance(float x, float y) const;
  /** @returns the height of the line between the lips; outside of them that of the corner */
  float seam(float x) const;
  /** @returns 1 within the outline to 0 outside of it, softly: both lips end thin at the corners */
  float share(float x, float y) const;

 private:
  static constexpr int kColumns = 80;
  struct Column {
    float bottom = 9, top = -9, seam = 0;
    bool hasSeam = false;
  };
  void smoothSeam();
  void taper();
  /** How far a lip reaches from the seam. */
  float reach(float x, bool isUpper) const;

  std::array<Column, kColumns> columns_{};
  float left_ = 0, step_ = 1, low_ = 0, high_ = 0;
  /** The middle, half the width, and how far each lip reaches there. */
  float middle_ = 0, half_ = 1, upper_ = 1, lower_ = 1;
};
