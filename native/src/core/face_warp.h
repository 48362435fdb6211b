// Warps small tiles of the picture through a displacement grid. This is the renderer's inner loop.
// The portable and the AVX2 version give the same bits.
#pragma once
#include <cstdint>

namespace mouthpiece::face {

/**
 * Spacing of grid nodes, luma pixels. Chroma uses every second node: the same number of its pixels.
 */
constexpr int NODE_STEP = 4;
/** Displacements are in 1/SUBPIXEL luma pixel. Interpolation weights have the same resolution. */
constexpr int SUBPIXEL = 64, SUBPIXEL_BITS = 6;
/** Largest displacement, pixels: four times as much, in 1/SUBPIXEL, still fits 16 bits. */
constexpr int MAX_SHIFT = 100;

/**
 * Width of a tile, luma pixels; its height is NODE_STEP. In chroma: half the width, same height.
 */
constexpr int TILE_WIDTH = 16;

/** One plane of the source picture. */
struct Plane {
  const uint8_t* data;
  int stride, width, height;  // width is at least 32
};

/**
 * The luma plane and a sharpened copy of it. Bilinear sampling blurs, most half-way between pixels.
 * The warp mixes in the sharpened copy in proportion, so that sharpness does not change as the head
 * moves.
 */
struct LumaPlane : Plane {
  const uint8_t* sharp;
};

/**
 * Displacements of the nodes from the tile's first node on. Rows are `columns` nodes apart. Five
 * nodes of two rows are used (chroma: of the first and the third row); eight of each may be read.
 * A pixel's source is its position minus its displacement.
 */
struct Nodes {
  const int16_t* x;
  const int16_t* y;
  int columns;
};

/** One implementation of the tile warp. */
struct Warp {
  /**
   * Fills the tile at (x, y) with bilinear samples. Positions outside the plane read its border.
   */
  void (*luma)(const LumaPlane& source, const Nodes& nodes, int x, int y, uint8_t* out, int stride);
  /** The same for both chroma planes, of equal size. (x, y) and `stride` are in chroma pixels. */
  void (*chroma)(const Plane& u, const Plane& v, const Nodes& nodes, int x, int y, uint8_t* out_u,
                 uint8_t* out_v, int stride);
};

extern const Warp WARP_PORTABLE;
#if defined(__x86_64__)
extern const Warp WARP_AVX2;
#endif

/** @returns the fastest version for this processor */
const Warp& choose_warp();

}  // namespace mouthpiece::face
