// The renderer's displacement grid: the pose of head and brows, and the mouth. Amounts without
// another source were chosen by eye on the default faces.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/face_renderer.h"
#include "core/face_simd.h"

namespace mouthpiece::face {
namespace {

constexpr float BREATH_LIFT = 1.6f;  // pixels at 512x512
// Shares of the face's height.
constexpr float BROW_LIFT = .036f, FROWN = .024f, CHEEK_LIFT = .022f;
// Shares of that of the cheeks: spread lips raise them, round ones and the jaw lower them.
constexpr float BY_SPREAD = 3, BY_ROUND = 1.5f, BY_JAW = 2.5f;

// Nothing above the picture can move into it: this far from its upper edge, pixels at 512x512,
// nodes begin to move down and up by less. A head cut off by the edge still moves sideways as a
// whole.
constexpr float EDGE = 32;
// Largest displacement of a node by the head's pose, pixels at 512x512.
constexpr float HEAD_MARGIN = 32;
constexpr float SEAM_MARGIN = 7;  // distance of a node from a lip's edge that may cross its cell

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

/** Size of the picture in that of 512x512: heads fill its shorter side. */
float picture_scale(const Asset& asset) {
  return float(std::min(asset.width, asset.height)) / 512;
}

}  // namespace

/** The pose of the head, and what the features do in it. For small angles it is linear. */
void Renderer::displace_head() {
  const Model& m = model_;
  const float scale = picture_scale(m.asset);
  const float sx = pose_.shift_x * scale, sy = pose_.shift_y * scale,
              rise = -pose_.breath * BREATH_LIFT * scale;
  const float roll = pose_.roll, yaw = pose_.yaw, pitch = pose_.pitch;
  for (int j = 0; j < m.rows; j++) {
    const auto [begin, end] = m.moving[size_t(j)];
    const size_t first = size_t(m.node(begin, j));
    const float y = float(m.y0 + j * NODE_STEP) - m.pivot.y,
                free = clamp01(float(m.y0 + j * NODE_STEP) / (EDGE * scale)),
                left = float(m.x0 + begin * NODE_STEP) - m.pivot.x;
    const float* weight = m.weight.data() + first;
    const float* breath = m.breath.data() + first;
    const float* depth = m.depth.data() + first;
    float* __restrict head_x = head_.x.data() + first;
    float* __restrict head_y = head_.y.data() + first;
    // In vectors, which compilers do not make of it themselves. The last ones may overlap.
    const auto place = [&]<class F>(int i, F steps) {
      const auto at = [i](const float* values) {
        F out;
        std::memcpy(&out, values + i, sizeof out);
        return out;
      };
      const F w = at(weight), d = at(depth), x = w * (sx - roll * y) + yaw * d,
              across = left + (float(i * NODE_STEP) + steps),
              yy = free * (w * (sy + roll * across) + pitch * d + rise * at(breath));
      std::memcpy(head_x + i, &x, sizeof x);
      std::memcpy(head_y + i, &yy, sizeof yy);
    };
    const int count = end - begin;
    if (count < LANES) {
      for (int i = 0; i < count; i++) {
        place(i, 0.f);
      }
    } else {
      constexpr F4 STEPS{0, NODE_STEP, 2 * NODE_STEP, 3 * NODE_STEP};
      for (int i = 0; i < count; i += LANES) {
        place(std::min(i, count - LANES), STEPS);
      }
    }
  }
  displace_features();
  for (int j = 0; j < m.rows; j++) {
    const auto [begin, end] = m.moving[size_t(j)];
    const size_t first = size_t(m.node(begin, j));
    to_subpixels(head_.x.data() + first, end - begin, head_nodes_.x.data() + first);
    to_subpixels(head_.y.data() + first, end - begin, head_nodes_.y.data() + first);
  }
}

/** Adds what brows and cheeks do. They go with the head: so their fields do. */
void Renderer::displace_features() {
  const Model& m = model_;
  const Articulation& lips = mouth_.now;
  const float brows = m.asset.limits.brow * m.face_height,
              // Raised brows flash less: skin and lashes below them would be stretched too far.
      flash = pose_.brow * (1 - clamp01(mood_.brow)),
              lift = -(flash + mood_.brow) * BROW_LIFT * brows, frown = mood_.frown * FROWN * brows,
              cheeks = -std::max(0.f, mood_.smile) * CHEEK_LIFT * brows,
              spoken = -(BY_SPREAD * lips.wide - BY_ROUND * lips.round - BY_JAW * lips.jaw) *
                       CHEEK_LIFT * brows;
  const Model::Features& f = m.features;
  if (lift == 0 && frown == 0 && cheeks == 0 && spoken == 0) {
    return;
  }
  for (int j = f.top; j < f.bottom; j++) {
    const auto k = size_t(m.node(f.left, j));
    const float *brow = m.brow.data() + k, *inner = m.brow_inner.data() + k,
                *room = m.brow_room.data() + k, *cheek = m.cheek.data() + k,
                *low = m.cheek_low.data() + k;
    float* __restrict raise = raise_.data() + k;
    for (int i = 0; i < f.right - f.left; i++) {
      raise[i] = std::min(lift * brow[i] + frown * inner[i], room[i]) + cheeks * cheek[i] +
                 spoken * low[i];
    }
  }
  // A node shows what is a displacement away from it: that is where the field is read.
  const float scale = picture_scale(m.asset), down_x = -m.frame.sin, down_y = m.frame.cos;
  const int margin = int(std::ceil(HEAD_MARGIN * scale / NODE_STEP));
  for (int j = std::max(0, f.top - margin); j < std::min(m.rows, f.bottom + margin); j++) {
    const auto [begin, end] = m.moving[size_t(j)];
    const float free = clamp01(float(m.y0 + j * NODE_STEP) / (EDGE * scale));
    for (int i = std::max(begin, f.left - margin); i < std::min(end, f.right + margin); i++) {
      const auto k = size_t(m.node(i, j));
      const float x = float(i) - head_.x[k] / NODE_STEP, y = float(j) - head_.y[k] / NODE_STEP;
      if (x < float(f.left) || y < float(f.top) || x >= float(f.right - 1) ||
          y >= float(f.bottom - 1)) {
        continue;
      }
      const int ix = int(x), iy = int(y);
      const float fx = x - float(ix), fy = y - float(iy);
      const float *upper = raise_.data() + m.node(ix, iy), *lower = upper + m.columns;
      const float raise =
          m.weight[k] * mix(mix(upper[0], upper[1], fx), mix(lower[0], lower[1], fx), fy);
      head_.x[k] += raise * down_x;
      head_.y[k] += free * raise * down_y;
    }
  }
}

/** Adds the mouth's displacement to the nodes of the lower face. */
void Renderer::displace_mouth() {
  const Model& m = model_;
  const Contours& c = m.contours;
  // The lower face's bounding box in the picture, with a margin for the head's movement.
  float left = 1e9f, right = -1e9f, top = 1e9f, bottom = -1e9f;
  const float high = c.nose - .10f * m.face_height,
              low = c.chin[size_t(c.count / 2)] + .5f * m.face_height +
                    std::max(mouth_.jaw_drop, mouth_.chin_drop);
  for (const float x : {c.left, c.left + float(c.count)}) {
    for (const float y : {high, low}) {
      const Point p = m.frame.to_picture(x, y);
      left = std::min(left, p.x);
      right = std::max(right, p.x);
      top = std::min(top, p.y);
      bottom = std::max(bottom, p.y);
    }
  }
  const float margin = HEAD_MARGIN * picture_scale(m.asset);
  const Box box = grid_box(left - margin, top - margin, right + margin, bottom + margin);
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

}  // namespace mouthpiece::face
