// Resampling of small tiles through a displacement grid: the renderer's inner loop, in a portable
// and an AVX2 version that agree bit for bit.
#pragma once
#include <cstdint>

namespace mouthpiece::face {

/** Grid nodes are this many luma pixels apart; chroma uses every second node, which are as many
 * chroma pixels apart. */
constexpr int NODE_STEP = 4;
/** Displacements count in 1/64 luma pixel; the weights between pixels have as many steps. */
constexpr int SUBPIXEL = 64, SUBPIXEL_BITS = 6;
/** Largest displacement in pixels: four times it still fits 16 bits. */
constexpr int MAX_SHIFT = 100;

/** A tile is TILE_WIDTH x NODE_STEP luma pixels, or half as many by NODE_STEP in both chroma
 * planes. */
constexpr int TILE_WIDTH = 16;

struct Plane {
  const uint8_t* data;
  int stride, width, height;  // width at least 32
};

/**
 * Luma twice: plain, and sharpened as much as sampling half-way between pixels blurs. Samples lean
 * on the second the more the further from a pixel's centre they are, or a face would turn soft and
 * sharp again as it sways.
 */
struct LumaPlane : Plane {
  const uint8_t* sharp;
};

/**
 * Displacements at the tile's first node and on; rows of nodes are `columns` apart. Five nodes of
 * two rows (chroma: of the first and the third) are used, eight of each may be read. Source = place
 * - displacement.
 */
struct Nodes {
  const int16_t* x;
  const int16_t* y;
  int columns;
};

struct Warp {
  /** Bilinear samples for the tile at (x, y). Places outside the plane read its edge. */
  void (*luma)(const LumaPlane& source, const Nodes& nodes, int x, int y, uint8_t* out, int stride);
  /** The same for both chroma planes, which have one size; (x, y) and `stride` in their own pixels.
   */
  void (*chroma)(const Plane& u, const Plane& v, const Nodes& nodes, int x, int y, uint8_t* out_u,
                 uint8_t* out_v, int stride);
};

extern const Warp WARP_PORTABLE;
#if defined(__x86_64__)
extern const Warp WARP_AVX2;
#endif

/** The fastest version that this processor runs. */
const Warp& choose_warp();

}  // namespace mouthpiece::face
