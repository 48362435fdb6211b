// The renderer's displacement grid: the pose of head and brows, the mouth, and which movements are
// too small to draw. Amounts without another source were chosen by eye on the default faces.
#include <algorithm>
#include <cmath>

#include "core/face_renderer.h"

namespace mouthpiece::face {
namespace {

constexpr float BREATH_LIFT = 1.6f;                // pixels at 512x512
constexpr float BROW_LIFT = .034f, FROWN = .020f;  // shares of the face's height

constexpr float HEAD_MARGIN = 32;  // largest displacement of a node by the head's pose, pixels
constexpr float SEAM_MARGIN = 7;   // distance of a node from a lip's edge that may cross its cell

/**
 * A new pose of the head is drawn when some point would move by this many pixels at 512x512: about
 * the smallest jump that is visible at arm's length. The head's sway takes about five frames for
 * it. A frame without head movement costs the encoder a fraction of one with it (native/README.md).
 */
constexpr float HEAD_STEP = .25f;
/**
 * A node keeps its displacement while the new one differs by at most this much: a tenth of a pixel,
 * in 1/SUBPIXEL. Movements of cheeks and borders are often smaller, and invisible.
 */
constexpr int16_t NODE_LAG = 6;

/**
 * Rounds to nearest, ties away from 0. A loop without calls, so that the compiler vectorises it.
 */
void to_subpixels(const float* pixels, int count, int16_t* __restrict out) {
  for (int i = 0; i < count; i++) {
    const float bounded =
        std::min(std::max(pixels[i], -float(MAX_SHIFT)), float(MAX_SHIFT)) * SUBPIXEL;
    out[i] = int16_t(int(bounded + (bounded < 0 ? -.5f : .5f)));
  }
}
int16_t to_subpixels(float pixels) {
  int16_t out;
  to_subpixels(&pixels, 1, &out);
  return out;
}

/**
 * Restores the previous displacement of each node that moved by at most NODE_LAG, unless the new
 * one is zero. In 16 bits (MAX_SHIFT) and without branches, so that the compiler vectorises it.
 */
void hold_small_motion(int16_t* __restrict x, int16_t* __restrict y,
                       const int16_t* __restrict was_x, const int16_t* __restrict was_y,
                       int count) {
  for (int k = 0; k < count; k++) {
    const int16_t dx = int16_t(x[k] - was_x[k]), dy = int16_t(y[k] - was_y[k]);
    const int16_t far_x = std::max(dx, int16_t(-dx)), far_y = std::max(dy, int16_t(-dy));
    const int16_t stays =
        int16_t(std::max(far_x, far_y) <= NODE_LAG ? -1 : 0) & int16_t((x[k] | y[k]) != 0 ? -1 : 0);
    x[k] = int16_t(x[k] - (dx & stays));
    y[k] = int16_t(y[k] - (dy & stays));
  }
}

}  // namespace

/** The pose of head and brows. For small angles it is linear in its parameters. */
void Renderer::displace_head() {
  const Model& m = model_;
  const float scale = float(m.asset.height) / 512;
  const float sx = pose_.shift_x * scale, sy = (pose_.shift_y - pose_.breath * BREATH_LIFT) * scale;
  const float brows = m.asset.limits.brow * m.face_height,
              lift = -(pose_.brow + mood_.brow) * BROW_LIFT * brows,
              frown = mood_.frown * FROWN * brows;
  const float down_x = -m.frame.sin, down_y = m.frame.cos, roll = pose_.roll, yaw = pose_.yaw,
              pitch = pose_.pitch;
  for (int j = 0; j < m.rows; j++) {
    const size_t first = size_t(m.node(0, j));
    const float y = float(m.y0 + j * NODE_STEP) - m.pivot.y, left = float(m.x0) - m.pivot.x;
    const float* weight = m.weight.data() + first;
    const float* depth = m.depth.data() + first;
    const float* brow = m.brow.data() + first;
    const float* inner = m.brow_inner.data() + first;
    float* __restrict head_x = head_.x.data() + first;
    float* __restrict head_y = head_.y.data() + first;
    for (int i = 0; i < m.columns; i++) {
      const float raise = lift * brow[i] + frown * inner[i];
      head_x[i] = weight[i] * (sx - roll * y) + yaw * depth[i] + raise * down_x;
      head_y[i] = weight[i] * (sy + roll * (left + float(i * NODE_STEP))) + pitch * depth[i] +
                  raise * down_y;
    }
    to_subpixels(head_x, m.columns, head_nodes_.x.data() + first);
    to_subpixels(head_y, m.columns, head_nodes_.y.data() + first);
  }
}

/** Adds the mouth's displacement to the nodes of the lower face. */
void Renderer::displace_mouth() {
  const Model& m = model_;
  const Contours& c = m.contours;
  // The lower face's bounding box in the picture, with a margin for the head's movement.
  float left = 1e9f, right = -1e9f, top = 1e9f, bottom = -1e9f;
  const float high = c.nose - .10f * m.face_height,
              low = c.chin[size_t(c.count / 2)] + .5f * m.face_height + mouth_.jaw_drop;
  for (const float x : {c.left, c.left + float(c.count)}) {
    for (const float y : {high, low}) {
      const Point p = m.frame.to_picture(x, y);
      left = std::min(left, p.x);
      right = std::max(right, p.x);
      top = std::min(top, p.y);
      bottom = std::max(bottom, p.y);
    }
  }
  const Box box =
      grid_box(left - HEAD_MARGIN, top - HEAD_MARGIN, right + HEAD_MARGIN, bottom + HEAD_MARGIN);
  for (int j = (box.y0 - m.y0) / NODE_STEP; j <= (box.y1 - m.y0) / NODE_STEP; j++) {
    for (int i = (box.x0 - m.x0) / NODE_STEP; i <= (box.x1 - m.x0) / NODE_STEP; i++) {
      const size_t k = size_t(m.node(i, j));
      const float hx = head_.x[k], hy = head_.y[k], w = m.weight[k];
      const Point p =
          m.frame.to_local(float(m.x0 + i * NODE_STEP) - hx, float(m.y0 + j * NODE_STEP) - hy);
      local_.x[k] = p.x;
      local_.y[k] = p.y;
      if (w == 0 || p.y < high || p.y > low || p.x < c.left || p.x > c.left + float(c.count)) {
        upper_.x[k] = lower_.x[k] = nodes_.x[k];
        upper_.y[k] = lower_.y[k] = nodes_.y[k];
        seam_[k] = 0;
        continue;
      }
      const Sides sides = displace(m, mouth_, p, SEAM_MARGIN);
      const auto picture = [&](Point d, int16_t& x, int16_t& y) {
        x = to_subpixels(hx + w * (m.frame.cos * d.x - m.frame.sin * d.y));
        y = to_subpixels(hy + w * (m.frame.sin * d.x + m.frame.cos * d.y));
      };
      seam_[k] = sides.near_seam && std::abs(p.x - c.centre) < MOUTH_REACH * c.half_width;
      if (!seam_[k]) {
        picture(sides.below ? sides.lower : sides.upper, nodes_.x[k], nodes_.y[k]);
        upper_.x[k] = lower_.x[k] = nodes_.x[k];
        upper_.y[k] = lower_.y[k] = nodes_.y[k];
        continue;
      }
      picture(sides.upper, upper_.x[k], upper_.y[k]);
      picture(sides.lower, lower_.x[k], lower_.y[k]);
      nodes_.x[k] = sides.below ? lower_.x[k] : upper_.x[k];
      nodes_.y[k] = sides.below ? lower_.y[k] : upper_.y[k];
    }
  }
}

/**
 * Keeps the drawn pose of the head while the new one moves no point visibly, and likewise the
 * brows'.
 */
void Renderer::hold_small_head_motion() {
  const Model& m = model_;
  const Pose& was = last_pose_;
  const float scale = float(m.asset.height) / 512, most = HEAD_STEP * scale;
  const float sx = (pose_.shift_x - was.shift_x) * scale,
              sy =
                  (pose_.shift_y - was.shift_y - (pose_.breath - was.breath) * BREATH_LIFT) * scale;
  const float roll = pose_.roll - was.roll, yaw = pose_.yaw - was.yaw,
              pitch = pose_.pitch - was.pitch;
  // The pose is linear, so a sparse grid of points finds the largest movement.
  constexpr int PROBE = 32 / NODE_STEP;
  float farthest = 0;
  for (int j = 0; j < m.rows; j += PROBE) {
    for (int i = 0; i < m.columns; i += PROBE) {
      const size_t k = size_t(m.node(i, j));
      const float w = m.weight[k], x = float(m.x0 + i * NODE_STEP) - m.pivot.x,
                  y = float(m.y0 + j * NODE_STEP) - m.pivot.y;
      const float dx = w * (sx - roll * y) + yaw * m.depth[k],
                  dy = w * (sy + roll * x) + pitch * m.depth[k];
      farthest = std::max(farthest, dx * dx + dy * dy);
    }
  }
  if (farthest < most * most) {
    pose_.yaw = was.yaw;
    pose_.pitch = was.pitch;
    pose_.roll = was.roll;
    pose_.shift_x = was.shift_x;
    pose_.shift_y = was.shift_y;
    pose_.breath = was.breath;
  }
  if (std::abs(pose_.brow - was.brow) * BROW_LIFT * m.asset.limits.brow * m.face_height < most) {
    pose_.brow = was.brow;
  }
}

/**
 * Leaves out small movements of nodes. Nodes at rest are exact, so that rest is the neutral
 * picture.
 */
void Renderer::hold_small_node_motion() {
  hold_small_motion(nodes_.x.data(), nodes_.y.data(), last_nodes_.x.data(), last_nodes_.y.data(),
                    int(model_.weight.size()));
}

}  // namespace mouthpiece::face
