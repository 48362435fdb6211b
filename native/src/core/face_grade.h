// What the inside of the mouth must share with the portrait, so that it looks photographed, or
// painted, with it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace mouthpiece::face {

struct Asset;
struct Model;

/** Side of the square of noise that is repeated over the mouth's inside: a power of two. */
constexpr int GRAIN_SIDE = 64;

/** Measured on the neutral picture. */
struct Grade {
  float black = 16;  // luma of the darkest parts: higher in haze, in pastel and in faded prints
  /** Chroma of that black: in coloured light and in prints it is not neutral. */
  float black_u = 128, black_v = 128;
  float age = 0;          // see face_age.h
  bool drawn = false;     // the skin has hardly any noise, as in drawings
  bool line_art = false;  // dark lines on white paper, without shades: `black` is that of the lines
  float paper = 235;      // luma of that paper
  /** Noise as strong and as coarse as that of the skin, 1/8 of a luma step. */
  std::array<int16_t, size_t(GRAIN_SIDE) * GRAIN_SIDE> grain{};
};

/** @returns 0 for a black and white picture, 1 for one in colour; from the colour of its gums */
float tinted(const Asset& asset);

/** @param model with its frame, face's height and softness */
Grade measure_grade(const Model& model);

}  // namespace mouthpiece::face
