// Motion compensation: the vector of each macroblock, and its prediction (RFC 6386, 18).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/vp8_inter_coder.h"

namespace mouthpiece::vp8 {
namespace {

/** Cost of coding a vector, in absolute error: zero, a neighbour's, any other. */
constexpr uint32_t NEIGHBOUR_COST = 16, NEW_COST = 40;
/** Limits in quarters of a pixel: how far a block may lie outside the picture, and how far it may
 * move. */
constexpr int OUTSIDE = 14 * 4, FARTHEST = 50 * 4;
/** A block whose absolute error is smaller needs no search. */
constexpr uint32_t STILL_ERROR = 512;
/** A vector that the caller knows is taken when its absolute error is smaller: no other is tried.
 */
constexpr uint32_t KNOWN_ERROR = 450;
/** Steps of the search in quarters of a pixel, and how often each is repeated. */
constexpr int FIRST_STEP = 16, MAX_TURNS = 4;

}  // namespace

InterCoder::Neighbours InterCoder::neighbours(int bx, int by) const {
  const auto rests = [](const Block& at) { return at.is_inter && at.motion == Motion{}; };
  if (rests(block(bx, by - 1)) && rests(block(bx - 1, by)) && rests(block(bx - 1, by - 1))) {
    // Most blocks of most pictures.
    constexpr int ALL = 5;
    return {{},
            {},
            {},
            {MODE_CONTEXTS[ALL][0], MODE_CONTEXTS[0][1], MODE_CONTEXTS[0][2], MODE_CONTEXTS[0][3]}};
  }
  std::array<Motion, 4> found{};
  std::array<int, 4> weights{};
  size_t last = 0;
  const auto look = [&](const Block& at, int weight) {
    if (!at.is_inter) {
      return;
    }
    if (at.motion == Motion{}) {
      weights[0] += weight;
      return;
    }
    if (last == 0 || at.motion != found[last]) {
      found[++last] = at.motion;
    }
    weights[last] += weight;
  };
  look(block(bx, by - 1), 2);
  look(block(bx - 1, by), 2);
  look(block(bx - 1, by - 1), 1);
  if (weights[3] > 0 && found[3] == found[1]) {
    weights[1]++;
  }
  weights[3] = 0;  // split modes: not used
  if (weights[2] > weights[1]) {
    std::swap(weights[1], weights[2]);
    std::swap(found[1], found[2]);
  }
  if (weights[1] >= weights[0]) {
    found[0] = found[1];
  }
  const auto clamped = [&](Motion m) {
    constexpr int MARGIN = 64;
    return Motion{
        int16_t(std::clamp(int(m.x), -bx * 64 - MARGIN, (columns_ - 1 - bx) * 64 + MARGIN)),
        int16_t(std::clamp(int(m.y), -by * 64 - MARGIN, (rows_ - 1 - by) * 64 + MARGIN))};
  };
  Neighbours out{clamped(found[0]), clamped(found[1]), clamped(found[2]), {}};
  for (size_t i = 0; i < 4; i++) {
    out.probabilities[i] = MODE_CONTEXTS[size_t(weights[i])][i];
  }
  return out;
}

Motion InterCoder::within(int bx, int by, Motion motion) const {
  const auto limit = [](int value, int at, int count) {
    const int low = std::max(-FARTHEST, -at * 64 - OUTSIDE),
              high = std::min(FARTHEST, (count - 1 - at) * 64 + OUTSIDE);
    return int16_t(std::clamp(value, low, high));
  };
  return {limit(motion.x, bx, columns_), limit(motion.y, by, rows_)};
}

void InterCoder::predict_luma(int bx, int by, Motion motion, uint8_t* out) const {
  predictor_.luma(reference(0, bx * 16 + (motion.x >> 2), by * 16 + (motion.y >> 2)), strides_[0],
                  (motion.x & 3) * 2, (motion.y & 3) * 2, out);
}

void InterCoder::predict_chroma(int bx, int by, Motion motion, uint8_t* out) const {
  // A quarter of a luma pixel is an eighth of a chroma pixel.
  const int x = bx * 8 + (motion.x >> 3), y = by * 8 + (motion.y >> 3);
  predictor_.chroma(reference(1, x, y), reference(2, x, y), strides_[1], motion.x & 7, motion.y & 7,
                    out);
}

void InterCoder::predict(int bx, int by, Motion motion, uint8_t* out) const {
  predict_luma(bx, by, motion, out);
  predict_chroma(bx, by, motion, out + LUMA_BYTES);
}

/**
 * @param hint the vector that the caller knows; null: it is searched
 * @param predicted receives the luma
 */
Motion InterCoder::choose_motion(int bx, int by, const Motion* hint, const Planes& source,
                                 uint8_t* predicted) const {
  const uint8_t* luma = source.data[0];
  const int stride = source.stride[0];
  Motion best{};
  uint32_t least = UINT32_MAX;
  std::array<uint8_t, LUMA_BYTES> spare;
  uint8_t *trial = spare.data(), *kept = predicted;
  const auto consider = [&](Motion motion, uint32_t cost) {
    if (motion == best || motion == Motion{} || within(bx, by, motion) != motion) {
      return false;
    }
    predict_luma(bx, by, motion, trial);
    const uint32_t error = predictor_.absolute_error(luma, stride, trial, 16) + cost;
    if (error >= least) {
      return false;
    }
    least = error;
    best = motion;
    std::swap(trial, kept);
    return true;
  };
  const bool is_known = hint != nullptr && *hint != Motion{};
  Neighbours near;
  if (is_known) {
    near = neighbours(bx, by);
    const Motion told = within(bx, by, *hint);
    consider(told, told == near.nearest || told == near.near ? NEIGHBOUR_COST : NEW_COST);
  }
  const bool is_found = least < KNOWN_ERROR;
  if (!is_found) {
    const uint32_t still =
        predictor_.absolute_error(luma, stride, reference(0, bx * 16, by * 16), strides_[0]);
    if (still <= least) {
      least = still;
      best = {};
    }
  }
  if (!is_found && (is_known || (hint == nullptr && least > STILL_ERROR))) {
    if (!is_known) {
      near = neighbours(bx, by);
    }
    consider(near.nearest, NEIGHBOUR_COST);
    if (hint == nullptr) {
      consider(near.near, NEIGHBOUR_COST);
      // Round the best so far, in ever smaller steps.
      for (int step = FIRST_STEP; step > 0; step /= 2) {
        bool moved = true;
        for (int turn = 0; moved && turn < MAX_TURNS; turn++) {
          const Motion from = best;
          moved = false;
          for (const auto& [x, y] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
            moved |= consider({int16_t(from.x + x * step), int16_t(from.y + y * step)}, NEW_COST);
          }
        }
      }
    }
  }
  if (best == Motion{}) {
    predict_luma(bx, by, best, predicted);
  } else if (kept != predicted) {
    std::memcpy(predicted, kept, LUMA_BYTES);
  }
  return best;
}

}  // namespace mouthpiece::vp8
