// What is derived once from an asset: the mouth's frame and contours, the weights of the
// displacement grid, lids, and the mouth's inner layers.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/face_asset.h"
#include "core/face_warp.h"

namespace mouthpiece::face {

/** 0 for what is not a number. */
inline float clamp01(float x) {
  return x > 0 ? (x < 1 ? x : 1.f) : 0.f;
}
inline float mix(float a, float b, float t) {
  return a + (b - a) * t;
}
/** Cubic step from 0 at `from` to 1 at `to` (either order). */
inline float smoothstep(float from, float to, float x) {
  const float t = clamp01((x - from) / (to - from));
  return t * t * (3 - 2 * t);
}

/** The mouth's frame: origin at its centre, x along the eye line, y down; pixels. */
struct LocalFrame {
  float x = 0, y = 0, cos = 1, sin = 0;
  Point to_local(float px, float py) const {
    return {cos * (px - x) + sin * (py - y), -sin * (px - x) + cos * (py - y)};
  }
  Point to_picture(float u, float v) const {
    return {x + cos * u - sin * v, y + sin * u + cos * v};
  }
};

/** Contours of the lower face in the mouth's frame, one sample per pixel of local x from `left` on.
 * Columns beyond the mouth continue its corners. */
struct Contours {
  float left = 0;
  int count = 0;
  std::vector<float> upper_outer, seam, lower_outer, chin;
  std::vector<float> level;                // the seam without its waves: a parabola through it
  float nose = 0;                          // base of the nose: the upper lip's skin begins here
  float centre = 0;                        // local x of the seam's middle
  float half_width = 1;                    // half the seam's length
  float upper_thick = 4, lower_thick = 5;  // of the lips in their middle
  float smile = 0;  // how much lower the seam's middle lies than its ends: > 0 for a smile
};

/** A small image in the mouth's frame, Y U V A interleaved. Sampled bilinearly; transparent
 * outside. */
struct Layer {
  int width = 0, height = 0;
  float left = 0, top = 0;  // local place of the first pixel
  std::vector<uint8_t> yuva;
};

struct Colour {
  float y, u, v;
};

/** A rectangle in pixels, ends included. */
struct Area {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

struct Eye {
  Point corner{}, axis{1, 0};    // viewer's left corner; unit vector towards the other one
  float length = 1, height = 1;  // of the opening
  static constexpr int SAMPLES = 33;
  std::array<float, SAMPLES> upper{}, lower{};  // lid curves along the axis: distance below it
  Area opening, lid_area;  // pixels of the neutral picture that gaze, or lids, may change
  Colour lash{34, 128, 128};
  Layer lid;  // the closed lid, in picture coordinates
};

struct Model {
  Asset asset;
  std::vector<uint8_t> sharp;  // the neutral luma sharpened (LumaPlane)
  LocalFrame frame;
  float face_height = 1;  // bridge of the nose to the chin: the unit of most lengths
  Contours contours;
  float softness = .35f;  // pixels by which edges that are drawn fade, to match the photo's own
  Layer teeth_upper, teeth_lower;
  std::array<Eye, 2> eyes;  // as the viewer sees them

  // Macroblocks that may ever change, and the grid over them: node (i, j) lies at pixel (x0 + 4 i,
  // y0 + 4 j).
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0, columns = 0, rows = 0;
  std::vector<float>
      weight;  // how far a node follows the head, 0..1; 0 wherever a pixel near it must not change
  std::vector<float> depth;             // towards the viewer, pixels, times weight
  std::vector<float> brow, brow_inner;  // how far raised brows lift a node; the same for frowning
                                        // inner ends, down positive
  Point pivot{};                        // of roll

  int node(int i, int j) const { return j * columns + i; }
  /** The node nearest to a place of the picture. */
  size_t nearest(float x, float y) const {
    const auto index = [](float at, int count) {
      return at > 0 ? std::min(int(at / NODE_STEP + .5f), count - 1) : 0;
    };
    return size_t(node(index(x - float(x0), columns), index(y - float(y0), rows)));
  }
};

/** @throws std::runtime_error when the landmarks do not make a face. */
Model build_model(const Asset& asset);

/** Layers for the inside of the mouth: the asset's patches turned into the mouth's frame, or
 * painted ones. */
void build_teeth(Model& model);
void build_eyes(Model& model);

/** Piecewise cubic through points with rising x that does not overshoot (Fritsch and Carlson 1980),
 * constant outside. */
class MonotoneCurve {
 public:
  explicit MonotoneCurve(std::vector<Point> points);
  float operator()(float x) const;

 private:
  std::vector<Point> points_;
  std::vector<float> slopes_;
};

}  // namespace mouthpiece::face
