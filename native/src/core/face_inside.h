// The inside of the mouth: what one sees of cavity, tongue and teeth at a place between the lips.
#pragma once
#include <vector>

#include "core/face_shape.h"

namespace mouthpiece::face {

enum class Channels { luma, chroma };

/** Bilinear sample of the channels wanted; `a` 0..1. */
struct Sample {
  Colour colour;
  float a;
};
template <Channels CHANNELS>
Sample sample(const Layer& layer, float x, float y);

/** A colour under less light: towards black (16, 128, 128), and a little towards red, as light that came through flesh. */
Colour dim(Colour c, float k);

/** Prepared once per frame, then asked for every pixel between the lips. */
class Inside {
 public:
  explicit Inside(const Model& model);

  void prepare(const Mouth& mouth);

  /** The wanted channels. @param p place in the mouth's frame; @param top, bottom the lips' inner edges in its column */
  template <Channels CHANNELS>
  Colour at(Point p, float top, float bottom) const;

 private:
  /** What does not vary along a column of the mouth's frame. */
  struct Column {
    float flesh;                                  // share of the cheeks' flesh before the cavity
    float tongue, tongue_top, groove;             // share, place of its surface, shade of its furrow
    float tip, tip_rise;                          // of the tongue between the teeth
    float shade;                                  // towards the corners
  };

  const Model& model_;
  std::vector<Column> columns_;
  const Colour cavity_, tongue_, flesh_;
  float fh_, seam_;
  float upper_shift_ = 0, lower_shift_ = 0, upper_light_ = 1, upper_cover_ = 1, lower_light_ = 1, between_teeth_ = 0;
};

}  // namespace mouthpiece::face
