// Which macroblocks a frame draws, and which it leaves to the encoder to shift.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/face_renderer.h"

namespace mouthpiece::face {
namespace {

/** A quarter of a pixel, the unit of motion vectors, in 1/SUBPIXEL pixel. */
constexpr int QUARTER = SUBPIXEL / 4;
/** A shifted block that rests is drawn so many frames later, while the head moves or rests. */
constexpr int8_t SHIFTED_FRAMES = 3, SHIFTED_FRAMES_AT_REST = 1;
/**
 * A block whose movements are shifts is drawn every so many frames: each shift blurs a little,
 * which is seen first in fine texture. Its lag is shorter than a smooth block's, in pixels. Eyes
 * are looked at.
 */
constexpr uint8_t SMOOTH_TURN = 12, TEXTURED_TURN = 6, EYE_TURN = 3;
/** Macroblocks across that share lines of the cache, which have 64 bytes. */
constexpr int LINE_BLOCKS = 4;
constexpr float SMOOTH_LAG = .5f;
/** Eighths by which lags are longer while the head moves, where less is seen. */
constexpr int MOVING_LAG = 3;
/** How far from where it is at rest an eye is drawn, pixels. */
constexpr float EYE_SWAY = 8;
/** A block is not taken to be compressed more, as an area. */
constexpr float LEAST_STRETCH = .25f;

/** A row of a block's nodes. 16 bits are enough: MAX_SHIFT. */
using Row __attribute__((vector_size(16))) = int16_t;

Row load(const int16_t* nodes) {
  Row out;
  std::memcpy(&out, nodes, sizeof out);
  return out;
}
Row splat(int value) {
  return Row{} + int16_t(value);
}
Row abs(Row x) {
  return x < 0 ? -x : x;
}
Row max(Row a, Row b) {
  return a > b ? a : b;
}
Row lengthened(Row lag) {
  return lag + (MOVING_LAG * lag >> 3);
}
/** @returns whether one of the lanes that are a block's nodes is not 0 */
bool any(Row x) {
  using Halves __attribute__((vector_size(16))) = int64_t;
  const Halves of_block = Halves(x & Row{-1, -1, -1, -1, -1, 0, 0, 0});
  return (of_block[0] | of_block[1]) != 0;
}

}  // namespace

/**
 * Neighbouring blocks are drawn in turns, so that every frame costs the same and is as sharp. Those
 * that share lines of the cache are drawn together.
 */
void Renderer::assign_turns() {
  const Model& m = model_;
  const int across = (m.x1 - m.x0) / 16;
  const auto turn = [&](int i, int j, uint8_t every) {
    return Turn{uint8_t(((m.x0 / 16 + i) / LINE_BLOCKS + j) % every), every};
  };
  for (size_t k = 0; k < turns_.size(); k++) {
    const uint8_t every = m.lag[k] < SMOOTH_LAG * SUBPIXEL ? TEXTURED_TURN : SMOOTH_TURN;
    turns_[k] = turn(int(k) % across, int(k) / across, every);
  }
  for (const Eye& eye : m.eyes) {
    const Area& area = eye.lid_area;
    const Box box =
        grid_box(area.x0 - EYE_SWAY, area.y0 - EYE_SWAY, area.x1 + EYE_SWAY, area.y1 + EYE_SWAY);
    for (int y = box.y0; y < box.y1; y += 16) {
      for (int x = box.x0; x < box.x1; x += 16) {
        const int i = (x - m.x0) / 16, j = (y - m.y0) / 16;
        turns_[size_t(j * across + i)] = turn(i, j, EYE_TURN);
      }
    }
  }
}

/** @returns whether macroblock k of the grid, which moves, may be shifted now, and not drawn */
bool Renderer::is_shift_due(size_t k, bool head_moves) const {
  const Turn turn = turns_[k];
  if ((frame_ + turn.first) % turn.every == 0) {
    return false;
  }
  // A slow block of a head at rest is of the mouth: it is looked at, and drawn seldom anyway.
  return shifted_for_[k] == JUST_DRAWN || (head_moves && shifts_[k] + 1 < turn.every);
}

/**
 * @param first the first of its nodes
 * @returns how a block has moved since it was drawn, by its middle. What is at p now, drawn from
 * p - d(p), was at p + m before, where p + m - before(p + m) = p - d(p): in a linear field that is
 * m - J m = before(p) - d(p), with the gradient J of the displacement.
 */
Renderer::Shift Renderer::shift_of(size_t k, size_t first) const {
  constexpr int MIDDLE = PER_BLOCK / 2;
  const size_t middle = first + size_t(MIDDLE * model_.columns + MIDDLE);
  const Drawn& drawn = drawn_[k];
  const auto dx = float(drawn.x[MIDDLE][MIDDLE] - nodes_.x[middle]),
             dy = float(drawn.y[MIDDLE][MIDDLE] - nodes_.y[middle]);
  const auto& [xx, xy, yx, yy, scale] = drawn.field;
  const auto round = [](float value) { return int(std::floor(value + .5f)); };
  const int mx = round((yy * dx - xy * dy) * scale), my = round((xx * dy - yx * dx) * scale);
  const auto qx = float(mx * QUARTER), qy = float(my * QUARTER);
  return {mx, my, round(xx * qx + xy * qy), round(yx * qx + yy * qy)};
}

/** Notes what shifts of a block depend on besides its middle's displacement. They leave it as is.
 */
void Renderer::note_field(Drawn& drawn) {
  constexpr int MIDDLE = PER_BLOCK / 2, END = PER_BLOCK;
  const auto &x = drawn.x, &y = drawn.y;
  const auto gradient = [](int first, int last) { return float(last - first) / (16 * SUBPIXEL); };
  const float xx = 1 - gradient(x[MIDDLE][0], x[MIDDLE][END]),
              xy = -gradient(x[0][MIDDLE], x[END][MIDDLE]),
              yx = -gradient(y[MIDDLE][0], y[MIDDLE][END]),
              yy = 1 - gradient(y[0][MIDDLE], y[END][MIDDLE]);
  drawn.field = {xx, xy, yx, yy, 1 / (std::max(xx * yy - xy * yx, LEAST_STRETCH) * QUARTER)};
  const auto bend = [](const int16_t (&at)[Drawn::ROWS][Drawn::LANES]) {
    const int twice = 2 * at[MIDDLE][MIDDLE];
    return std::max(std::abs(at[MIDDLE][0] - twice + at[MIDDLE][END]),
                    std::abs(at[0][MIDDLE] - twice + at[END][MIDDLE]));
  };
  drawn.bend = std::max(bend(x), bend(y));
}

/**
 * @returns how far parts of a block miss their place when it is shifted, 1/SUBPIXEL pixel, beyond
 * what its nodes tell. Where the displacement is not linear that is the vector's length times how
 * much the gradient half a block from the middle differs.
 */
int Renderer::stray_of(size_t k, Shift shift) const {
  constexpr int HALF_BLOCK = 8;
  return drawn_[k].bend * std::max(std::abs(shift.x), std::abs(shift.y)) / (4 * HALF_BLOCK);
}

/** @returns whether a block that is shifted has all nodes where they should be, but for its lag */
bool Renderer::fits(size_t k, size_t first, Shift shift) const {
  if (shift.x == 0 && shift.y == 0) {
    return false;
  }
  const Drawn& drawn = drawn_[k];
  if (drawn.strayed + stray_of(k, shift) > model_.lag[k]) {
    return false;
  }
  const Row by_x = splat(shift.change_x), by_y = splat(shift.change_y);
  Row beyond{};
  for (int j = 0; j < Drawn::ROWS; j++) {
    const auto row = first + size_t(j * model_.columns);
    const Row x = load(drawn.x[j]) - by_x - load(nodes_.x.data() + row),
              y = load(drawn.y[j]) - by_y - load(nodes_.y.data() + row);
    beyond |= max(abs(x), abs(y)) > lengthened(load(drawn.lag[j]));
  }
  return !any(beyond);
}

/**
 * Marks the blocks of which a node is farther than the block's lag from where it was when the block
 * was drawn, those that have come to rest, and those that were shifted and have rested since then.
 * A sway there and back is drawn when it is seen, not when the way adds up. Most movements of a
 * block that moves as a whole are shifts.
 */
void Renderer::mark_changes(std::span<uint8_t> dirty, bool may_shift) {
  const Model& m = model_;
  const int across = (m.x1 - m.x0) / 16, down = (m.y1 - m.y0) / 16;
  const Pose &now = pose_, &was = last_pose_;
  const bool head_moves = now.yaw != was.yaw || now.pitch != was.pitch || now.roll != was.roll ||
                          now.shift_x != was.shift_x || now.shift_y != was.shift_y;
  const int8_t frames = head_moves ? SHIFTED_FRAMES : SHIFTED_FRAMES_AT_REST;
  for (int by = 0; by < down; by++) {
    uint8_t* row = dirty.data() + (m.y0 / 16 + by) * (m.asset.width / 16) + m.x0 / 16;
    for (int bx = 0; bx < across; bx++) {
      const size_t k = size_t(by * across + bx), first = first_node(bx, by);
      Drawn& drawn = drawn_[k];
      Row changed{}, beyond{}, moved{};
      for (int j = 0; j < Drawn::ROWS; j++) {
        const size_t at = first + size_t(j * m.columns);
        const Row x = load(nodes_.x.data() + at), y = load(nodes_.y.data() + at);
        const Row far = max(abs(x - load(drawn.x[j])), abs(y - load(drawn.y[j])));
        const Row lag = load(drawn.lag[j]);
        beyond |= far > (head_moves ? lengthened(lag) : lag);
        changed |= far;
        moved |= x | y;
      }
      const bool is_away = any(moved);
      const bool moves = any(is_away ? beyond : changed);
      if (!moves && shifted_for_[k] < frames) {
        continue;
      }
      bool shifts = may_shift && is_away && is_shift_due(k, head_moves);
      if (shifts) {
        drawn.shift = shift_of(k, first);
        shifts = fits(k, first, drawn.shift);
      }
      row[bx] = shifts ? SHIFTED : DRAWN;
    }
  }
}

/** Remembers where the nodes of changed blocks are. Says how what they show has moved. */
void Renderer::remember_drawn(std::span<const uint8_t> dirty, std::span<int16_t> motion) {
  const Model& m = model_;
  std::fill(motion.begin(), motion.end(), int16_t(0));
  const int across = (m.x1 - m.x0) / 16, down = (m.y1 - m.y0) / 16;
  has_shifted_ = false;
  for (int by = 0; by < down; by++) {
    for (int bx = 0; bx < across; bx++) {
      const size_t k = size_t(by * across + bx);
      const auto at = size_t((m.y0 / 16 + by) * (m.asset.width / 16) + m.x0 / 16 + bx);
      if (dirty[at] == UNCHANGED) {
        if (shifted_for_[k] == JUST_DRAWN) {
          shifted_for_[k] = 0;
        } else if (shifted_for_[k] != 0) {
          shifted_for_[k]++;
          has_shifted_ = true;
        }
        continue;
      }
      const bool shifts = dirty[at] == SHIFTED;
      shifted_for_[k] = shifts ? 1 : JUST_DRAWN;
      shifts_[k] = shifts ? shifts_[k] + 1 : 0;
      has_shifted_ |= shifts;
      if (!motion.empty()) {
        const Shift shift = shifts ? drawn_[k].shift : shift_of(k, first_node(bx, by));
        motion[2 * at] = int16_t(shift.x);
        motion[2 * at + 1] = int16_t(shift.y);
      }
      if (shifts) {
        note_shift(k);
      } else {
        note_drawn(bx, by, drawn_[k]);
      }
    }
  }
}

/** Notes that a block was shifted by its shift of this frame. */
void Renderer::note_shift(size_t k) {
  Drawn& drawn = drawn_[k];
  const Row by_x = splat(drawn.shift.change_x), by_y = splat(drawn.shift.change_y);
  drawn.strayed += stray_of(k, drawn.shift);
  for (int j = 0; j < Drawn::ROWS; j++) {
    const Row x = load(drawn.x[j]) - by_x, y = load(drawn.y[j]) - by_y;
    std::memcpy(drawn.x[j], &x, sizeof x);
    std::memcpy(drawn.y[j], &y, sizeof y);
  }
}

/** Notes where the nodes of a block are that was drawn. */
void Renderer::note_drawn(int bx, int by, Drawn& drawn) const {
  const Model& m = model_;
  const size_t first = first_node(bx, by);
  // What is shown is of another place: by the middle's displacement.
  constexpr int MIDDLE = PER_BLOCK / 2;
  const size_t middle = first + size_t(MIDDLE * m.columns + MIDDLE);
  const auto from = [](int block, int displacement, int count) {
    constexpr int STEP = NODE_STEP * SUBPIXEL;
    return std::clamp(block * PER_BLOCK - (displacement + STEP / 2) / STEP, 0, count - Drawn::ROWS);
  };
  const int column = from(bx, nodes_.x[middle], m.columns),
            line = from(by, nodes_.y[middle], m.rows);
  for (int j = 0; j < Drawn::ROWS; j++) {
    const size_t row = first + size_t(j * m.columns);
    std::memcpy(drawn.lag[j], m.node_lag.data() + m.node(column, line + j), sizeof drawn.lag[j]);
    std::memcpy(drawn.x[j], nodes_.x.data() + row, sizeof drawn.x[j]);
    std::memcpy(drawn.y[j], nodes_.y.data() + row, sizeof drawn.y[j]);
  }
  drawn.strayed = 0;
  note_field(drawn);
}

}  // namespace mouthpiece::face
