// The lens: how sharp what is nearer or farther than the eyes is, and its glow.
#include "camera.h"

namespace {

/** Diameter of the aperture, decimetres: 85 mm at about f/4.7. */
constexpr float kAperture = .18f;
/** Pixels, in rays. */
constexpr float kSharp = .40f, kWidest = 3.2f;
constexpr int kTile = 16;
/** The backdrop is drawn out of focus, and farther than anything. */
constexpr float kFar = 1e8f;

}  // namespace

void focus(const Head& head, const View& view, int samples, Picture& out) {
  const int n = out.size, tiles = (n + kTile - 1) / kTile;
  const float at = length(head.eyes()[0].centre - kCamera) - head.eyes()[0].radius,
              scale = 4.f * float(n) * view.zoom / at;
  const float widest = kWidest * .5f * float(samples);
  std::vector<float> blur(out.depth.size()), most(size_t(tiles) * size_t(tiles), 0.f);
  for (int y = 0; y < n; y++) {
    for (int x = 0; x < n; x++) {
      const size_t i = size_t(y) * size_t(n) + size_t(x);
      const bool isFar = out.depth[i] > kFar;
      blur[i] = isFar ? widest
                      : clampTo(.30f * kAperture * scale * std::fabs(1 - at / out.depth[i]), kSharp,
                                widest);
      float& tile = most[size_t(y / kTile) * size_t(tiles) + size_t(x / kTile)];
      tile = std::max(tile, isFar ? 0.f : blur[i]);
    }
  }
  const std::vector<Vec3> sharp = out.colour;
  for (int y = 0; y < n; y++) {
    for (int x = 0; x < n; x++) {
      float reachOf = 0;
      for (int j = std::max(0, y / kTile - 1); j <= std::min(tiles - 1, y / kTile + 1); j++) {
        for (int k = std::max(0, x / kTile - 1); k <= std::min(tiles - 1, x / kTile + 1); k++) {
          reachOf = std::max(reachOf, most[size_t(j) * size_t(tiles) + size_t(k)]);
        }
      }
      const int reach = int(2.2f * reachOf);
      const size_t here = size_t(y) * size_t(n) + size_t(x);
      Vec3 sum{0, 0, 0};
      float weight = 0;
      for (int j = std::max(0, y - reach); j <= std::min(n - 1, y + reach); j++) {
        for (int k = std::max(0, x - reach); k <= std::min(n - 1, x + reach); k++) {
          const size_t other = size_t(j) * size_t(n) + size_t(k);
          // What is nearer spreads by its own blur, what is farther by no more than this point's.
          const float own =
              out.depth[other] < out.depth[here] ? blur[other] : std::min(blur[other], blur[here]);
          const float far = float((j - y) * (j - y) + (k - x) * (k - x)) / (own * own);
          if (far > 5) {
            continue;
          }
          const float w = std::exp(-.5f * far) / (own * own);
          sum = sum + sharp[other] * w;
          weight += w;
        }
      }
      if (weight > 0) {
        out.colour[here] = sum * (1 / weight);
      }
    }
  }
}

void glow(Picture& out) {
  // A small part of the light is spread over a fortieth of the picture.
  constexpr int kSmall = 128, kReach = 7;
  constexpr float kSigma = 2.6f, kShare = .035f;
  const int n = out.size;
  std::vector<Vec3> small(size_t(kSmall) * kSmall, Vec3{0, 0, 0}), rows(small);
  std::vector<float> count(small.size(), 0.f);
  for (int y = 0; y < n; y++) {
    for (int x = 0; x < n; x++) {
      const size_t i = size_t(y * kSmall / n) * kSmall + size_t(x * kSmall / n);
      small[i] = small[i] + out.colour[size_t(y) * size_t(n) + size_t(x)];
      count[i]++;
    }
  }
  for (size_t i = 0; i < small.size(); i++) {
    small[i] = small[i] * (1 / std::max(1.f, count[i]));
  }
  for (int pass = 0; pass < 2; pass++) {
    const std::vector<Vec3>& from = pass == 0 ? small : rows;
    std::vector<Vec3> to(small.size());
    for (int y = 0; y < kSmall; y++) {
      for (int x = 0; x < kSmall; x++) {
        Vec3 sum{0, 0, 0};
        float weight = 0;
        for (int k = -kReach; k <= kReach; k++) {
          const int i = std::clamp(pass == 0 ? x + k : x, 0, kSmall - 1),
                    j = std::clamp(pass == 0 ? y : y + k, 0, kSmall - 1);
          const float w = std::exp(-.5f * sq(float(k) / kSigma));
          sum = sum + from[size_t(j) * kSmall + size_t(i)] * w;
          weight += w;
        }
        to[size_t(y) * kSmall + size_t(x)] = sum * (1 / weight);
      }
    }
    rows = std::move(to);
  }
  for (int y = 0; y < n; y++) {
    for (int x = 0; x < n; x++) {
      const float u = clampTo((float(x) + .5f) * kSmall / float(n) - .5f, 0, kSmall - 1.01f),
                  v = clampTo((float(y) + .5f) * kSmall / float(n) - .5f, 0, kSmall - 1.01f);
      const auto i = size_t(u), j = size_t(v);
      const float fu = u - float(i), fv = v - float(j);
      const Vec3* row = rows.data() + j * kSmall + i;
      const Vec3 spread = mix(mix(row[0], row[1], fu), mix(row[kSmall], row[kSmall + 1], fu), fv);
      Vec3& colour = out.colour[size_t(y) * size_t(n) + size_t(x)];
      colour = mix(colour, spread, kShare);
    }
  }
}
