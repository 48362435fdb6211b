// The inside of the mouth: what one sees of cavity, tongue and teeth at a place between the lips.
#pragma once
#include <vector>

#include "core/face_mouth_shape.h"
#include "core/face_simd.h"

namespace mouthpiece::face {

enum class Channels { luma, chroma };

/** Bilinear samples of a plane of STEP interleaved bytes at four places; outside, `inside` is 0 and
 * the samples those of the first pixel. */
template <size_t STEP>
class BilinearTaps {
 public:
  BilinearTaps(const uint8_t* data, int width, int height, F4 x, F4 y)
      : inside((x >= 0) & (y >= 0) & (x < float(width - 1)) & (y < float(height - 1))),
        down_(STEP * size_t(width)) {
    const I4 ix = inside & to_int(x), iy = inside & to_int(y);
    fx_ = x - to_float(ix);
    fy_ = y - to_float(iy);
    for (int lane = 0; lane < LANES; lane++) {
      rows_[lane] = data + STEP * (size_t(iy[lane]) * size_t(width) + size_t(ix[lane]));
    }
  }
  F4 operator()(size_t channel = 0) const {
    const auto corner = [&](size_t at) {
      return to_float(I4{rows_[0][at], rows_[1][at], rows_[2][at], rows_[3][at]});
    };
    return mix(mix(corner(channel), corner(channel + STEP), fx_),
               mix(corner(down_ + channel), corner(down_ + channel + STEP), fx_), fy_);
  }
  const I4 inside;

 private:
  size_t down_;
  F4 fx_, fy_;
  const uint8_t* rows_[LANES];
};

inline BilinearTaps<4> sample_layer(const Layer& layer, F4 x, F4 y) {
  return {layer.yuva.data(), layer.width, layer.height, x - layer.left, y - layer.top};
}

/** A colour under less light: towards black (16, 128, 128), and a little towards red, as light that
 * came through flesh. @param colour 0 in black and white .. 1 */
Colour dim(Colour c, float k, float colour);

/** Prepared once per frame, then asked for every pixel between the lips. */
class MouthInterior {
 public:
  explicit MouthInterior(const Model& model);

  void prepare(const Mouth& mouth);

  /** Four pixels' colours: those of the wanted channels. */
  struct Colours {
    F4 y, u, v;
  };
  /** @param x, y places in the mouth's frame; @param top, bottom the lips' inner edges in their
   * columns */
  template <Channels CHANNELS>
  Colours colours_at(F4 x, F4 y, F4 top, F4 bottom) const;

 private:
  /** What does not vary along a column of the mouth's frame. */
  struct Column {
    float flesh;                       // share of the cheeks' flesh before the cavity
    float tongue, tongue_top, groove;  // share, place of its surface, shade of its furrow
    float tip, tip_rise;               // of the tongue between the teeth
    float shade;                       // towards the corners
  };

  const Model& model_;
  std::vector<Column> columns_;
  const Colour cavity_, tongue_;
  const float tinted_;  // 0 in black and white .. 1
  const Colour flesh_;
  float fh_, seam_;
  float upper_shift_ = 0, lower_shift_ = 0, upper_light_ = 1, upper_cover_ = 1, lower_light_ = 1,
        between_teeth_ = 0;
};

}  // namespace mouthpiece::face
