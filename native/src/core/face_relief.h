// Light and shadow that a movement of the lips adds to the skin, which a warp alone cannot.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mouthpiece::face {

struct Model;

/**
 * Changes round the mouth, in coordinates of the neutral picture.
 */
struct Relief {
  static constexpr int CELL = 8;
  /**
   * Movements of lips and jaw that change the light on the skin. Lips that round hollow the cheeks,
   * ones that spread deepen the folds from the nose and fill the cheeks, ones that press bunch the
   * chin's skin, and a jaw that drops hollows the cheeks below their bones.
   */
  static constexpr size_t ROUND = 0, SPREAD = 1, PRESS = 2, JAW = 3, KINDS = 4;
  /**
   * Changes of colour, as fine as the picture: on protruding lips the light falls differently, and
   * when lips part or round, the skin beside their corners is bare.
   */
  static constexpr size_t PROTRUDED = 0, CORNERS = 1, LAYERS = 2;
  struct Layer {
    std::vector<uint8_t> y, u, v;  // 128 for no change; U and V at half the resolution
    std::vector<uint8_t> cells;    // whether a square of CELL pixels has a change
  };
  int left = 0, top = 0, width = 0, height = 0;  // multiples of CELL
  std::array<Layer, LAYERS> layers;
  std::array<std::vector<int8_t>, KINDS> skin;  // change of luma for each movement
  std::vector<uint8_t> skin_cells;  // for which movements a square of CELL pixels has a change

  /**
   * @returns whether a layer may change a tile of the picture that was at (x, y) of the relief;
   * within the tile the displacement differs by a few pixels
   */
  bool near(const Layer& layer, int x, int y, int across, int down) const;
};

/** Sets the relief from the neutral picture. Needs the contours. */
void build_relief(Model& model);

}  // namespace mouthpiece::face
