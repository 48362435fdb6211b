// The skin beside the mouth's corners, without the creases and the lips' colour that a resting
// mouth has there.
#pragma once
#include <array>

#include "core/face_grey.h"

namespace mouthpiece::face {

struct Model;

/**
 * @param picture Y, U and V of a part of the neutral picture, at the resolution of luma
 * @param left, top where the part is in the picture
 * @param clear 1 for bare skin, 0 for a beard: there dark lines are everywhere
 * @returns for each pixel what makes it bare skin; 0 but beside the corners. Needs the contours
 */
std::array<Grey, 3> bare_corners(const Model& model, const std::array<Grey, 3>& picture, int left,
                                 int top, float clear);

}  // namespace mouthpiece::face
