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
/** How much pixels at a distance of two differ in these, in units of adjacent ones. */
constexpr std::array<float, 2> DIFFER{1.6f, 1.95f};
/** Half the length over which an edge is looked at, pixels, and its least contrast, luma. */
constexpr int HALF_EDGE = 6, EDGE = 36;
/** This share of the edges is blurrier than the one that counts. */
constexpr float BLURRIER = .7f;
/**
 * Edges of this blur show that a small picture was enlarged, pixels; how much softer what is drawn
 * into it is for each pixel beyond, and at most.
 */
constexpr float ENLARGED = 1.2f, SOFTER = 1.3f, SOFTEST = 2.7f;
/**
 * Blurred portraits have up to this share of their pixels at edges (.14 was the most of nine);
 * where there are more it is a soft pattern, which makes nothing softer than this.
 */
constexpr float PATTERN = .25f, SOFT_PATTERN = 1.3f;

}  // namespace

float softness_of(const Model& model) {
  const Asset& asset = model.asset;
  const Point mouth = model.frame.to_picture(0, 0);
  const int reach = int(.6f * model.face_height), left = std::max(HALF_EDGE, int(mouth.x) - reach),
            right = std::min(asset.width - HALF_EDGE, int(mouth.x) + reach);
  double near = 1, far = 1;
  // Edges by their steepest step, share of the whole.
  std::array<int, 101> steps{};
  int edges = 0, pixels = 0;
  for (int y = std::max(0, int(mouth.y) - reach); y < std::min(asset.height, int(mouth.y) + reach);
       y++) {
    const uint8_t* row = asset.luma + size_t(y) * size_t(asset.width);
    for (int x = left; x < right; x++) {
      pixels++;
      near += std::abs(row[x + 1] - row[x]);
      far += std::abs(row[x + 2] - row[x]);
      const int whole = std::abs(row[x + HALF_EDGE] - row[x - HALF_EDGE]);
      if (whole < EDGE) {
        continue;
      }
      int step = 0;
      for (int k = -HALF_EDGE; k < HALF_EDGE; k++) {
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
  const float blur = edges == 0 ? 0 : 40 / float(std::max<size_t>(1, steepest));
  return mix(DETAILED, SMOOTH, smoothstep(DIFFER[0], DIFFER[1], float(far / near))) +
         std::clamp(SOFTER * (blur - ENLARGED), 0.f,
                    float(edges) > PATTERN * float(pixels) ? SOFT_PATTERN : SOFTEST);
}

}  // namespace mouthpiece::face
