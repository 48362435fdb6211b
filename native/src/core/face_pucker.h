// The shape of lips that round: an ellipse round a small, level opening, whatever the mouth at
// rest.
#pragma once
#include "core/face_mouth_shape.h"

namespace mouthpiece::face {

class Pucker {
 public:
  /**
   * @param amount 0: the lips are not rounded; 1: fully
   * @param aperture height of the opening in the middle, pixels
   */
  Pucker(const Contours& contours, float face_height, float amount, float aperture);

  /** @returns half the width of the opening. @param half that of lips that do not round, pixels */
  float half_opening(float half) const;

  /** @returns the thickness of the upper lip in the middle, pixels, when it is fully rounded */
  float upper() const { return upper_; }

  /** A place on the lips. */
  struct Place {
    float r;                   // from the middle, half widths of the mouth at rest
    float opening;             // profile of the opening here, 0 at its ends to 1
    float ends;                // how far the skin follows the corner here
    float upper, seam, lower;  // the contours of the face at rest
  };
  /** Moves the lips' inner edges towards those of rounded lips. */
  void round_inside(const Place& at, Mouth::Column& out) const;
  /** Moves the lips' outer edges towards those of rounded lips. */
  void round_outside(const Place& at, Mouth::Column& out) const;

 private:
  /** @returns how far below the seam at rest the line between rounded lips is, pixels */
  float moved_line(const Place& at) const;

  float amount_, aperture_;
  float hanging_;        // of the corners, pixels
  float level_;          // y of the opening's middle
  float upper_, lower_;  // thickness of the lips in the middle
};

}  // namespace mouthpiece::face
