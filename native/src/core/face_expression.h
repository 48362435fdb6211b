// How the nodes of a face follow its brows and cheeks, and whether it speaks with a smile.
#pragma once
#include "core/face_model.h"

namespace mouthpiece::face {

/**
 * Sets the model's `brow`, `brow_inner`, `cheek`, `cheek_low` and `cheer`. Its grid and its weights
 * must be set.
 */
void build_expression(Model& model);

}  // namespace mouthpiece::face
