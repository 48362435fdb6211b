// What a camera makes of the light: its tone curve, local contrast, sharpening and grain. Amounts
// were chosen by eye, beside photographs.
#include "camera.h"

namespace {

/** The contrast, the grey that it keeps, and the haze of the lens, which keeps eyes from black. */
constexpr float kContrast = 1.10f, kGrey = .42f, kHaze = .003f;
/** Sharpening: its radius in pixels of a picture of 1024, and its amount. */
constexpr float kSharpRadius = 1.4f, kSharp = .05f;
/** The same of the contrast of what is larger. */
constexpr float kLocalRadius = 14, kLocal = .16f;
/** How much of the contrast is by colour, which makes colours stronger; the rest is by brightness.
 */
constexpr float kByColour = .9f;
constexpr float kGrain = .0065f, kColourGrain = .0025f;

/** A curve with a shoulder, then sRGB. @returns 0 to 1 */
float curve(float x) {
  // J. Hable's form by K. Narkowicz, softened: blacks are not crushed.
  x = std::max(0.f, x * .80f);
  x = x * (2.1f * x + .16f) / (x * (2.0f * x + .62f) + .16f);
  x = clamp01(x);
  return x <= .0031308f ? 12.92f * x : 1.055f * std::pow(x, 1 / 2.4f) - .055f;
}

/** Contrast about a grey that stays. @param x 0 to 1 */
float contrast(float x) {
  x = clamp01((x + kHaze) / (1 + kHaze));
  return x < kGrey ? kGrey * std::pow(x / kGrey, kContrast)
                   : 1 - (1 - kGrey) * std::pow((1 - x) / (1 - kGrey), kContrast);
}

float brightness(Vec3 c) {
  return dot(c, {.2126f, .7152f, .0722f});
}

/** Spreads values by a Gaussian, along rows and columns. @param sigma pixels */
std::vector<float> spread(const std::vector<float>& values, int size, float sigma) {
  const int reach = int(std::ceil(2.6f * sigma));
  std::vector<float> weights;
  float total = 0;
  for (int k = -reach; k <= reach; k++) {
    weights.push_back(std::exp(-.5f * sq(float(k) / sigma)));
    total += weights.back();
  }
  std::vector<float> from = values, to(values.size());
  for (int pass = 0; pass < 2; pass++) {
    for (int y = 0; y < size; y++) {
      for (int x = 0; x < size; x++) {
        float sum = 0;
        for (int k = -reach; k <= reach; k++) {
          const int i = std::clamp(pass == 0 ? x + k : x, 0, size - 1),
                    j = std::clamp(pass == 0 ? y : y + k, 0, size - 1);
          sum += from[size_t(j) * size_t(size) + size_t(i)] * weights[size_t(k + reach)];
        }
        to[size_t(y) * size_t(size) + size_t(x)] = sum / total;
      }
    }
    std::swap(from, to);
  }
  return from;
}

}  // namespace

std::vector<unsigned char> develop(const Picture& picture, int samples, uint32_t seed) {
  const int size = picture.size / samples;
  const size_t count = size_t(size) * size_t(size);
  std::vector<Vec3> seen(count);
  std::vector<float> light(count);
  for (int y = 0; y < size; y++) {
    for (int x = 0; x < size; x++) {
      Vec3 sum{0, 0, 0};
      for (int j = 0; j < samples; j++) {
        for (int i = 0; i < samples; i++) {
          const Vec3& c =
              picture
                  .colour[size_t(y * samples + j) * size_t(picture.size) + size_t(x * samples + i)];
          sum = sum + Vec3{curve(c.x), curve(c.y), curve(c.z)};
        }
      }
      const size_t at = size_t(y) * size_t(size) + size_t(x);
      seen[at] = sum * (1.f / float(samples * samples));
      light[at] = brightness(seen[at]);
    }
  }
  const float pixel = float(size) / 1024;
  const std::vector<float> near = spread(light, size, kSharpRadius * pixel),
                           around = spread(light, size, kLocalRadius * pixel);
  std::vector<unsigned char> bytes(count * 3);
  Random random(seed + 4000);
  for (size_t at = 0; at < count; at++) {
    const float crisp = kSharp * (light[at] - near[at]) + kLocal * (light[at] - around[at]);
    const Vec3 c = seen[at] + Vec3{crisp, crisp, crisp};
    const Vec3 byColour{contrast(c.x), contrast(c.y), contrast(c.z)},
        byBrightness = c * (contrast(brightness(c)) / std::max(.01f, brightness(c)));
    const Vec3 out = mix(byBrightness, byColour, kByColour);
    const float grain = kGrain * random.normal(), channels[3] = {out.x, out.y, out.z};
    for (size_t k = 0; k < 3; k++) {
      const float value = channels[k] + grain + kColourGrain * random.normal();
      bytes[at * 3 + k] = static_cast<unsigned char>(clampTo(value * 255 + .5f, 0, 255));
    }
  }
  return bytes;
}
