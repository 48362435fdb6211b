// The renderer's model of a face, built once from an asset: coordinates and contours of the mouth,
// the weights of the displacement grid, eyelids, and layers of the teeth.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/face_asset.h"
#include "core/face_dentition.h"
#include "core/face_grade.h"
#include "core/face_relief.h"
#include "core/face_warp.h"
#include "core/monotone_curve.h"

namespace mouthpiece::face {

/** Clamps to 0..1; not a number gives 0. */
inline float clamp01(float x) {
  return x > 0 ? (x < 1 ? x : 1.f) : 0.f;
}
/** The nearest byte. */
inline uint8_t to_byte(float value) {
  return uint8_t(std::clamp(value + .5f, 0.f, 255.f));
}
inline float mix(float a, float b, float t) {
  return a + (b - a) * t;
}
inline float distance(Point a, Point b) {
  return std::hypot(a.x - b.x, a.y - b.y);
}
/** GLSL's smoothstep: a cubic from 0 at `from` to 1 at `to`, which may be less than `from`. */
inline float smoothstep(float from, float to, float x) {
  const float t = clamp01((x - from) / (to - from));
  return t * t * (3 - 2 * t);
}

/** The mouth's coordinates: origin in its centre, x along the line of the eyes, y down; pixels. */
struct LocalFrame {
  float x = 0, y = 0, cos = 1, sin = 0;
  Point to_local(float px, float py) const {
    return {cos * (px - x) + sin * (py - y), -sin * (px - x) + cos * (py - y)};
  }
  Point to_picture(float u, float v) const {
    return {x + cos * u - sin * v, y + sin * u + cos * v};
  }
};

/**
 * Contours of the lower face in the mouth's coordinates, one sample per pixel of x from `left` on.
 * Columns beyond the mouth continue its corners. The lip seam is the line between the closed lips.
 */
struct Contours {
  float left = 0;
  int count = 0;
  std::vector<float> upper_outer, seam, lower_outer, chin;
  std::vector<float> level;                // a parabola fitted to the seam
  float nose = 0;                          // y of the nose's base, where the upper lip begins
  float centre = 0;                        // x of the seam's middle
  float half_width = 1;                    // half the seam's length
  float middle = 0;                        // x of the lips' middle: not centre on a turned head
  float narrowing = .25f;                  // share of it that lips lose when they round
  float by_eyes = .6f;                     // the seam's length, in distances between the eyes
  std::array<float, 2> outline{2, 2};      // from the centre to the face's outline, half widths
  std::array<float, 2> room{1, 1};         // from the seam's ends to the outline, half widths
  float teeth_half_width = 1;              // half the width of what an open mouth shows
  float upper_thick = 4, lower_thick = 5;  // thickness of the lips in the middle
  float moustache = 0;  // how far hair covers the skin above the upper lip, 0 to 1
  float smile = 0;      // y of the seam's middle minus that of its ends: positive for a smile
};

/** A small image in the mouth's coordinates, Y U V A interleaved. Outside it is transparent. */
struct Layer {
  int width = 0, height = 0;
  float left = 0, top = 0;  // position of the first pixel
  std::vector<uint8_t> yuva;
};

/** Y, U and V as numbers from 0 to 255. */
struct Colour {
  float y, u, v;
};

/** A rectangle in pixels, with its borders. */
struct Area {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

/** The iris of an eye. The layers are in picture coordinates. */
struct Iris {
  Point centre{};    // along the eye's axis and below it, pixels from its corner
  float radius = 0;  // pixels; 0: not found
  float below = 0;   // how far below the landmarks it meets the lower lid, pixels
  Layer disc;        // the iris with a rim of the white, whole, as if no lid covered it
  Layer white;       // the eyeball where the portrait shows the iris
};

/** One eye of the portrait. */
struct Eye {
  Point corner{}, axis{1, 0};    // corner on the left of the picture; unit vector to the other one
  float length = 1, height = 1;  // of the opening, pixels
  static constexpr int SAMPLES = 33;
  std::array<float, SAMPLES> upper{}, lower{};  // lid margins along the axis: distance below it
  /** The upper and the lower margin at each sample, then at the next. */
  std::array<std::array<float, 4>, SAMPLES> margins{};
  Area opening;   // pixels of the neutral picture that gaze may change
  Area lid_area;  // pixels of the neutral picture that lids may change
  Colour lash{34, 128, 128};
  Layer lid;  // the closed lid, in picture coordinates
  Iris iris;
};

struct Model {
  Asset asset;
  std::vector<uint8_t> sharp;  // the neutral luma, sharpened (see LumaPlane)
  LocalFrame frame;
  float face_height = 1;  // bridge of the nose to the chin, pixels: the unit of most lengths
  Contours contours;
  // The portrait's blur, pixels: of edges as they are drawn, and what they are then blurred by.
  float softness = .35f, blur = 0;
  Grade grade;
  Dentition dentition;
  Layer teeth_upper, teeth_lower;
  float teeth = 1;  // opacity of painted teeth: 0 for a baby
  float cheer = 0;  // how much cheeks and eyes still smile, 0 to 1: the face speaks with a smile
  Relief relief;
  std::array<Eye, 2> eyes;  // left and right in the picture

  // The macroblocks that may change, and the grid over them: node (i, j) is at pixel
  // (x0 + NODE_STEP i, y0 + NODE_STEP j).
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0, columns = 0, rows = 0;
  // How far each node follows the head, 0 to 1; 0 next to any pixel that must not change.
  std::vector<float> weight;
  // How far each node rises with the breath, 0 to 1: the head fully, the shoulders less.
  std::vector<float> breath;
  std::vector<float> depth;       // of each node towards the viewer, pixels, times weight
  std::vector<float> brow;        // how far each node follows raised brows, 0 to 1
  std::vector<float> brow_inner;  // how far it follows frowning brows; positive is down
  std::vector<float> brow_room;   // how far brows may lower it, pixels
  std::vector<float> cheek;       // how far it follows the cheeks of a smile, 0 to 1
  std::vector<float> cheek_low;   // how far it follows those of speech, which leave the lids
  /** The nodes that brows and cheeks may move while the head is neutral, to one after the last. */
  struct Features {
    int left = 0, top = 0, right = 0, bottom = 0;
  } features;
  Point pivot{};  // centre of the head's roll
  // How far each node may move before what is round it is drawn again, 1/SUBPIXEL pixel. Smooth
  // parts of the picture may wait longer than edges. Eight may be read from each node.
  std::vector<int16_t> node_lag;
  // The same of each macroblock of the grid, in rows.
  std::vector<int16_t> lag;
  /** Of each row of nodes, those that the head's pose may move: the first, and one after the last.
   */
  std::vector<std::pair<int, int>> moving;

  /** A landmark, in the mouth's coordinates. */
  Point local(int index) const {
    const Point p = asset.landmark(index);
    return frame.to_local(p.x, p.y);
  }
  /** A curve through landmarks from left to right, in the mouth's coordinates. */
  MonotoneCurve curve(std::span<const int> indices) const;

  int node(int i, int j) const { return j * columns + i; }
  /** Calls `body` with the number of each node and its place in the mouth's coordinates. */
  template <class Body>
  void each_node(Body body) const {
    for (int j = 0; j < rows; j++) {
      for (int i = 0; i < columns; i++) {
        body(size_t(node(i, j)),
             frame.to_local(float(x0 + i * NODE_STEP), float(y0 + j * NODE_STEP)));
      }
    }
  }
  /** @returns the node nearest to a position in the picture */
  size_t nearest(float x, float y) const {
    const auto index = [](float at, int count) {
      // Positive and far below 2^23, so that adding one half rounds correctly.
      // NOLINTNEXTLINE(bugprone-incorrect-roundings)
      return at > 0 ? std::min(int(at / NODE_STEP + .5f), count - 1) : 0;
    };
    return size_t(node(index(x - float(x0), columns), index(y - float(y0), rows)));
  }
};

/** @throws std::runtime_error when the landmarks do not make a face or the matte is empty */
Model build_model(const Asset& asset);

/**
 * Fits a x^2 + b x + c to the seam by least squares, x in half widths of the mouth. Towards the
 * mouth's ends the result returns to the seam.
 */
void level_seam(Contours& contours);
/** Sets the softness and the blur. Needs the frame and the face's height. */
void measure_softness(Model& model);
/** Sets the layers of the teeth. Needs the contours, the softness and the grade. */
void build_teeth(Model& model);
/** Sets the eyes: lid margins, areas, the closed lids' textures and the lashes' colour. */
void build_eyes(Model& model);

}  // namespace mouthpiece::face
