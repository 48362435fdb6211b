// Draws an eye over the warped picture, in vectors of four pixels, or of eight with AVX2. Both give
// the same bits.
#pragma once
#include "core/face_model.h"

namespace mouthpiece::face {

/** Extent of the lid beyond the opening, above and beside it, shares of the eye's length. */
constexpr float EYE_ABOVE = .42f, EYE_BESIDE = .14f;
/**
 * How far below the lower lid's margin the line of the lashes is in the closed lid's layer, share
 * of the eye's height. It is drawn at the margin. Of seven people who blink the lids meet above it,
 * by .05 to .12 of the eye's length; drawn that high it looks like a flat bar, as the margin below
 * it stays (docs/faces-judged.md, round 32).
 */
constexpr float EYE_SAG = .10f;
/**
 * Lashes and the lower lid's wet margin end at this share of the eye's height below a closed lid.
 */
constexpr float EYE_LASHES = .28f;
/** How far from a lid's margin what it moves is stretched, share of the eye's height. */
constexpr float EYE_STRETCHED = .6f;
/**
 * Over how many pixels an iris fades at a lid's margin; how far below it the iris shows through.
 */
constexpr float EYE_MARGIN_FADE = 1.5f, EYE_WET_MARGIN = 3;

/** The state of one eye in one frame. */
struct EyeState {
  const Asset& asset;
  const Eye& eye;
  float blink;        // 0 open, 1 closed
  float cover;        // opacity of the closed lid
  float unfolded;     // how much of the fold above the eye is gone, 1 when it is closed
  float below;        // how far below its edge the lid is drawn, with its lashes; pixels
  float lash;         // opacity of the edge's lashes: a closed lid has its own
  float droop, sink;  // how much lower than in the portrait the lids' margins are, pixels
  Point shift;        // of the iris, pixels
  float shade;        // share of its light that the eyeball loses at the edge of the lid

  bool moves_iris() const { return shift.x != 0 || shift.y != 0; }
};

/** Where an eye is drawn. */
struct EyeCanvas {
  int x0, y0, x1, y1;  // pixels: multiples of 16 across and of 8 down, within the grid
  uint8_t* y;          // the planes of the picture
  uint8_t* u;
  uint8_t* v;
  int stride;              // of luma, twice that of chroma
  const int16_t* nodes_x;  // displacements of the grid's nodes, 1/SUBPIXEL pixel
  const int16_t* nodes_y;
  int grid_x, grid_y, columns;  // position of the first node; nodes in a row
};

using DrawEye = void (*)(const EyeState& state, const EyeCanvas& canvas);

void draw_eye_portable(const EyeState& state, const EyeCanvas& canvas);
#if defined(__x86_64__)
void draw_eye_avx2(const EyeState& state, const EyeCanvas& canvas);
#endif

/** @returns the fastest version for this processor */
DrawEye choose_eye_drawing();

}  // namespace mouthpiece::face
