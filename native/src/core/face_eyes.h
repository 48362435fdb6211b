// Eyelids and gaze: how the picture round an eye changes when the lid closes and the iris moves.
#pragma once
#include "core/face_mouth_interior.h"

namespace mouthpiece::face {

/** The state of one eye in one frame, drawn over the warped picture. */
class EyeOverlay {
 public:
  /**
   * @param blink 0 open, 1 closed
   * @param droop how much lower the lid rests than in the portrait, share of the eye's height
   * @param x, y displacement of the iris, pixels
   */
  EyeOverlay(const Asset& asset, const Eye& eye, float blink, float droop, float x, float y);

  /** Whether the eye looks as in the portrait. */
  bool still() const { return blink_ <= 0 && droop_ == 0 && x_ == 0 && y_ == 0; }
  /** @returns the area of the neutral picture that the eye may change */
  const Area& area() const { return blink_ > 0 || droop_ != 0 ? eye_.lid_area : eye_.opening; }

  /** What the eye does to four pixels whose positions in the neutral picture are `x`, `y`. */
  struct Sample {
    I4 touched{};           // whether the eye changes the pixel
    I4 elsewhere{};         // whether the eyeball's colour comes from another position:
    F4 from_x{}, from_y{};  // that position
    F4 lid_x{}, lid_y{};    // position in the closed lid's layer
    F4 covered{};           // opacity of the lid
    F4 light{}, lash{};     // light on the eyeball below the lid; opacity of the lashes
  };
  Sample sample(F4 x, F4 y) const;

  /** @param plain luma of the warped picture @returns luma with the eye drawn over it */
  F4 luma(const Sample& sample, F4 plain) const;
  void chroma(const Sample& sample, F4& u, F4& v) const;

 private:
  const Asset& asset_;
  const Eye& eye_;
  float blink_, droop_, x_, y_, cover_;
};

}  // namespace mouthpiece::face
