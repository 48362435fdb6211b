// Which parts of a picture rise with the breath.
#pragma once
#include "core/face_model.h"

namespace mouthpiece::face {

/** Calls `body` with place and value of each cell of an asset's shoulders, if it has any. */
template <class Body>
void each_shoulder_cell(const Asset& asset, Body body) {
  if (!asset.shoulders) {
    return;
  }
  const uint8_t* cell = asset.shoulders;
  for (int y = 0; y < asset.height; y += NODE_STEP) {
    for (int x = 0; x < asset.width; x += NODE_STEP) {
      body(x, y, *cell++);
    }
  }
}

/** Sets the model's `breath`. Its grid and its weights must be set. */
void build_breath(Model& model);

}  // namespace mouthpiece::face
