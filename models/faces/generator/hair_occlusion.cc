// Light through hair: a density grid, marched once towards the light and in a few other directions.
#include "hair.h"

// The grid spans head and shoulders.
static constexpr Vec3 kLow{-1.7f, -2.2f, -1.5f}, kHigh{1.7f, 1.7f, 1.5f};

HairOcclusion::HairOcclusion(const std::vector<Strand>& strands, Vec3 toLight)
    : light_(kSize * kSize * kSize, 1.f), ambient_(light_) {
  std::vector<float> density(light_.size(), 0.f), smooth(density);
  const Vec3 size = kHigh - kLow;
  const auto index = [&](Vec3 p, int& i) {
    const int x = int((p.x - kLow.x) / size.x * kSize), y = int((p.y - kLow.y) / size.y * kSize),
              z = int((p.z - kLow.z) / size.z * kSize);
    if (x < 0 || y < 0 || z < 0 || x >= kSize || y >= kSize || z >= kSize) {
      return false;
    }
    i = (z * kSize + y) * kSize + x;
    return true;
  };
  for (const Strand& s : strands) {
    if (s.onSkin) {
      continue;
    }
    for (size_t k = 0; k + 1 < s.points.size(); k++) {
      const float len = length(s.points[k + 1] - s.points[k]);
      int i;
      if (index(mix(s.points[k], s.points[k + 1], .5f), i)) {
        density[size_t(i)] += len * s.radius * 2;
      }
    }
  }
  // Projected area per volume, which is the optical depth per unit of length.
  const float cell = size.x / kSize * size.y / kSize * size.z / kSize;
  for (float& d : density) {
    d = std::min(60.f, d / cell);
  }
  // Smooth, so that shadows have no cells.
  for (const int stride : {1, kSize, kSize * kSize}) {
    for (size_t i = 0; i + size_t(stride) < density.size(); i++) {
      const float here = density[i];
      const float before = i < size_t(stride) ? 0.f : density[i - size_t(stride)];
      smooth[i] = .25f * before + .5f * here + .25f * density[i + size_t(stride)];
    }
    std::swap(density, smooth);
  }
  const float stepLength = .045f;
  const Vec3 around[6] = {toLight,          {0, 1, 0},   {.8f, .3f, .5f},
                          {-.8f, .3f, .5f}, {0, .2f, 1}, {0, -.5f, .8f}};
  for (int z = 0; z < kSize; z++) {
    for (int y = 0; y < kSize; y++) {
      for (int x = 0; x < kSize; x++) {
        const Vec3 p{kLow.x + (x + .5f) / kSize * size.x, kLow.y + (y + .5f) / kSize * size.y,
                     kLow.z + (z + .5f) / kSize * size.z};
        float sum = 0;
        for (int k = 0; k < 6; k++) {
          const Vec3 dir = normalize(around[k]);
          float depth = 0;
          for (int j = 1; j <= 18; j++) {
            int i;
            if (!index(p + dir * (stepLength * j), i)) {
              break;
            }
            depth += density[size_t(i)] * stepLength;
          }
          const float through = std::exp((k == 0 ? -.85f : -.75f) * depth);
          const size_t here = size_t((z * kSize + y) * kSize + x);
          if (k == 0) {
            light_[here] = through;
          } else {
            sum += through;
          }
          if (k == 5) {
            ambient_[here] = sum / 5;
          }
        }
      }
    }
  }
}

float HairOcclusion::sample(const std::vector<float>& grid, Vec3 p) const {
  const Vec3 size = kHigh - kLow;
  const float x = clampTo((p.x - kLow.x) / size.x * kSize - .5f, 0, kSize - 1.01f);
  const float y = clampTo((p.y - kLow.y) / size.y * kSize - .5f, 0, kSize - 1.01f);
  const float z = clampTo((p.z - kLow.z) / size.z * kSize - .5f, 0, kSize - 1.01f);
  const int i = int(x), j = int(y), k = int(z);
  const auto g = [&](int a, int b, int c) {
    return grid[size_t(((k + c) * kSize + j + b) * kSize + i + a)];
  };
  const float fx = x - float(i), fy = y - float(j), fz = z - float(k);
  const auto row = [&](int b, int c) { return mix(g(0, b, c), g(1, b, c), fx); };
  return mix(mix(row(0, 0), row(1, 0), fy), mix(row(0, 1), row(1, 1), fy), fz);
}
