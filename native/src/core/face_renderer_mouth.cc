// The renderer's drawing of the mouth: both sides of the seam between the lips, and what is in it.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/face_renderer.h"

namespace mouthpiece::face {
namespace {

/** Rows of the mouth drawn at a time: the height of a chroma tile, luma pixels. */
constexpr int MOUTH_ROWS = 2 * NODE_STEP;
/** A property of lips that are not rounded, and of rounded ones. */
using ByRounding = std::array<float, 2>;
/**
 * Lips turn inwards round an opening, rounded ones more: the share of light that the margins of the
 * upper and the lower one lose, and how wide they are; from which height of an opening on; face
 * heights.
 */
constexpr ByRounding UPPER_SHADE{.16f, .40f}, LOWER_SHADE{.12f, .34f}, UPPER_MARGIN{.020f, .030f},
    LOWER_MARGIN{.024f, .034f};
constexpr float SHADED_OPENING = .03f;
/**
 * Share of its light that the line between rounded lips loses beside their opening: they touch
 * there; openings as high as this have none; face heights.
 */
constexpr float TOUCHING_SHADE = .30f, TOUCHING = .02f;
/** Share of its light that the line between pressed lips loses. */
constexpr float PRESSED_SHADE = .22f;

}  // namespace

/**
 * Draws the cells near a lip's edge: each pixel is on the upper or lower side of the seam, or shows
 * the mouth's interior.
 */
void Renderer::draw_mouth(Box box, uint8_t* picture) {
  if (model_.blur > 0) {
    for (size_t plane = 0; plane < added_.size(); plane++) {
      const int step = plane == 0 ? 1 : 2, width = (box.x1 - box.x0) / step,
                height = (box.y1 - box.y0) / step;
      added_[plane].width = width;
      added_[plane].height = height;
      added_[plane].data.assign(size_t(width) * size_t(height), 0.f);
    }
  }
  for (int y = box.y0; y < box.y1; y += MOUTH_ROWS) {
    int left = box.x1, right = box.x0;
    for (int row = y; row <= y + MOUTH_ROWS; row += NODE_STEP) {
      const uint8_t* seam = seam_.data() + model_.node(0, (row - model_.y0) / NODE_STEP);
      for (int x = box.x0; x <= box.x1; x += NODE_STEP) {
        if (!seam[(x - model_.x0) / NODE_STEP]) {
          continue;
        }
        left = std::min(left, x - NODE_STEP);
        right = std::max(right, x + NODE_STEP);
      }
    }
    left = std::max(box.x0, left & ~15);
    right = std::min(box.x1, (right + 15) & ~15);
    if (left < right) {
      draw_seam({left, y, right, y + MOUTH_ROWS}, picture);
    }
  }
  if (model_.blur > 0) {
    add_blurred(box, picture);
  }
}

/** Adds what the mouth adds to the lips, as blurred as the portrait is. */
void Renderer::add_blurred(Box box, uint8_t* picture) {
  const Target out = target(picture, box.x0, box.y0);
  for (size_t i = 0; i < added_.size(); i++) {
    Grey& added = added_[i];
    const int step = i == 0 ? 1 : 2;
    uint8_t* first = i == 0 ? out.y : i == 1 ? out.u : out.v;
    blur(added, model_.blur / float(step));
    for (int y = 0; y < added.height; y++) {
      uint8_t* to = first + y * (out.stride / step);
      for (int x = 0; x < added.width; x++) {
        to[x] = uint8_t(std::clamp(float(to[x]) + added.at(x, y) + .5f, 0.f, 255.f));
      }
    }
  }
}

void Renderer::draw_seam(Box box, uint8_t* picture) {
  const int width = box.x1 - box.x0;
  const auto scratch = [&](std::vector<uint8_t>& bytes) {
    uint8_t* y = bytes.data();
    return Target{y, y + width * MOUTH_ROWS, y + width * MOUTH_ROWS * 5 / 4, width};
  };
  const Target upper = scratch(by_upper_), lower = scratch(by_lower_),
               out = target(picture, box.x0, box.y0);
  draw_box(upper_, box, upper);
  draw_box(lower_, box, lower);
  draw_relief(upper_, box, true, upper);
  draw_relief(lower_, box, true, lower);
  draw_skin(upper_, box, true, upper);
  draw_skin(lower_, box, true, lower);
  for (int y = 0; y < MOUTH_ROWS; y += NODE_STEP) {
    for (int x = 0; x < width; x += NODE_STEP) {
      if (is_seam(box.x0 + x, box.y0 + y)) {
        draw_cell(box.x0 + x, box.y0 + y, upper.at(x, y), lower.at(x, y), out.at(x, y));
      }
    }
  }
}

/**
 * Draws one cell of the grid: NODE_STEP luma pixels in each direction. One row of luma is four
 * lanes, and so is all of the cell's chroma.
 */
void Renderer::draw_cell(int left, int top, const Target& upper, const Target& lower,
                         const Target& out) {
  static_assert(NODE_STEP == LANES);
  const size_t k =
      size_t(model_.node((left - model_.x0) / NODE_STEP, (top - model_.y0) / NODE_STEP));
  const bool is_blurred = model_.blur > 0;
  // `second` is how far the second two lanes are from the first two.
  const auto put = [](F4 value, uint8_t* to, int second) {
    const I4 bytes = to_int(min(max(value + .5f, splat(0)), splat(255)));
    for (int lane = 0; lane < 2; lane++) {
      to[lane] = uint8_t(bytes[lane]);
      to[lane + second] = uint8_t(bytes[lane + 2]);
    }
  };
  // What is blurred later, of the pixel at (x, y) of a plane.
  const auto keep = [&](size_t plane, F4 added, int x, int y, int second) {
    float* to = &added_[plane].at(x, y);
    for (int lane = 0; lane < 2; lane++) {
      to[lane] = added[lane];
      to[lane + second] = added[lane + 2];
    }
  };
  const auto take = [](const uint8_t* first, const uint8_t* second) {
    return to_float(I4{first[0], first[1], second[0], second[1]});
  };

  for (int y = 0; y < NODE_STEP; y++) {
    const Seam seam = seam_at(k, F4{0, 1, 2, 3}, splat(float(y)), .5f + model_.softness);
    const uint8_t* above = upper.y + y * upper.stride;
    const uint8_t* below = lower.y + y * lower.stride;
    const F4 lips = mix(take(above, above + 2), take(below, below + 2), seam.side);
    F4 value = 16 + (lips - 16) * (1 - seam.shade);
    if (any(seam.cover > 0)) {
      value =
          mix(value, interior_.colours_at<Channels::luma>(seam.x, seam.y, seam.top, seam.bottom).y,
              seam.cover);
    }
    put(is_blurred ? lips : value, out.y + y * out.stride, 2);
    if (is_blurred) {
      keep(0, value - lips, left - seam_box_.x0, top - seam_box_.y0 + y, 2);
    }
  }

  // A chroma sample lies between its four luma pixels and is twice as high.
  const Seam seam =
      seam_at(k, F4{.5f, 2.5f, .5f, 2.5f}, F4{.5f, .5f, 2.5f, 2.5f}, 1 + model_.softness);
  const int from = upper.stride / 2, to = out.stride / 2;
  const F4 lips_u = mix(take(upper.u, upper.u + from), take(lower.u, lower.u + from), seam.side),
           lips_v = mix(take(upper.v, upper.v + from), take(lower.v, lower.v + from), seam.side);
  F4 u = lips_u, v = lips_v;
  if (any(seam.cover > 0)) {
    const auto colours =
        interior_.colours_at<Channels::chroma>(seam.x, seam.y, seam.top, seam.bottom);
    u = mix(u, colours.u, seam.cover);
    v = mix(v, colours.v, seam.cover);
  }
  put(is_blurred ? lips_u : u, out.u, to);
  put(is_blurred ? lips_v : v, out.v, to);
  if (is_blurred) {
    const int x = (left - seam_box_.x0) / 2, y = (top - seam_box_.y0) / 2;
    keep(1, u - lips_u, x, y, added_[1].width);
    keep(2, v - lips_v, x, y, added_[2].width);
  }
}

/**
 * @param x, y four positions in the cell of node k, pixels
 * @param half half the height of a pixel plus the blur of edges
 */
Renderer::Seam Renderer::seam_at(size_t k, F4 x, F4 y, float half) const {
  const F4 fx = x / NODE_STEP, fy = y / NODE_STEP;
  const auto place = [&](const std::vector<float>& values) {
    const float* a = values.data() + k;
    const float* b = a + model_.columns;
    return mix(mix(splat(a[0]), splat(a[1]), fx), mix(splat(b[0]), splat(b[1]), fx), fy);
  };
  Seam seam;
  seam.x = place(local_.x);
  seam.y = place(local_.y);
  seam.shade = splat(0);
  const Mouth::Edges edges = mouth_.edges(model_.contours, seam.x);
  const F4 middle = (edges.top + edges.bottom) / 2;
  seam.top = edges.top;
  seam.bottom = edges.bottom;
  seam.side = clamp01((seam.y - middle) / (1 + 2.5f * model_.blur) + .5f);
  seam.cover = edges.cover(seam.y, half);
  const float fh = model_.face_height;
  if (mouth_.aperture > 0 && !model_.grade.line_art) {
    const auto now = [this](const ByRounding& of) { return mix(of[0], of[1], mouth_.touching); };
    const F4 above = clamp01(1 - max(edges.top - seam.y, splat(0)) / (now(UPPER_MARGIN) * fh)),
             below = clamp01(1 - max(seam.y - edges.bottom, splat(0)) / (now(LOWER_MARGIN) * fh)),
             open = clamp01((edges.bottom - edges.top) / (SHADED_OPENING * fh));
    seam.shade =
        open * mix(now(UPPER_SHADE) * above * above, now(LOWER_SHADE) * below * below, seam.side);
  }
  if (mouth_.touching == 0 && mouth_.crease == 0) {
    return seam;
  }
  // A line along the middle. (1 - d^2 / 4.5)^4 approximates exp(-d^2).
  const F4 d = (seam.y - middle) / (.008f * fh + .4f), bell = clamp01(1 - d * d * (1 / 4.5f)),
           line = bell * bell * bell * bell, away = abs(seam.x - model_.contours.centre);
  if (mouth_.touching > 0) {
    const F4 closed = clamp01(1 - (edges.bottom - edges.top) / (TOUCHING * fh));
    seam.shade += TOUCHING_SHADE * mouth_.touching * closed * line *
                  smoothstep(splat(.92f), splat(.55f), away / mouth_.corner);
  }
  if (mouth_.crease > 0) {
    seam.shade += PRESSED_SHADE * mouth_.crease * line *
                  smoothstep(splat(.95f), splat(.6f), away / model_.contours.half_width);
  }
  return seam;
}

}  // namespace mouthpiece::face
