// Colours of the mouth's inside, taken from the portrait once: black, flesh, tongue and the insides
// of the lips. Shares were chosen by eye on the default faces.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/face_mouth_interior.h"
#include "core/face_tongue.h"

namespace mouthpiece::face {
namespace {

/**
 * Chroma offset of black inside a mouth, where light passes through flesh. 0 in black and white.
 */
constexpr float REDDENING_U = 4, REDDENING_V = 13;
/** Luma of teeth above black in full light: in less light there is less of that. */
constexpr float LIT = 110;
/** Light on the flesh of the cheeks and the palate. */
constexpr float FLESH = .40f;
/** Light on the wet inside of the lips, which turn inwards: at their edges. */
constexpr float UPPER_INSIDE = .54f, LOWER_INSIDE = .78f;
/**
 * Share of the lips' hue in that of their insides: the rest is that of gums; and how much stronger
 * it is, as flesh is redder in its own shade.
 */
constexpr float LIKE_LIPS = .6f, REDDER = 1.2f;
/** Where the lips' colour is taken, share of their thickness from the line between them. */
constexpr float LIP_SAMPLE = .30f;

/**
 * Light on the front of the tongue, least and most. In between it has this share of the lower lip's
 * luma: an empty, dark mouth looks wrong, and a tongue as light as the lip merges with it.
 */
constexpr std::array<float, 2> TONGUE_FRONT{.76f, 1.05f};
constexpr float BEHIND_LIP = .78f;

/** @returns how wet the lower lip's inside is: -.1 to 1.1. @param x in face heights */
float wet_spots(float x) {
  return .5f + .6f * std::sin(61 * x + 1.3f) * std::sin(23 * x + .4f);
}

Colour colour_of(Yuv c) {
  return {float(c.y), float(c.u), float(c.v)};
}

/** @returns the colour in less light, closer to `dark`. @param k light: 1 full, 0 none */
Colour dim(Colour c, float k, const Colour& dark) {
  return {mix(dark.y, c.y, k), mix(dark.u, c.u, k), mix(dark.v, c.v, k)};
}

/**
 * Black inside the mouth: in the chroma of the picture's black, and slightly redder, because light
 * there has passed through flesh. A black that is red already is not reddened more.
 * @param colour 0 for a black and white picture, 1 for one in colour
 */
Colour darkness(const Model& model, float colour) {
  const float light = std::min(1.f, (float(model.asset.tints.teeth.y) - 16) / LIT),
              u = model.grade.black_u - 128, v = model.grade.black_v - 128,
              most_u = light * REDDENING_U, most_v = light * REDDENING_V,
              red = (v * most_v - u * most_u) / std::max(1e-3f, most_u * most_u + most_v * most_v),
              left = colour * clamp01(1 - red);
  return {16, 128 + u - most_u * left, 128 + v + most_v * left};
}

/** The cavity's tint, in the chroma of the picture's black. */
Colour cavity_of(const Model& model) {
  const Colour tint = colour_of(model.asset.tints.cavity);
  return {tint.y, tint.u + model.grade.black_u - 128, tint.v + model.grade.black_v - 128};
}

}  // namespace

MouthInterior::MouthInterior(const Model& model)
    : model_(model),
      columns_(size_t(model.contours.count)),
      relief_(tongue_relief()),
      cavity_(cavity_of(model)),
      tongue_(colour_of(model.asset.tints.tongue)),
      tinted_(tinted(model.asset)),
      dark_(darkness(model, tinted_)),
      flesh_(dim(colour_of(model.asset.tints.gums), FLESH, dark_)),
      detail_(model.grade.drawn ? 0 : 1),
      fh_(model.face_height),
      seam_(model.contours.seam[size_t(model.contours.count / 2)]),
      contrast_((235 - model.grade.black) / (235 - 16)) {
  const Contours& c = model.contours;
  for (int i = 0; i < c.count; i++) {
    wet_.push_back(wet_spots((c.left + float(i) - c.centre) / fh_));
  }
  sample_lips();
  const float lip = (lower_inside_.y - 16) / LOWER_INSIDE;
  tongue_front_ = std::clamp(BEHIND_LIP * lip / std::max(1.f, tongue_.y - 16), TONGUE_FRONT[0],
                             TONGUE_FRONT[1]);
}

/**
 * Takes the lips' light from the neutral picture, smoothed along the lips, and their hue. Their
 * insides have a part of the gums' hue: lipstick ends before them.
 */
void MouthInterior::sample_lips() {
  const Contours& c = model_.contours;
  const Asset& asset = model_.asset;
  const int radius = std::max(2, int(.05f * c.half_width));
  const auto picture = [&](int i, float below) -> Colour {
    const float x =
        std::clamp(c.left + float(i), c.centre - .9f * c.half_width, c.centre + .9f * c.half_width);
    const int column = std::clamp(int(x - c.left), 0, c.count - 1);
    const Point p = model_.frame.to_picture(x, c.seam[size_t(column)] + below);
    const int px = std::clamp(int(p.x), 0, asset.width - 1),
              py = std::clamp(int(p.y), 0, asset.height - 1);
    const size_t at = size_t(py / 2) * size_t(asset.width / 2) + size_t(px / 2);
    return {float(asset.luma[size_t(py) * size_t(asset.width) + size_t(px)]), float(asset.u[at]),
            float(asset.v[at])};
  };
  const auto inside = [&](int i, float below, float light) {
    float sum = 0;
    for (int k = i - radius; k <= i + radius; k++) {
      sum += picture(k, below).y;
    }
    // `graded` will raise the black.
    return 16 + (sum / float(2 * radius + 1) - model_.grade.black) / contrast_ * light;
  };
  for (int i = 0; i < c.count; i++) {
    lips_.push_back({inside(i, -LIP_SAMPLE * c.upper_thick, UPPER_INSIDE),
                     inside(i, LIP_SAMPLE * c.lower_thick, LOWER_INSIDE)});
  }
  const int from = std::clamp(int(c.centre - .5f * c.half_width - c.left), 0, c.count - 1),
            to = std::clamp(int(c.centre + .5f * c.half_width - c.left), from, c.count - 1);
  const Colour gums = colour_of(asset.tints.gums);
  // Chroma in units of luma, at the luma that the inside has.
  const auto hue = [&](float below, float Lips::* lip) -> Colour {
    Colour sum{0, 0, 0};
    float light = 0;
    for (int i = from; i <= to; i++) {
      const Colour seen = picture(i, below);
      sum = {sum.y + seen.y - 16, sum.u + seen.u - 128, sum.v + seen.v - 128};
      light += (lips_[size_t(i)].*lip - 16) / float(to - from + 1);
    }
    const float lit = REDDER * LIKE_LIPS * light / std::max(1.f, sum.y),
                gum = REDDER * (1 - LIKE_LIPS) * light / std::max(1.f, gums.y - 16);
    return {16 + light, 128 + lit * sum.u + gum * (gums.u - 128),
            128 + lit * sum.v + gum * (gums.v - 128)};
  };
  upper_inside_ = hue(-LIP_SAMPLE * c.upper_thick, &Lips::upper);
  lower_inside_ = hue(LIP_SAMPLE * c.lower_thick, &Lips::lower);
}

}  // namespace mouthpiece::face
