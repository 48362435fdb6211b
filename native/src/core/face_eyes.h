// Lids and gaze: how a place of the neutral picture round an eye looks with the lid part-way down and the eye turned.
#pragma once
#include "core/face_inside.h"

namespace mouthpiece::face {

/** An eye in one frame. */
class Gaze {
 public:
  /** @param blink 0 open .. 1 closed; @param x, y displacement of the iris in pixels */
  Gaze(const Asset& asset, const Eye& eye, float blink, float x, float y);

  bool still() const { return blink_ <= 0 && x_ == 0 && y_ == 0; }

  /** What shows at the place where the neutral picture's pixel `s` went. @returns false where the eye changes nothing there. */
  bool at(Point s, Colour& out) const;

 private:
  const Asset& asset_;
  const Eye& eye_;
  float blink_, x_, y_, cover_;
};

}  // namespace mouthpiece::face
