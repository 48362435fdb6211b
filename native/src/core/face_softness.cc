// How soft the portrait is: what is drawn into it has edges of the same blur. Bounds were chosen on
// 70 photographs of 128 to 1024 pixels.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/face_model.h"

namespace mouthpiece::face {
namespace {

/** Blur of a portrait with all its fine detail, and of one without, pixels. */
constexpr float DETAILED = .3f, SMOOTH = 1.1f;
/** By how much a portrait's edges may be crisper than it is soft, pixels. */
constexpr float CRISPER = .15f;
/** How much pixels at a distance of two differ in these, in units of adjacent ones. */
constexpr std::array<float, 2> DIFFER{1.6f, 1.95f};
/** Least contrast of an edge, luma, and half the length over which it is looked at, pixels. */
constexpr int EDGE = 36, HALF_EDGE = 6;
/** Edges with more blur than this, pixels, are looked at over more pixels: they are longer. */
constexpr float LONG_BLUR = 2.2f;
constexpr int HALF_LONG_EDGE = 14;
/** This share of the edges is blurrier than the one that counts. */
constexpr float BLURRIER = .7f;
/**
 * Edges of this blur show that a small picture was enlarged, pixels; how much softer what is drawn
 * into it is for each pixel beyond, and at most.
 */
constexpr float ENLARGED = 1.2f, SOFTER = 1.3f, SOFTEST = 7;
/**
 * Softness with which edges are drawn at most, pixels. More is a blur of what was drawn, full up to
 * FULL pixels and in part from there: judges preferred it up to a softness of 1.6 pixels, and found
 * mouths with all of it smeared from 1.8.
 */
constexpr float DRAWN = .8f, FULL = 1.2f, PART = .5f;
/**
 * Blurred portraits have up to this share of their pixels at edges (.14 was the most of nine);
 * where there are more it is a soft pattern, which makes nothing softer than this.
 */
constexpr float PATTERN = .25f, SOFT_PATTERN = 1.3f;

/** The lower face, pixels of the picture. */
struct Part {
  int left, top, right, bottom;
};

struct Edges {
  float blur;   // standard deviation, pixels; 0 where there are no edges
  float share;  // of the part's pixels
};

/** @param half half the length over which an edge is looked at, pixels */
Edges edges_of(const Asset& asset, Part part, int half) {
  // Edges by their steepest step, share of the whole.
  std::array<int, 101> steps{};
  int edges = 0, pixels = 1;
  for (int y = part.top; y < part.bottom; y++) {
    const uint8_t* row = asset.luma + size_t(y) * size_t(asset.width);
    for (int x = std::max(part.left, half); x < std::min(part.right, asset.width - half); x++) {
      pixels++;
      const int whole = std::abs(row[x + half] - row[x - half]);
      if (whole < EDGE) {
        continue;
      }
      int step = 0;
      for (int k = -half; k < half; k++) {
        step = std::max(step, std::abs(row[x + k + 1] - row[x + k]));
      }
      steps[size_t(std::min(100, 100 * step / whole))]++;
      edges++;
    }
  }
  int blurrier = 0;
  size_t steepest = 0;
  while (steepest < 100 && float(blurrier) <= BLURRIER * float(edges)) {
    blurrier += steps[steepest++];
  }
  // The steepest slope of an edge that a normal distribution has blurred is .4 of its deviation.
  return {edges == 0 ? 0 : 40 / float(std::max<size_t>(1, steepest)), float(edges) / float(pixels)};
}

}  // namespace

void measure_softness(Model& model) {
  const Asset& asset = model.asset;
  const Point mouth = model.frame.to_picture(0, 0);
  const int reach = int(.6f * model.face_height);
  const Part part{std::max(0, int(mouth.x) - reach), std::max(0, int(mouth.y) - reach),
                  std::min(asset.width - 2, int(mouth.x) + reach),
                  std::min(asset.height, int(mouth.y) + reach)};
  double near = 1, far = 1;
  for (int y = part.top; y < part.bottom; y++) {
    const uint8_t* row = asset.luma + size_t(y) * size_t(asset.width);
    for (int x = part.left; x < part.right; x++) {
      near += std::abs(row[x + 1] - row[x]);
      far += std::abs(row[x + 2] - row[x]);
    }
  }
  const Edges edges = edges_of(asset, part, HALF_EDGE);
  const float blur = edges.blur < LONG_BLUR
                         ? edges.blur
                         : std::max(edges.blur, edges_of(asset, part, HALF_LONG_EDGE).blur);
  // Areas of one tone with crisp edges, as drawings have, are not smooth.
  const float smooth =
      edges.share > 0 ? std::clamp(edges.blur + CRISPER, DETAILED, SMOOTH) : SMOOTH;
  const float softness =
      mix(DETAILED, smooth, smoothstep(DIFFER[0], DIFFER[1], float(far / near))) +
      std::clamp(SOFTER * (blur - ENLARGED), 0.f, edges.share > PATTERN ? SOFT_PATTERN : SOFTEST);
  model.softness = std::min(softness, DRAWN);
  const float rest = std::sqrt(softness * softness - model.softness * model.softness);
  model.blur = std::min(rest, mix(FULL, rest, PART));
}

}  // namespace mouthpiece::face
