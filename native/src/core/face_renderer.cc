// The frame: limits the input, moves the grid, redraws the macroblocks that changed, then the mouth's seam and the eyes on top.
#include "core/face_renderer.h"

#include <algorithm>
#include <cstring>

namespace mouthpiece::face {
namespace {

/** Share of the way to a new mood that one frame takes: 90 % after 10 frames. */
constexpr float MOOD_EASE = .206f;
constexpr float BREATH_LIFT = 1.6f;          // pixels of a 512 picture
constexpr float BROW_LIFT = .034f, FROWN = .020f;   // shares of the face's height
constexpr float GAZE_X = .055f, GAZE_Y = .07f;      // of the eye's length and height

float finite(float x, float low, float high) { return x >= low ? (x <= high ? x : high) : (x < low ? low : 0.f); }

float* floats(Articulation& a) { return &a.jaw; }
float* floats(Pose& p) { return &p.blink_left; }

template <class Record>
bool same(const Record& a, const Record& b) { return std::memcmp(&a, &b, sizeof(Record)) == 0; }

}  // namespace

Renderer::Renderer(const Model& model, WarpRow warp_row) : model_(model), warp_row_(warp_row) {
  const size_t nodes = model.weight.size();
  head_.assign(nodes, {0, 0});
  nodes_.assign(nodes, {0, 0});
  last_nodes_.assign(nodes, {0, 0});
  upper_.assign(nodes, {0, 0});
  lower_.assign(nodes, {0, 0});
  local_.assign(nodes, {0, 0});
  row_x_.assign(size_t(model.columns) + 8, 0);
  row_y_.assign(size_t(model.columns) + 8, 0);
  by_upper_.assign(size_t(model.asset.width) * 6, 0);
  by_lower_.assign(size_t(model.asset.width) * 6, 0);
}

void Renderer::set_emotion(int emotion, float strength) { goal_ = mix(mood_of(0), mood_of(emotion), finite(strength, 0, 1)); }

void Renderer::render(const Articulation& articulation, const Pose& pose, std::span<uint8_t> picture, std::span<uint8_t> dirty) {
  std::fill(dirty.begin(), dirty.end(), uint8_t(0));
  limit(articulation, pose);
  const bool first = !valid_;
  const bool mouth_same = !first && same(articulation_, last_articulation_) && same(mood_, last_mood_);
  const bool pose_same = !first && same(pose_, last_pose_);
  if (mouth_same && pose_same) return;

  if (first) {
    std::memcpy(picture.data(), model_.asset.luma, picture.size());
    std::fill(dirty.begin(), dirty.end(), uint8_t(1));
    std::fill(last_nodes_.begin(), last_nodes_.end(), Shift{0, 0});
    mouth_drawn_ = eyes_drawn_[0] = eyes_drawn_[1] = {};
  }
  if (!mouth_same) shape_mouth(model_, articulation_, mood_, mouth_);
  move_head();
  move_nodes();
  mark_changes(dirty);

  // What is drawn on top of the warp is redrawn whole when its state or anything under it changed.
  const Gaze gazes[2] = {
      {model_.asset, model_.eyes[0], clamp01(pose_.blink_left + mood_.lids * (1 - pose_.blink_left)), pose_.gaze_x * GAZE_X * model_.eyes[0].length, pose_.gaze_y * GAZE_Y * model_.eyes[0].height},
      {model_.asset, model_.eyes[1], clamp01(pose_.blink_right + mood_.lids * (1 - pose_.blink_right)), pose_.gaze_x * GAZE_X * model_.eyes[1].length, pose_.gaze_y * GAZE_Y * model_.eyes[1].height},
  };
  const Box mouth = mouth_.moved ? mouth_box() : Box{};
  mark(mouth_drawn_, dirty);
  mark(mouth, dirty);
  Box eyes[2];
  for (int side = 0; side < 2; side++) {
    eyes[side] = gazes[side].still() ? Box{} : eye_box(model_.eyes[size_t(side)]);
    mark(eyes_drawn_[side], dirty);
    mark(eyes[side], dirty);
  }
  draw_blocks(dirty, picture.data());
  if (!mouth.empty()) draw_mouth(mouth, picture.data());
  for (int side = 0; side < 2; side++) {
    if (!eyes[side].empty()) draw_eye(gazes[side], eyes[side], picture.data());
    eyes_drawn_[side] = eyes[side];
  }
  mouth_drawn_ = mouth;
  last_nodes_.swap(nodes_);
  last_articulation_ = articulation_;
  last_pose_ = pose_;
  last_mood_ = mood_;
  valid_ = true;
}

/** Brings the input into the face's limits and eases the mood. */
void Renderer::limit(const Articulation& articulation, const Pose& pose) {
  const auto& limits = model_.asset.limits;
  articulation_ = articulation;
  for (size_t i = 0; i < Articulation::SIZE; i++) floats(articulation_)[i] = finite(floats(articulation_)[i], 0, 1);
  articulation_.nod = articulation_.speech = 0;   // the pose carries them
  pose_ = pose;
  for (size_t i = 0; i < 2; i++) floats(pose_)[i] = finite(floats(pose_)[i], 0, 1);
  for (size_t i = 2; i < Pose::SIZE; i++) floats(pose_)[i] = finite(floats(pose_)[i], -20, 20);
  const auto within = [](float& x, float bound) { x = std::clamp(x, -bound, bound); };
  within(pose_.gaze_x, 1);
  within(pose_.gaze_y, 1);
  within(pose_.yaw, limits.yaw);
  within(pose_.pitch, limits.pitch);
  within(pose_.roll, limits.roll);
  within(pose_.shift_x, limits.shift);
  within(pose_.shift_y, limits.shift);
  pose_.breath = clamp01(pose_.breath);
  pose_.brow = std::clamp(pose_.brow + articulation_.brow, 0.f, 1.f);
  articulation_.brow = 0;
  const Mood next = mix(mood_, goal_, MOOD_EASE);
  const auto near = [](float a, float b) { return std::abs(a - b) < 1e-3f; };
  const bool there = near(next.smile, goal_.smile) && near(next.brow, goal_.brow) && near(next.frown, goal_.frown) && near(next.lids, goal_.lids) && near(next.press, goal_.press) && near(next.open, goal_.open) && near(next.gain, goal_.gain);
  mood_ = there ? goal_ : next;
}

/** The pose of head and brows, which is linear in its parameters for angles this small. */
void Renderer::move_head() {
  const Model& m = model_;
  const float scale = float(m.asset.height) / 512;
  const float sx = pose_.shift_x * scale, sy = (pose_.shift_y - pose_.breath * BREATH_LIFT) * scale;
  const float lift = -(pose_.brow + mood_.brow) * BROW_LIFT * m.face_height, frown = mood_.frown * FROWN * m.face_height;
  const Point down{-m.frame.sin, m.frame.cos};
  for (int j = 0; j < m.rows; j++) {
    const float y = float(m.y0 + j * NODE_STEP) - m.pivot.y;
    for (int i = 0; i < m.columns; i++) {
      const size_t k = size_t(m.node(i, j));
      const float x = float(m.x0 + i * NODE_STEP) - m.pivot.x;
      const float brow = lift * std::min(1.f, m.brow_left[k] + m.brow_right[k]) + frown * m.brow_inner[k];
      head_[k] = {m.weight[k] * (sx - pose_.roll * y) + pose_.yaw * m.depth[k] + brow * down.x,
                  m.weight[k] * (sy + pose_.roll * x) + pose_.pitch * m.depth[k] + brow * down.y};
    }
  }
}

Renderer::Place Renderer::head_shift(float x, float y) const {
  const int i = std::clamp(int((x - float(model_.x0)) / NODE_STEP), 0, model_.columns - 1), j = std::clamp(int((y - float(model_.y0)) / NODE_STEP), 0, model_.rows - 1);
  return head_[size_t(model_.node(i, j))];
}

void Renderer::move_nodes() {
  for (int j = 0; j < model_.rows; j++) {
    for (int i = 0; i < model_.columns; i++) move_node(i, j);
  }
}

void Renderer::move_node(int i, int j) {
  const Model& m = model_;
  const size_t k = size_t(m.node(i, j));
  const auto fixed = [](float dx, float dy) { return Shift{int16_t(std::floor(dx * NODE_UNIT + .5f)), int16_t(std::floor(dy * NODE_UNIT + .5f))}; };
  const Place head = head_[k];
  if (!mouth_.moved || m.weight[k] == 0) {
    nodes_[k] = upper_[k] = lower_[k] = fixed(head.x, head.y);
    return;
  }
  const Contours& c = m.contours;
  const Point p = m.frame.to_local(float(m.x0 + i * NODE_STEP) - head.x, float(m.y0 + j * NODE_STEP) - head.y);
  local_[k] = {p.x, p.y};
  if (p.y < c.nose - .10f * m.face_height || p.x < c.left || p.x > c.left + float(c.count)) {
    nodes_[k] = upper_[k] = lower_[k] = fixed(head.x, head.y);
    return;
  }
  const Sides sides = displace(m, mouth_, p);
  const auto picture = [&](Point d) { return fixed(head.x + m.weight[k] * (m.frame.cos * d.x - m.frame.sin * d.y), head.y + m.weight[k] * (m.frame.sin * d.x + m.frame.cos * d.y)); };
  upper_[k] = picture(sides.upper);
  lower_[k] = picture(sides.lower);
  nodes_[k] = sides.below ? lower_[k] : upper_[k];
}

void Renderer::mark_changes(std::span<uint8_t> dirty) const {
  const Model& m = model_;
  const int across = m.asset.width / 16;
  for (int j = 0; j < m.rows; j++) {
    const Shift* now = nodes_.data() + m.node(0, j);
    const Shift* then = last_nodes_.data() + m.node(0, j);
    if (std::memcmp(now, then, sizeof(Shift) * size_t(m.columns)) == 0) continue;
    for (int i = 0; i < m.columns; i++) {
      if (now[i].x == then[i].x && now[i].y == then[i].y) continue;
      // A node on the border of two macroblocks moves pixels of both.
      for (int row = std::max(0, j - 1) / 4; row <= std::min(m.rows - 2, j) / 4; row++) {
        for (int column = std::max(0, i - 1) / 4; column <= std::min(m.columns - 2, i) / 4; column++) dirty[size_t((m.y0 / 16 + row) * across + m.x0 / 16 + column)] = 1;
      }
    }
  }
}

void Renderer::mark(Box box, std::span<uint8_t> dirty) const {
  for (int y = box.y0; y < box.y1; y += 16) {
    for (int x = box.x0; x < box.x1; x += 16) dirty[size_t(y / 16 * (model_.asset.width / 16) + x / 16)] = 1;
  }
}

Renderer::Box Renderer::mouth_box() const {
  const Contours& c = model_.contours;
  float left = 1e9f, right = -1e9f, top = 1e9f, bottom = -1e9f;
  for (int i = 0; i < c.count; i++) {
    const Mouth::Column& column = mouth_.columns[size_t(i)];
    if (std::abs(c.left + float(i) - c.centre) > 1.35f * c.half_width) continue;
    for (const float y : {column.y_top - 3, column.y_bottom + 3}) {
      const Point p = model_.frame.to_picture(c.left + float(i), y);
      left = std::min(left, p.x);
      right = std::max(right, p.x);
      top = std::min(top, p.y);
      bottom = std::max(bottom, p.y);
    }
  }
  const Place shift = head_shift((left + right) / 2, (top + bottom) / 2);
  const auto down = [](float value, int low, int high) { return std::clamp(int(std::floor(value)) & ~15, low, high); };
  return {down(left + shift.x - 3, model_.x0, model_.x1), down(top + shift.y - 3, model_.y0, model_.y1),
          down(right + shift.x + 19, model_.x0, model_.x1), down(bottom + shift.y + 19, model_.y0, model_.y1)};
}

Renderer::Box Renderer::eye_box(const Eye& eye) const {
  const Place shift = head_shift(float(eye.x0 + eye.x1) / 2, float(eye.y0 + eye.y1) / 2);
  const auto down = [](float value, int low, int high) { return std::clamp(int(std::floor(value)) & ~15, low, high); };
  return {down(float(eye.x0) + shift.x - 3, model_.x0, model_.x1), down(float(eye.y0) + shift.y - 3, model_.y0, model_.y1),
          down(float(eye.x1) + shift.x + 18, model_.x0, model_.x1), down(float(eye.y1) + shift.y + 18, model_.y0, model_.y1)};
}

Plane Renderer::plane(int index) const {
  const Asset& a = model_.asset;
  if (index == 0) return {a.luma, a.width, a.width, a.height};
  return {index == 1 ? a.u : a.v, a.width / 2, a.width / 2, a.height / 2};
}

/**
 * Warps the neutral picture's plane (0 Y, 1 U, 2 V) through `nodes` over `box` (luma pixels; x multiples of 16, y of 4 and two
 * luma rows per chroma row) to `out` at (out_x, out_y) in the plane's own pixels.
 */
void Renderer::draw_rows(const std::vector<Shift>& nodes, int index, Box box, uint8_t* out, int stride, int out_x, int out_y) {
  const Plane source = plane(index);
  const int scale = index == 0 ? 1 : 2, step = scale;   // every second node for chroma
  const int first = (box.x0 - model_.x0) / NODE_STEP, count = (box.x1 - box.x0) / NODE_STEP / step;
  for (int y = box.y0 / scale; y < box.y1 / scale; y++) {
    const int at = y - model_.y0 / scale, f = at % NODE_STEP;
    const Shift* top = nodes.data() + model_.node(first, at / NODE_STEP * step);
    const Shift* low = f == 0 ? top : top + model_.columns * step;
    for (int k = 0; k <= count; k++) {
      row_x_[size_t(k)] = top[k * step].x * (NODE_STEP - f) + low[k * step].x * f;
      row_y_[size_t(k)] = top[k * step].y * (NODE_STEP - f) + low[k * step].y * f;
    }
    const WarpSpan span{row_x_.data(), row_y_.data(), box.x0 / scale, y, (box.x1 - box.x0) / scale, scale};
    warp_row_(source, span, out + size_t(out_y + y - box.y0 / scale) * size_t(stride) + size_t(out_x));
  }
}

void Renderer::draw_blocks(std::span<const uint8_t> dirty, uint8_t* picture) {
  const int width = model_.asset.width, across = width / 16;
  const size_t pixels = size_t(width) * size_t(model_.asset.height);
  for (int y = model_.y0; y < model_.y1; y += 16) {
    const uint8_t* row = dirty.data() + y / 16 * across;
    for (int x = model_.x0; x < model_.x1; x += 16) {
      if (!row[x / 16]) continue;
      int end = x + 16;
      while (end < model_.x1 && row[end / 16]) end += 16;
      const Box box{x, y, end, y + 16};
      draw_rows(nodes_, 0, box, picture, width, x, y);
      draw_rows(nodes_, 1, box, picture + pixels, width / 2, x / 2, y / 2);
      draw_rows(nodes_, 2, box, picture + pixels + pixels / 4, width / 2, x / 2, y / 2);
      x = end;
    }
  }
}

/** Where the opening or the seam runs, pixels choose their lip's side one by one, and what lies between the lips is painted in. */
void Renderer::draw_mouth(Box box, uint8_t* picture) {
  const Inside inside(model_, mouth_);
  const Contours& c = model_.contours;
  const auto near = [&](int i, int j) {
    const Place p = local_[size_t(model_.node(i, j))];
    if (std::abs(p.x - c.centre) > 1.35f * c.half_width) return false;
    const Mouth::Column m = mouth_.at(c, p.x);
    return p.y > m.y_top - 4 - NODE_STEP && p.y < m.y_bottom + 4 + NODE_STEP;
  };
  for (int y = box.y0; y < box.y1; y += NODE_STEP) {
    const int j = (y - model_.y0) / NODE_STEP;
    int left = box.x1, right = box.x0;
    for (int x = box.x0; x <= box.x1; x += NODE_STEP) {
      const int i = (x - model_.x0) / NODE_STEP;
      if (!near(i, j) && !near(i, j + 1)) continue;
      left = std::min(left, x - NODE_STEP);
      right = std::max(right, x + NODE_STEP);
    }
    left = std::max(box.x0, left & ~15);
    right = std::min(box.x1, (right + 15) & ~15);
    if (left < right) draw_mouth_rows(inside, y, left, right, picture);
  }
}

void Renderer::draw_mouth_rows(const Inside& inside, int y0, int x0, int x1, uint8_t* picture) {
  const int width = model_.asset.width, j = (y0 - model_.y0) / NODE_STEP;
  const size_t pixels = size_t(width) * size_t(model_.asset.height);
  const Contours& c = model_.contours;
  for (int index = 0; index < 3; index++) {
    const int scale = index == 0 ? 1 : 2, count = (x1 - x0) / scale, rows = NODE_STEP / scale;
    const Box box{x0, y0, x1, y0 + NODE_STEP};
    draw_rows(upper_, index, box, by_upper_.data(), count, 0, 0);
    draw_rows(lower_, index, box, by_lower_.data(), count, 0, 0);
    uint8_t* out = picture + (index == 0 ? 0 : index == 1 ? pixels : pixels + pixels / 4);
    for (int row = 0; row < rows; row++) {
      const float middle = index == 0 ? 0.f : .5f;   // chroma lies between its pixels
      const float fy = (float(row * scale) + middle) / NODE_STEP;
      const uint8_t* from_upper = by_upper_.data() + row * count;
      const uint8_t* from_lower = by_lower_.data() + row * count;
      uint8_t* line = out + size_t(y0 / scale + row) * size_t(width / scale) + size_t(x0 / scale);
      for (int i = 0; i < count; i++) {
        const float px = (float(i * scale) + middle) / NODE_STEP;
        const int cell = int(px);
        const float fx = px - float(cell);
        const Place* a = local_.data() + model_.node((x0 - model_.x0) / NODE_STEP + cell, j);
        const Place* b = a + model_.columns;
        const Point p{mix(mix(a[0].x, a[1].x, fx), mix(b[0].x, b[1].x, fx), fy), mix(mix(a[0].y, a[1].y, fx), mix(b[0].y, b[1].y, fx), fy)};
        const Mouth::Column m = mouth_.at(c, p.x);
        const float side = clamp01(p.y - (m.y_top + m.y_bottom) / 2 + .5f);
        float value = mix(from_upper[i], from_lower[i], side);
        // Vertical coverage of the pixel by the opening; chroma pixels are twice as high.
        const float half = .5f * float(scale) + .35f;
        const float cover = (std::min(p.y + half, m.y_bottom) - std::max(p.y - half, m.y_top)) / (2 * half);
        if (cover > 0) {
          const Colour colour = inside.at(p, m.y_top, m.y_bottom);
          value = mix(value, index == 0 ? colour.y : index == 1 ? colour.u : colour.v, std::min(1.f, cover));
        }
        if (index == 0 && mouth_.crease > 0) {
          const float d = (p.y - (m.y_top + m.y_bottom) / 2) / (.008f * model_.face_height + .4f);
          const float r = std::abs(p.x - c.centre) / c.half_width;
          value = 16 + (value - 16) * (1 - .30f * mouth_.crease * std::exp(-d * d) * smooth(1.05f, .85f, r));
        }
        line[i] = uint8_t(std::clamp(value + .5f, 0.f, 255.f));
      }
    }
  }
}

void Renderer::draw_eye(const Gaze& gaze, Box box, uint8_t* picture) {
  const int width = model_.asset.width;
  const size_t pixels = size_t(width) * size_t(model_.asset.height);
  for (int index = 0; index < 2; index++) {
    const int scale = index + 1;
    const float middle = index == 0 ? 0.f : .5f;
    for (int y = box.y0 / scale; y < box.y1 / scale; y++) {
      const float py = float(y * scale) + middle, gy = (py - float(model_.y0)) / NODE_STEP;
      const int j = std::min(int(gy), model_.rows - 2);
      const float fy = gy - float(j);
      for (int x = box.x0 / scale; x < box.x1 / scale; x++) {
        const float px = float(x * scale) + middle, gx = (px - float(model_.x0)) / NODE_STEP;
        const int i = std::min(int(gx), model_.columns - 2);
        const float fx = gx - float(i);
        const Shift* a = nodes_.data() + model_.node(i, j);
        const Shift* b = a + model_.columns;
        const float dx = mix(mix(a[0].x, a[1].x, fx), mix(b[0].x, b[1].x, fx), fy) / NODE_UNIT;
        const float dy = mix(mix(a[0].y, a[1].y, fx), mix(b[0].y, b[1].y, fx), fy) / NODE_UNIT;
        Colour colour;
        if (!gaze.at({px - dx, py - dy}, colour)) continue;
        const auto byte = [](float value) { return uint8_t(std::clamp(value + .5f, 0.f, 255.f)); };
        if (index == 0) {
          picture[size_t(y) * size_t(width) + size_t(x)] = byte(colour.y);
        } else {
          const size_t at = size_t(y) * size_t(width / 2) + size_t(x);
          picture[pixels + at] = byte(colour.u);
          picture[pixels + pixels / 4 + at] = byte(colour.v);
        }
      }
    }
  }
}

}  // namespace mouthpiece::face
