// The irises of a portrait: where they are, what they look like under the lids, and what is seen
// where they move away.
#pragma once
#include "core/face_model.h"

namespace mouthpiece::face {

/**
 * Finds both irises and makes their layers. An iris that cannot be told from its surroundings has
 * radius 0, and then neither eye moves.
 */
void build_irises(Model& model);

/** @returns by how much both irises move, pixels; x and y from -1 to 1, right and down positive */
Point iris_shift(const std::array<Eye, 2>& eyes, float x, float y);

}  // namespace mouthpiece::face
