// Light and shadow that a movement of the lips adds to the skin, which a warp alone cannot.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mouthpiece::face {

struct Model;

/**
 * Changes round the mouth for protruding lips, in coordinates of the neutral picture. Per pixel one
 * each of luma, U and V, 128 for no change: the creases beside the corners go, and light falls
 * differently on the lips.
 */
struct Relief {
  static constexpr size_t Y = 0, U = 1, V = 2, CHANNELS = 3;
  static constexpr int CELL = 8;
  int left = 0, top = 0, width = 0, height = 0;  // multiples of CELL
  std::vector<uint8_t> delta;
  std::vector<uint8_t> cells;  // whether a square of CELL pixels has a change

  /** @returns whether a cell of the displacement grid at (x, y) of the neutral picture may change
   */
  bool near(int x, int y) const;
};

/** Sets the relief from the neutral picture. Needs the contours. */
void build_relief(Model& model);

}  // namespace mouthpiece::face
