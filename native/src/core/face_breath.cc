// Which parts of a picture rise with the breath (see face_breath.h).
#include "core/face_breath.h"

namespace mouthpiece::face {

/**
 * A node rises with the head. Where the head does not, it rises with the shoulders, by the mean of
 * the four cells round it, unless one of them must not move.
 */
void build_breath(Model& model) {
  // Travel of the shoulders, in that of the head: 1 px of 1.4 at 512x512. Chosen by eye.
  constexpr float SHOULDERS = .7f;
  const Asset& asset = model.asset;
  std::vector<float> sum(model.weight.size(), 0.f);
  std::vector<uint8_t> fixed(model.weight.size(), 0);
  each_shoulder_cell(asset, [&](int left, int top, uint8_t value) {
    for (const int y : {top, top + NODE_STEP}) {
      for (const int x : {left, left + NODE_STEP}) {
        if (x < model.x0 || x > model.x1 || y < model.y0 || y > model.y1) {
          continue;
        }
        const auto k = size_t(model.node((x - model.x0) / NODE_STEP, (y - model.y0) / NODE_STEP));
        // At the border of the picture a node has fewer cells.
        const int cells =
            (x == 0 || x == asset.width ? 1 : 2) * (y == 0 || y == asset.height ? 1 : 2);
        sum[k] += float(value) / float(255 * cells);
        fixed[k] |= value == 0;
      }
    }
  });
  model.breath = model.weight;
  for (size_t k = 0; k < sum.size(); k++) {
    model.breath[k] += fixed[k] ? 0 : (1 - model.weight[k]) * SHOULDERS * sum[k];
  }
}

}  // namespace mouthpiece::face
