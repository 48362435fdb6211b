// The inside of the mouth: what one sees of cavity, tongue and teeth at a place between the lips.
#pragma once
#include "core/face_shape.h"

namespace mouthpiece::face {

struct Colour {
  float y, u, v;
};

/** Bilinear sample; `a` 0..1. */
struct Sample {
  Colour colour;
  float a;
};
Sample sample(const Layer& layer, float x, float y);

/** Prepared once per frame, then asked for every pixel between the lips. */
class Inside {
 public:
  Inside(const Model& model, const Mouth& mouth);

  /** @param p place in the mouth's frame; @param top, bottom the lips' inner edges in its column */
  Colour at(Point p, float top, float bottom) const;

 private:
  const Model& model_;
  const Mouth& mouth_;
  float fh_, wn_, seam_, corner_;
  float tip_, lower_shift_, upper_light_, lower_light_, opened_, ambient_;
  Colour cavity_, tongue_;
};

}  // namespace mouthpiece::face
