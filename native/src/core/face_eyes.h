// Lids and gaze: how a place of the neutral picture round an eye looks with the lid part-way down
// and the eye turned.
#pragma once
#include "core/face_mouth_interior.h"

namespace mouthpiece::face {

/** An eye in one frame. */
class EyeOverlay {
 public:
  /** @param blink 0 open .. 1 closed; @param droop how much lower the lid rests than in the
   * portrait, share of the eye's height; @param x, y displacement of the iris in pixels */
  EyeOverlay(const Asset& asset, const Eye& eye, float blink, float droop, float x, float y);

  bool still() const { return blink_ <= 0 && droop_ == 0 && x_ == 0 && y_ == 0; }
  /** Places of the neutral picture outside which `sample` is always false. */
  const Area& area() const { return blink_ > 0 || droop_ != 0 ? eye_.lid_area : eye_.opening; }

  /** How four places sample where the neutral picture's pixels `x`, `y` went. */
  struct Sample {
    I4 touched{};           // whether the eye changes anything there
    I4 elsewhere{};         // whether the eye's own colour comes not from there
    F4 from_x{}, from_y{};  // but from here
    F4 lid_x{}, lid_y{};    // the place in the closed lid's layer,
    F4 covered{};           // and its share
    F4 light{}, lash{};     // shade of the lid on the eye; share of the lashes
  };
  Sample sample(F4 x, F4 y) const;

  /** @param plain what the picture holds there now */
  F4 luma(const Sample& sample, F4 plain) const;
  void chroma(const Sample& sample, F4& u, F4& v) const;

 private:
  const Asset& asset_;
  const Eye& eye_;
  float blink_, droop_, x_, y_, cover_;
};

}  // namespace mouthpiece::face
