// Eyelids and gaze: how the picture round an eye changes when the lid closes and the iris moves.
#pragma once
#include "core/face_mouth_interior.h"

namespace mouthpiece::face {

/** @returns a lid's margin at share `t` of the eye's length */
float sample_curve(const std::array<float, Eye::SAMPLES>& curve, float t);

/** @returns the colour of the portrait at a position, clamped to its border */
Colour picture_at(const Asset& asset, float x, float y);

/** The state of one eye in one frame, drawn over the warped picture. */
class EyeOverlay {
 public:
  /**
   * @param blink 0 open, 1 closed
   * @param droop how much lower the lid rests than in the portrait, share of the eye's height
   * @param shift displacement of the iris, pixels
   */
  EyeOverlay(const Asset& asset, const Eye& eye, float blink, float droop, Point shift);

  /** Whether the eye looks as in the portrait. */
  bool still() const { return blink_ <= 0 && droop_ == 0 && !moves_iris(); }
  /** @returns the area of the neutral picture that the eye may change */
  const Area& area() const { return blink_ > 0 || droop_ != 0 ? eye_.lid_area : eye_.opening; }

  /** What the eye does to four pixels. */
  struct Sample {
    I4 touched;         // whether the eye changes the pixel
    I4 elsewhere;       // whether the portrait's colour comes from another position:
    F4 from_x, from_y;  // that position
    F4 bared;           // how much of where the iris was is not iris
    F4 ball;            // how much of an iris is visible there
    F4 iris_x, iris_y;  // position in the iris's layer
    F4 lid_x, lid_y;    // position in the closed lid's layer
    F4 covered;         // opacity of the lid
    F4 light, lash;     // light on the eyeball below the lid; opacity of the lashes
  };
  /**
   * @param x, y positions of four pixels in the neutral picture
   * @param out receives what the eye does to them; what a blink does only while it blinks
   * @returns whether it changes any; else `out` has no meaning
   */
  bool sample(F4 x, F4 y, Sample& out) const;

  /** @param plain luma of the warped picture @returns luma with the eye drawn over it */
  F4 luma(const Sample& sample, F4 plain) const;
  void chroma(const Sample& sample, F4& u, F4& v) const;

 private:
  const Asset& asset_;
  const Eye& eye_;
  float blink_;
  Point shift_;
  float cover_;
  float droop_, sink_;  // how much lower than in the portrait the lids' margins are, pixels

  bool moves_iris() const { return shift_.x != 0 || shift_.y != 0; }
};

}  // namespace mouthpiece::face
