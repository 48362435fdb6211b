// Eyelids and gaze: how the picture round an eye changes when the lid closes and the iris moves.
#pragma once
#include "core/face_eye_drawing.h"

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
  bool still() const { return state_.blink <= 0 && state_.droop == 0 && !state_.moves_iris(); }
  /** @returns the area of the neutral picture that the eye may change */
  const Area& area() const {
    return state_.blink > 0 || state_.droop != 0 ? state_.eye.lid_area : state_.eye.opening;
  }
  const EyeState& state() const { return state_; }

 private:
  EyeState state_;
};

}  // namespace mouthpiece::face
