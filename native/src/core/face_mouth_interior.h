// The interior of the mouth: the colours of cavity, tongue and teeth between the lips.
#pragma once
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/face_mouth_shape.h"
#include "core/face_simd.h"

namespace mouthpiece::face {

struct TongueRelief;

enum class Channels { luma, chroma };

/**
 * Bilinear samples of a plane of STEP interleaved channels at four positions. Lanes outside the
 * plane have `inside` 0 and sample the first pixel.
 */
template <size_t STEP>
class BilinearTaps {
 public:
  BilinearTaps(const uint8_t* data, int width, int height, F4 x, F4 y)
      : inside((x >= 0) & (y >= 0) & (x < float(width - 1)) & (y < float(height - 1))) {
    const I4 ix = inside & to_int(x), iy = inside & to_int(y);
    fx_ = x - to_float(ix);
    fy_ = y - to_float(iy);
    // A pixel's channels, or two neighbours of a plane, are read at once.
    const size_t down = STEP * size_t(width);
    const uint8_t* rows[LANES];
    for (int lane = 0; lane < LANES; lane++) {
      rows[lane] = data + STEP * (size_t(iy[lane]) * size_t(width) + size_t(ix[lane]));
    }
    const auto read = [&](size_t at) {
      using Word = std::conditional_t<STEP == 4, uint32_t, uint16_t>;
      const auto word = [&](int lane) {
        Word out;
        std::memcpy(&out, rows[lane] + at, sizeof out);
        return int32_t(out);
      };
      return I4{word(0), word(1), word(2), word(3)};
    };
    top_ = read(0);
    bottom_ = read(down);
    if constexpr (STEP == 4) {
      top_next_ = read(STEP);
      bottom_next_ = read(down + STEP);
    } else {
      top_next_ = top_ >> 8;
      bottom_next_ = bottom_ >> 8;
    }
  }
  F4 operator()(int channel = 0) const {
    const auto corner = [&](I4 pixels) { return to_float((pixels >> (8 * channel)) & 255); };
    return mix(mix(corner(top_), corner(top_next_), fx_),
               mix(corner(bottom_), corner(bottom_next_), fx_), fy_);
  }
  const I4 inside;

 private:
  static_assert(STEP == 1 || STEP == 4);
  static_assert(std::endian::native == std::endian::little);
  F4 fx_, fy_;
  I4 top_, top_next_, bottom_, bottom_next_;
};

inline BilinearTaps<4> sample_layer(const Layer& layer, F4 x, F4 y) {
  return {layer.yuva.data(), layer.width, layer.height, x - layer.left, y - layer.top};
}

/** Prepared once per frame, then evaluated for each pixel between the lips. */
class MouthInterior {
 public:
  explicit MouthInterior(const Model& model);

  void prepare(const Mouth& mouth);

  /** Colours of four pixels. Only the requested channels are valid. */
  struct Colours {
    F4 y, u, v;
  };
  /**
   * @param x, y positions in the mouth's coordinates
   * @param top, bottom the lips' inner edges at `x`
   */
  template <Channels CHANNELS>
  Colours colours_at(F4 x, F4 y, F4 top, F4 bottom) const;

 private:
  /** Values that are constant along a column of the mouth's coordinates, four by four. */
  struct Column {
    F4 tongue;  // opacity, y of the upper edge, 1 / (distance from there to its front), light
    F4 depth;   // how dark the throat is; column of the tongue's relief; the lower lip's shine
                // (luma); light
    F4 rim;     // 1 / (height of the upper and of the lower lip's inside)
    F4 lips;    // Y of the upper and of the lower; 1 / (reach of the shadow of each)
  };
  /** Luma of the lips' insides in a column of the neutral picture. */
  struct Lips {
    float upper, lower;
  };

  void sample_lips();
  Column column_at(const Mouth& mouth, size_t i) const;

  F4 ink_at(F4 x, F4 y, F4 top, F4 bottom) const;
  /** Lets luma share the portrait's darkest tone and its grain. */
  F4 graded(F4 luma, F4 x, F4 y) const;

  const Model& model_;
  std::vector<Column> columns_;
  int first_ = 0, last_ = 0;  // the columns that `prepare` has set
  std::vector<Lips> lips_;
  std::vector<float> wet_;  // of each column: how wet the lower lip's inside is
  const TongueRelief& relief_;
  const Colour cavity_, tongue_;
  const float tinted_;  // 0 for a black and white picture, 1 for one in colour
  const Colour dark_;   // where no light comes
  const Colour flesh_;
  Colour upper_inside_{16, 128, 128}, lower_inside_{16, 128, 128};  // of the lips, in the middle
  float tongue_front_;  // light on the tongue where it is brightest, share of its colour
  const float detail_;  // of the tongue and of what is wet: 1, and 0 in drawings
  float fh_, seam_;
  float contrast_;  // of luma against the portrait's black, at most 1

  /** What `prepare` derives from the articulation; lengths in pixels, light and opacity 0 to 1. */
  struct Frame {
    float upper_shift = 0, upper_light = 1, upper_shadow = 0;
    float lower_shift = 0, lower_light = 1;
    float tongue_top = 0, tongue_light = 1, wet = 0;
    float ambient = 1, hood = 0, tip = 0, corner = 1, bite = 0;
    float lip_wet = 0;
    float ring = 0, upper_bulge = 1, lower_bulge = 0, upper_rim = 1, lower_rim = 1;
  } frame_;
};

/**
 * @returns y of the biting edge of the upper or lower central incisors while the mouth is closed,
 * below the middle of the lip line, in units of the face's height
 */
float biting_edge(const Model& model, bool upper);

}  // namespace mouthpiece::face
