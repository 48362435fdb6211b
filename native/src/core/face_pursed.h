// The surface of lips that purse: what their line, their creases and the skin round them look like.
#pragma once
#include <array>
#include <vector>

#include "core/face_grey.h"
#include "core/face_model.h"

namespace mouthpiece::face {

/** Needs the contours. */
class Pursed {
 public:
  /**
   * @param picture Y, U and V of a part of the neutral picture, at the resolution of luma
   * @param left, top where the part is in the picture
   * @param red, reddened colour that an upper lip without its own takes, and how much of it
   */
  Pursed(const Model& model, const std::array<Grey, 3>& picture, int left, int top, Colour red,
         float reddened);

  /** A place on the lips or near them. */
  struct Place {
    float column;        // of the contours
    float side;          // from the middle, half widths of the mouth
    float below;         // from the line between the lips, pixels
    float upper, lower;  // on the lips: 0 at the line between them, 1 at the outer edges
  };
  /**
   * @param here the colour of the skin's and the lips' surface
   * @param filled the skin's colour here when dark lines are filled from beside them
   * @returns the colour without the line between the lips of a resting mouth: beside the opening of
   * rounded lips their red goes on
   */
  Colour without_line(const Place& at, Colour here, Colour filled) const;

  /** @returns the change of luma of fine creases across the lips. @param fine luma's fine detail */
  float creases(const Place& at, float fine) const;

 private:
  struct Lips {
    Colour upper, lower;
  };
  const Contours& c_;
  float fh_, softness_;
  std::vector<Lips> lips_;  // their colours in each column
  float drawn_ = 1;         // strength of creases, less where the lips have their own
};

/**
 * @param from the mouth's middle, across: half widths of the mouth, positive in the picture's right
 * @param below the line between the lips, half widths
 * @returns the change of luma of the skin that gathers at the corners, at a luma of 150
 */
float gathered(float from, float below);

}  // namespace mouthpiece::face
