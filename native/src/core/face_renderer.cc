// One frame: clamps the input, displaces the grid, redraws the macroblocks that changed, then the
// mouth and the eyes over them. Amounts without another source were chosen by eye on the default
// faces.
#include "core/face_renderer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/face_iris.h"

namespace mouthpiece::face {
namespace {

/** Share of the distance to a new mood that one frame covers: 90 % after 10 frames. */
constexpr float MOOD_EASE = .206f;
/** The surface of the lips is as fully rounded as their shape: from this rounding on, so much more.
 */
constexpr float PURSED_FROM = .04f, PURSED = 1.3f;

float clamp_finite(float x, float low, float high) {
  return x >= low ? (x <= high ? x : high) : (x < low ? low : 0.f);
}

/** Keeps x within ±bound: exact up to half of it, then ever smaller steps instead of a stop. */
float soft_limit(float x, float bound) {
  const float half = .5f * bound, over = std::abs(x) - half;
  return over <= 0 ? x : std::copysign(half + half * std::tanh(over / std::max(half, 1e-6f)), x);
}

float* values_of(Articulation& a) {
  return &a.jaw;
}
float* values_of(Pose& p) {
  return &p.blink_left;
}

template <class Record>
bool same(const Record& a, const Record& b) {
  // Bits, not values: a record that is equal but for the sign of a zero may be drawn again.
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  return std::memcmp(&a, &b, sizeof(Record)) == 0;
}

}  // namespace

Renderer::Renderer(const Model& model, const Warp& warp, DrawEye eye_drawing)
    : model_(model),
      warp_(warp),
      draw_eye_(eye_drawing),
      interior_(model),
      head_(model.weight.size()),
      raise_(model.weight.size(), 0.f),
      head_nodes_(model.weight.size()),
      nodes_(model.weight.size()),
      upper_(model.weight.size()),
      lower_(model.weight.size()),
      local_(model.weight.size()),
      seam_(model.weight.size(), 0),
      drawn_(model.lag.size()),
      turns_(model.lag.size()),
      shifted_for_(model.lag.size(), 0),
      shifts_(model.lag.size(), 0) {
  // Eight rows of luma and their chroma.
  by_upper_.assign(size_t(model.asset.width) * 12, 0);
  by_lower_.assign(size_t(model.asset.width) * 12, 0);
  assign_turns();
}

void Renderer::set_emotion(int emotion, float strength) {
  goal_ = mix(mood_of(0), mood_of(emotion), clamp_finite(strength, 0, 1));
}

void Renderer::render(const Articulation& articulation, const Pose& pose,
                      std::span<uint8_t> picture, std::span<uint8_t> dirty,
                      std::span<int16_t> motion, bool may_shift) {
  std::fill(dirty.begin(), dirty.end(), uint8_t(UNCHANGED));
  frame_++;
  apply_limits(articulation, pose);
  const bool first = !valid_;
  const bool mouth_same = !first && same(articulation_, last_articulation_) &&
                          same(mood_, last_mood_) && pose_.chin == last_pose_.chin;
  const bool pose_same = !first && same(pose_, last_pose_);
  if (mouth_same && pose_same && !has_shifted_) {
    return;
  }

  if (first) {
    std::memcpy(picture.data(), model_.asset.luma, picture.size());
    std::fill(dirty.begin(), dirty.end(), uint8_t(DRAWN));
    mouth_drawn_ = eyes_drawn_[0] = eyes_drawn_[1] = {};
  }
  if (!mouth_same) {
    shape_mouth(model_, articulation_, mood_, pose_.chin, mouth_);
    interior_.prepare(mouth_);
  }
  const Pose eyes_aside{pose_.blink_left,   pose_.blink_right, pose_.gaze_x,    pose_.gaze_y,
                        last_pose_.yaw,     last_pose_.pitch,  last_pose_.roll, last_pose_.shift_x,
                        last_pose_.shift_y, last_pose_.breath, last_pose_.brow, pose_.chin};
  if (first || !mouth_same || !same(pose_, eyes_aside) || mood_.brow != last_mood_.brow ||
      mood_.frown != last_mood_.frown || mood_.smile != last_mood_.smile) {
    displace_head();
  }
  nodes_ = head_nodes_;
  if (mouth_.moved) {
    displace_mouth();
  }
  mark_changes(dirty, may_shift && !first && !motion.empty());
  update_relief(dirty);

  seam_box_ = mouth_.moved ? mouth_box() : Box{};
  const Point shift = iris_shift(model_.eyes, pose_.gaze_x, pose_.gaze_y);
  const auto eye_overlay = [&](const Eye& eye, float blink) {
    return EyeOverlay(model_.asset, eye, blink, mood_.lids, shift);
  };
  const EyeOverlay eyes[2] = {eye_overlay(model_.eyes[0], pose_.blink_left),
                              eye_overlay(model_.eyes[1], pose_.blink_right)};
  const bool lids_same = mood_.lids == last_mood_.lids && pose_.gaze_x == last_pose_.gaze_x &&
                         pose_.gaze_y == last_pose_.gaze_y;
  // What lies over the blocks is shifted with them. All blocks of an eye are drawn when its state
  // changed, and of the mouth when any is.
  const bool eye_same[2] = {!first && lids_same && pose_.blink_left == last_pose_.blink_left,
                            !first && lids_same && pose_.blink_right == last_pose_.blink_right};
  for (size_t side = 0; side < 2; side++) {
    const Box now = eyes[side].still() ? Box{} : eye_box(eyes[side]);
    if (!eye_same[side]) {
      mark(eyes_drawn_[side], dirty);
      mark(now, dirty);
    }
    eyes_drawn_[side] = now;
  }
  const bool draws_mouth =
      first || !mouth_same || touched(seam_box_, dirty) || touched(mouth_drawn_, dirty);
  if (draws_mouth) {
    mark(mouth_drawn_, dirty);
    mark(seam_box_, dirty);
    mouth_drawn_ = seam_box_;
  }
  draw_blocks(dirty, picture.data());
  remember_drawn(dirty, motion);
  if (draws_mouth && !seam_box_.empty()) {
    draw_mouth(seam_box_, picture.data());
  }
  for (size_t side = 0; side < 2; side++) {
    if (!eyes_drawn_[side].empty()) {
      draw_eye(eyes[side], eyes_drawn_[side], dirty, picture.data());
    }
  }
  last_articulation_ = articulation_;
  last_pose_ = pose_;
  last_mood_ = mood_;
  valid_ = true;
}

/** Clamps the input to the face's limits and moves the mood towards its goal. */
void Renderer::apply_limits(const Articulation& articulation, const Pose& pose) {
  const auto& limits = model_.asset.limits;
  articulation_ = articulation;
  for (size_t i = 0; i < Articulation::SIZE; i++) {
    values_of(articulation_)[i] = clamp_finite(values_of(articulation_)[i], 0, 1);
  }
  articulation_.nod = 0;  // already in the pose
  pose_ = pose;
  for (size_t i = 0; i < 2; i++) {
    values_of(pose_)[i] = clamp_finite(values_of(pose_)[i], 0, 1);
  }
  for (size_t i = 2; i < Pose::SIZE; i++) {
    values_of(pose_)[i] = clamp_finite(values_of(pose_)[i], -20, 20);
  }
  const auto within = [](float& x, float bound) { x = std::clamp(x, -bound, bound); };
  within(pose_.gaze_x, 1);
  within(pose_.gaze_y, 1);
  within(pose_.chin, 1);
  pose_.yaw = soft_limit(pose_.yaw, limits.yaw);
  pose_.pitch = soft_limit(pose_.pitch, limits.pitch);
  pose_.roll = soft_limit(pose_.roll, limits.roll);
  pose_.shift_x = soft_limit(pose_.shift_x, limits.shift);
  pose_.shift_y = soft_limit(pose_.shift_y, limits.shift);
  pose_.breath = clamp01(pose_.breath);
  pose_.brow = std::clamp(pose_.brow + articulation_.brow, 0.f, 1.f);
  articulation_.brow = 0;
  const Mood next = mix(mood_, goal_, MOOD_EASE);
  const auto near = [](float a, float b) { return std::abs(a - b) < 1e-3f; };
  const bool there = near(next.smile, goal_.smile) && near(next.brow, goal_.brow) &&
                     near(next.frown, goal_.frown) && near(next.lids, goal_.lids) &&
                     near(next.press, goal_.press) && near(next.open, goal_.open) &&
                     near(next.gain, goal_.gain);
  mood_ = there ? goal_ : next;
}

void Renderer::mark(Box box, std::span<uint8_t> dirty) const {
  for (int y = box.y0; y < box.y1; y += 16) {
    for (int x = box.x0; x < box.x1; x += 16) {
      dirty[size_t(y / 16 * (model_.asset.width / 16) + x / 16)] = DRAWN;
    }
  }
}

/** @returns whether a block of the box is drawn */
bool Renderer::touched(Box box, std::span<const uint8_t> dirty) const {
  for (int y = box.y0; y < box.y1; y += 16) {
    for (int x = box.x0; x < box.x1; x += 16) {
      if (dirty[size_t(y / 16 * (model_.asset.width / 16) + x / 16)] == DRAWN) {
        return true;
      }
    }
  }
  return false;
}

/** @returns the macroblocks that a rectangle touches, within the grid */
Renderer::Box Renderer::grid_box(float left, float top, float right, float bottom) const {
  const auto block = [](float value, int low, int high) {
    return std::clamp(int(std::floor(value)) & ~15, low, high);
  };
  return {block(left, model_.x0, model_.x1), block(top, model_.y0, model_.y1),
          block(right + 16, model_.x0, model_.x1), block(bottom + 16, model_.y0, model_.y1)};
}

Renderer::Box Renderer::mouth_box() const {
  const Contours& c = model_.contours;
  float left = 1e9f, right = -1e9f, top = 1e9f, bottom = -1e9f;
  for (int i = 0; i < c.count; i++) {
    const Mouth::Column& column = mouth_.columns[size_t(i)];
    if (std::abs(c.left + float(i) - c.centre) > MOUTH_REACH * c.half_width) {
      continue;
    }
    for (const float y : {column.y_top - 3, column.y_bottom + 3}) {
      const Point p = model_.frame.to_picture(c.left + float(i), y);
      left = std::min(left, p.x);
      right = std::max(right, p.x);
      top = std::min(top, p.y);
      bottom = std::max(bottom, p.y);
    }
  }
  const size_t k = model_.nearest((left + right) / 2, (top + bottom) / 2);
  const float margin = 3 + BLUR_REACH * model_.blur, dx = head_.x[k], dy = head_.y[k];
  return grid_box(left + dx - margin, top + dy - margin, right + dx + margin, bottom + dy + margin);
}

/** Sets the strength of the relief and of the skin's light, and marks where they change. */
void Renderer::update_relief(std::span<uint8_t> dirty) {
  if (model_.grade.line_art) {
    return;
  }
  const Articulation& a = mouth_.now;
  const float bare =
      std::max({3 * (std::max(a.jaw, a.open) - .2f) * (1 - .35f * a.wide), 2.2f * a.round,
                .7f * a.press, .7f * a.tuck, .9f * smoothstep(0, .5f, std::max(a.wide, a.teeth))});
  const std::array<int, Relief::LAYERS> relief{
      int(clamp01(PURSED * (a.round - PURSED_FROM)) * RELIEF_STEPS),
      int(std::lround(clamp01(bare) * RELIEF_STEPS))};
  for (size_t layer = 0; layer < Relief::LAYERS; layer++) {
    if (relief[layer] != relief_[layer]) {
      mark_relief(model_.relief.layers[layer].cells, 1, dirty);
    }
  }
  relief_ = relief;
  const auto steps = [](float strength) {
    return int(std::lround(clamp01(strength) * SKIN_STEPS)) * (RELIEF_STEPS / SKIN_STEPS);
  };
  const std::array<int, Relief::KINDS> skin{steps(a.round),
                                            steps(1.25f * (a.wide * (1 - a.round) - .2f)),
                                            steps(a.press), steps(1.3f * a.jaw)};
  unsigned changed = 0;
  for (size_t kind = 0; kind < Relief::KINDS; kind++) {
    changed |= skin[kind] == skin_[kind] ? 0u : 1u << kind;
  }
  if (changed != 0) {
    mark_relief(model_.relief.skin_cells, changed, dirty);
    skin_ = skin;
  }
}

/** Marks where cells have one of some bits, by the displacement of their middles. */
void Renderer::mark_relief(std::span<const uint8_t> cells, unsigned kinds,
                           std::span<uint8_t> dirty) const {
  const Relief& relief = model_.relief;
  constexpr int CELL = Relief::CELL, STRETCH = 2;
  constexpr float MIDDLE = CELL / 2.f;
  for (int y = 0; y < relief.height; y += CELL) {
    for (int x = 0; x < relief.width; x += CELL) {
      if (cells[size_t(y / CELL * (relief.width / CELL) + x / CELL)] & kinds) {
        const float left = float(relief.left + x), top = float(relief.top + y);
        const size_t k = model_.nearest(left + MIDDLE, top + MIDDLE);
        const float dx = float(nodes_.x[k]) / SUBPIXEL, dy = float(nodes_.y[k]) / SUBPIXEL;
        mark(grid_box(left + dx - STRETCH, top + dy - STRETCH, left + dx + CELL + STRETCH - 1,
                      top + dy + CELL + STRETCH - 1),
             dirty);
      }
    }
  }
}

/** @returns where an area of the neutral picture may be now, by the displacement of its corners */
Area Renderer::moved(const Area& area) const {
  Area out{1e9f, 1e9f, -1e9f, -1e9f};
  for (const float x : {area.x0, area.x1}) {
    for (const float y : {area.y0, area.y1}) {
      const size_t k = model_.nearest(x, y);
      out = {std::min(out.x0, x + head_.x[k]), std::min(out.y0, y + head_.y[k]),
             std::max(out.x1, x + head_.x[k]), std::max(out.y1, y + head_.y[k])};
    }
  }
  return {out.x0 - 2, out.y0 - 2, out.x1 + 2, out.y1 + 2};
}

Renderer::Box Renderer::eye_box(const EyeOverlay& overlay) const {
  const Area area = moved(overlay.area());
  return grid_box(area.x0, area.y0, area.x1, area.y1);
}

}  // namespace mouthpiece::face
