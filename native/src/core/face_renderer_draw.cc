// The renderer's drawing: warped tiles, the light on them, the eyes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/face_renderer.h"

namespace mouthpiece::face {
namespace {

/** How far parts of a block may move beyond its middle, pixels. */
constexpr int NEAR = 12;
/** Four neighbouring numbers. */
I4 four(const int8_t* from) {
  using B4 = int8_t __attribute__((vector_size(4)));
  B4 bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, I4);
}
I4 four(const uint8_t* from) {
  using B4 = uint8_t __attribute__((vector_size(4)));
  B4 bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, I4);
}

/** Adds to four neighbouring bytes. @param change in units of 1/8, the strength's steps */
void add(I4 change, uint8_t* to) {
  using B4 = uint8_t __attribute__((vector_size(4)));
  B4 bytes;
  std::memcpy(&bytes, to, sizeof bytes);
  const I4 sum = __builtin_convertvector(bytes, I4) + ((change + 4) >> 3), zero{},
           most{255, 255, 255, 255}, above = sum < zero ? zero : sum;
  bytes = __builtin_convertvector(above > most ? most : above, B4);
  std::memcpy(to, &bytes, sizeof bytes);
}

}  // namespace

/** @returns whether the cell of the grid at (x, y) is drawn with both lips */
bool Renderer::is_seam(int x, int y) const {
  if (x < seam_box_.x0 || x >= seam_box_.x1 || y < seam_box_.y0 || y >= seam_box_.y1) {
    return false;
  }
  const uint8_t* node =
      seam_.data() + model_.node((x - model_.x0) / NODE_STEP, (y - model_.y0) / NODE_STEP);
  return (node[0] | node[1] | node[model_.columns] | node[model_.columns + 1]) != 0;
}

Nodes Renderer::nodes_at(const Shifts& nodes, int x, int y) const {
  const size_t k = size_t(model_.node((x - model_.x0) / NODE_STEP, (y - model_.y0) / NODE_STEP));
  return {nodes.x.data() + k, nodes.y.data() + k, model_.columns};
}

/**
 * Warps the neutral picture through `nodes` into `out`.
 * @param box luma pixels; a multiple of 16 wide and of 8 high
 */
void Renderer::draw_box(const Shifts& nodes, Box box, const Target& out) const {
  const Asset& a = model_.asset;
  const LumaPlane luma{{a.luma, a.width, a.width, a.height}, model_.sharp.data()};
  const Plane u{a.u, a.width / 2, a.width / 2, a.height / 2},
      v{a.v, a.width / 2, a.width / 2, a.height / 2};
  for (int y = box.y0; y < box.y1; y += NODE_STEP) {
    uint8_t* row = out.y + size_t(y - box.y0) * size_t(out.stride);
    for (int x = box.x0; x < box.x1; x += TILE_WIDTH) {
      warp_.luma(luma, nodes_at(nodes, x, y), x, y, row + x - box.x0, out.stride);
    }
  }
  for (int y = box.y0; y < box.y1; y += 2 * NODE_STEP) {
    const size_t row = size_t((y - box.y0) / 2) * size_t(out.stride / 2);
    for (int x = box.x0; x < box.x1; x += TILE_WIDTH) {
      const size_t at = row + size_t((x - box.x0) / 2);
      warp_.chroma(u, v, nodes_at(nodes, x, y), x / 2, y / 2, out.u + at, out.v + at,
                   out.stride / 2);
    }
  }
}

/**
 * Adds the relief to a box that was drawn with `nodes`.
 * @param at_seam whether to draw the cells near a lip's edge, or the others
 */
void Renderer::draw_relief(const Shifts& nodes, Box box, bool at_seam, const Target& out) const {
  for (size_t layer = 0; layer < Relief::LAYERS; layer++) {
    if (relief_[layer] != 0) {
      draw_layer(layer, nodes, box, at_seam, out);
    }
  }
}

/** Adds a layer of the relief: its planes are warped as the picture is. */
void Renderer::draw_layer(size_t layer, const Shifts& nodes, Box box, bool at_seam,
                          const Target& out) const {
  constexpr int HEIGHT = 2 * NODE_STEP, WIDTH = TILE_WIDTH;
  const Relief& relief = model_.relief;
  const Relief::Layer& changes = relief.layers[layer];
  const int width = relief.width, height = relief.height, strength = relief_[layer];
  const LumaPlane luma{{changes.y.data(), width, width, height}, changes.y.data()};
  const Plane u{changes.u.data(), width / 2, width / 2, height / 2},
      v{changes.v.data(), width / 2, width / 2, height / 2};
  std::array<uint8_t, WIDTH * HEIGHT> by_y;
  std::array<uint8_t, WIDTH * HEIGHT / 4> by_u, by_v;
  const auto add_two = [strength](const uint8_t* change, uint8_t* to) {
    for (int i = 0; i < 2; i++) {
      to[i] = uint8_t(std::clamp(to[i] + (((change[i] - 128) * strength + 4) >> 3), 0, 255));
    }
  };
  for (int y = box.y0; y < box.y1; y += HEIGHT) {
    for (int x = box.x0; x < box.x1; x += WIDTH) {
      const Nodes corner = nodes_at(nodes, x, y);
      const int left = x - relief.left, top = y - relief.top;
      if (!relief.near(changes, left - corner.x[0] / SUBPIXEL, top - corner.y[0] / SUBPIXEL, WIDTH,
                       HEIGHT)) {
        continue;
      }
      for (int row = 0; row < HEIGHT; row += NODE_STEP) {
        warp_.luma(luma, nodes_at(nodes, x, y + row), left, top + row, by_y.data() + row * WIDTH,
                   WIDTH);
      }
      warp_.chroma(u, v, corner, left / 2, top / 2, by_u.data(), by_v.data(), WIDTH / 2);
      for (int j = 0; j < HEIGHT; j += NODE_STEP) {
        for (int i = 0; i < WIDTH; i += NODE_STEP) {
          if (at_seam != is_seam(x + i, y + j)) {
            continue;
          }
          const Target to = out.at(x + i - box.x0, y + j - box.y0);
          for (int row = 0; row < NODE_STEP; row++) {
            add((four(by_y.data() + (j + row) * WIDTH + i) - 128) * strength,
                to.y + row * to.stride);
          }
          for (int row = 0; row < NODE_STEP / 2; row++) {
            const int from = (j / 2 + row) * (WIDTH / 2) + i / 2;
            add_two(by_u.data() + from, to.u + row * (to.stride / 2));
            add_two(by_v.data() + from, to.v + row * (to.stride / 2));
          }
        }
      }
    }
  }
}

/**
 * Adds the light on the skin to a box that was drawn with `nodes`. It is smooth, so each cell of
 * the grid moves as a whole.
 * @param at_seam whether to draw the cells near a lip's edge, or the others
 */
void Renderer::draw_skin(const Shifts& nodes, Box box, bool at_seam, const Target& out) const {
  const Relief& relief = model_.relief;
  std::array<size_t, Relief::KINDS> active{};
  size_t count = 0;
  unsigned bits = 0;
  for (size_t kind = 0; kind < Relief::KINDS; kind++) {
    if (skin_[kind] != 0) {
      active[count++] = kind;
      bits |= 1u << kind;
    }
  }
  constexpr int CELL = Relief::CELL;
  const int across = relief.width / CELL;
  // Most blocks have nothing of it: what lies round the block's middle tells.
  const Nodes inside = nodes_at(nodes, (box.x0 + box.x1) / 2 / NODE_STEP * NODE_STEP,
                                (box.y0 + box.y1) / 2 / NODE_STEP * NODE_STEP);
  const int x0 = box.x0 - relief.left - inside.x[0] / SUBPIXEL - NEAR,
            y0 = box.y0 - relief.top - inside.y[0] / SUBPIXEL - NEAR;
  const int first = std::max(x0, 0) / CELL, top_cell = std::max(y0, 0) / CELL,
            last = std::min(x0 + box.x1 - box.x0 + 2 * NEAR, relief.width - 1) / CELL,
            bottom_cell = std::min(y0 + box.y1 - box.y0 + 2 * NEAR, relief.height - 1) / CELL;
  unsigned around = 0;
  for (int j = top_cell; j <= bottom_cell; j++) {
    for (int i = first; i <= last; i++) {
      around |= relief.skin_cells[size_t(j * across + i)];
    }
  }
  if ((around & bits) == 0) {
    return;
  }
  for (int y = box.y0; y < box.y1; y += NODE_STEP) {
    for (int x = box.x0; x < box.x1; x += NODE_STEP) {
      const Nodes at = nodes_at(nodes, x, y);
      const auto middle = [&](const int16_t* d) {
        return (d[0] + d[1] + d[at.columns] + d[at.columns + 1]) / 4;
      };
      // In 1/SUBPIXEL pixel of the relief.
      const int fine_left = (x - relief.left) * SUBPIXEL - middle(at.x),
                fine_top = (y - relief.top) * SUBPIXEL - middle(at.y);
      const int left = fine_left / SUBPIXEL, top = fine_top / SUBPIXEL;
      if (fine_left < 0 || fine_top < 0 || left + NODE_STEP >= relief.width ||
          top + NODE_STEP >= relief.height) {
        continue;
      }
      const int i0 = left / CELL, i1 = (left + NODE_STEP) / CELL, j0 = top / CELL * across,
                j1 = (top + NODE_STEP) / CELL * across;
      const auto& cells = relief.skin_cells;
      const unsigned kinds = bits & unsigned(cells[size_t(j0 + i0)] | cells[size_t(j0 + i1)] |
                                             cells[size_t(j1 + i0)] | cells[size_t(j1 + i1)]);
      if (kinds == 0 || at_seam != is_seam(x, y)) {
        continue;
      }
      const Target to = out.at(x - box.x0, y - box.y0);
      for (int row = 0; row < NODE_STEP; row++) {
        const size_t from = size_t(top + row) * size_t(relief.width) + size_t(left);
        I4 sum{};
        for (size_t k = 0; k < count; k++) {
          const int8_t* change = relief.skin[active[k]].data() + from;
          if (!(kinds & 1u << active[k])) {
            continue;
          }
          sum += four(change) * skin_[active[k]];
        }
        add(sum, to.y + row * to.stride);
      }
    }
  }
}

Renderer::Target Renderer::target(uint8_t* picture, int x, int y) const {
  const size_t width = size_t(model_.asset.width), pixels = width * size_t(model_.asset.height),
               chroma = size_t(y / 2) * (width / 2) + size_t(x / 2);
  return {picture + size_t(y) * width + size_t(x), picture + pixels + chroma,
          picture + pixels + pixels / 4 + chroma, model_.asset.width};
}

/** @returns whether the relief may reach into the macroblock at (x, y): most are far from it */
bool Renderer::near_relief(int x, int y) const {
  constexpr int MARGIN = 16 + 2 * NEAR;
  const Relief& relief = model_.relief;
  const Nodes corner = nodes_at(nodes_, x, y);
  const int left = x - relief.left - corner.x[0] / SUBPIXEL,
            top = y - relief.top - corner.y[0] / SUBPIXEL;
  return left > -MARGIN && top > -MARGIN && left < relief.width + MARGIN - 16 &&
         top < relief.height + MARGIN - 16;
}

void Renderer::draw_blocks(std::span<const uint8_t> dirty, uint8_t* picture) const {
  const int across = model_.asset.width / 16;
  for (int y = model_.y0; y < model_.y1; y += 16) {
    const uint8_t* row = dirty.data() + y / 16 * across;
    for (int x = model_.x0; x < model_.x1; x += 16) {
      if (row[x / 16] == DRAWN) {
        const Target out = target(picture, x, y);
        draw_box(nodes_, {x, y, x + 16, y + 16}, out);
        if (near_relief(x, y)) {
          draw_relief(nodes_, {x, y, x + 16, y + 16}, false, out);
          draw_skin(nodes_, {x, y, x + 16, y + 16}, false, out);
        }
      }
    }
  }
}

/** Draws an eye over those blocks of its box that are drawn. */
void Renderer::draw_eye(const EyeOverlay& overlay, Box box, std::span<const uint8_t> dirty,
                        uint8_t* picture) const {
  const Model& m = model_;
  const int across = m.asset.width / 16;
  const Area area = moved(overlay.area());
  // To multiples of a power of two, of which the grid's sides are some, too.
  const auto inner = [](float value) { return int(std::floor(value)) & -8; };
  const int top = inner(area.y0), bottom = inner(area.y1 + 8);
  const Target out = target(picture, 0, 0);
  for (int y = box.y0; y < box.y1; y += 16) {
    const uint8_t* row = dirty.data() + y / 16 * across;
    for (int x = box.x0, next = 0; x < box.x1; x = next) {
      next = x + 16;
      if (row[x / 16] != DRAWN) {
        continue;
      }
      while (next < box.x1 && row[next / 16] == DRAWN) {
        next += 16;
      }
      draw_eye_(overlay.state(),
                {x, std::max(y, top), next, std::min(y + 16, bottom), out.y, out.u, out.v,
                 out.stride, nodes_.x.data(), nodes_.y.data(), m.x0, m.y0, m.columns});
    }
  }
}

}  // namespace mouthpiece::face
