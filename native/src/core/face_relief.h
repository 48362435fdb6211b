// Light and shadow that a movement of the lips adds to the skin, which a warp alone cannot.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mouthpiece::face {

struct Model;

/**
 * Changes round the mouth, in coordinates of the neutral picture, 128 for no change. Interleaved Y,
 * U and V are for lips that protrude: the creases beside the corners go, and light falls
 * differently on the lips.
 */
struct Relief {
  static constexpr size_t Y = 0, U = 1, V = 2, CHANNELS = 3;
  static constexpr int CELL = 8;
  /**
   * Movements of the lips that change the light on the skin. Lips that round hollow the cheeks,
   * ones that spread deepen the folds from the nose and fill the cheeks, ones that press bunch the
   * chin's skin, and ones that part lose the creases beside their corners.
   */
  static constexpr size_t ROUND = 0, SPREAD = 1, PRESS = 2, PART = 3, KINDS = 4;
  int left = 0, top = 0, width = 0, height = 0;  // multiples of CELL
  std::vector<uint8_t> delta;
  std::vector<uint8_t> cells;                   // whether a square of CELL pixels has a change
  std::array<std::vector<int8_t>, KINDS> skin;  // change of luma for each movement
  std::vector<uint8_t> skin_cells;  // for which movements a square of CELL pixels has a change

  /** @returns whether a cell of the displacement grid at (x, y) of the neutral picture may change
   */
  bool near(int x, int y) const;
};

/** Sets the relief from the neutral picture. Needs the contours. */
void build_relief(Model& model);

}  // namespace mouthpiece::face
