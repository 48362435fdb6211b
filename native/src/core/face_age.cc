// The age of a face, from the lines of its skin and from grey hair.
#include "core/face_age.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/face_grey.h"
#include "core/face_model.h"

namespace mouthpiece::face {
namespace {

/** Vertices of the FaceMesh topology. */
constexpr std::array UPPER_CHEEKS{50, 280}, TEMPLES{162, 389};
constexpr std::array NOSE{195, 5};
constexpr int FOREHEAD = 10, LEFT_BROW = 105, RIGHT_BROW = 334, LEFT_EYE = 33, RIGHT_EYE = 263;

/**
 * Depth of the dark lines of old skin, percent of its luma: where age begins to be seen, and where
 * it is as strong as it can be. Of 54 photographs, most of people below 50, eight are above YOUNG
 * on forehead and cheeks both; the deepest is that of a man of 67 (3.8), the next has 2.2.
 */
constexpr float YOUNG = 1.5f, OLD = 3.8f;
/**
 * The back of the nose has no lines at any age: what is found there is noise, or sharpening, and so
 * many times of it are taken from the lines elsewhere. Of 236 small, noisy portraits of people who
 * are not old 26 were as old as can be without that. This share of its place must be skin.
 */
constexpr float NOISE = 1.2f, NOSE_SEEN = .3f;
/** Noise of the skin, luma, with which lines do not count where the nose cannot tell. */
constexpr std::array<float, 2> NOISY{2.6f, 2.1f};
/** What grey hair adds, and the share of the forehead that must be seen: else it may be a hat. */
constexpr float GREY_HAIR = .65f;
constexpr std::array<float, 2> FOREHEAD_SEEN{.2f, .4f};
/** Grey is less colourful than this, in units of the skin, and neither black nor a bright wall. */
constexpr std::array<float, 2> COLOURFUL{.55f, .35f}, LIGHT{.45f, .60f}, BRIGHT{1.4f, 1.25f},
    LUMA{55, 85};
/** Chroma by luma of the skin in a picture that has colours. */
constexpr float COLOUR_PICTURE = .08f;

/** Luma above black, and chroma about grey. */
struct Tone {
  float y, u, v;
};

Tone tone_at(const Asset& asset, int x, int y) {
  x = std::clamp(x, 0, asset.width - 1);
  y = std::clamp(y, 0, asset.height - 1);
  const int at = y / 2 * (asset.width / 2) + x / 2;
  return {float(asset.luma[y * asset.width + x]) - 16, float(asset.u[at]) - 128,
          float(asset.v[at]) - 128};
}

/** The median tone of a rectangle. */
Tone median_tone(const Asset& asset, Point middle, float half_width, float half_height) {
  std::array<std::vector<float>, 3> values;
  for (int y = int(middle.y - half_height); y <= int(middle.y + half_height); y++) {
    for (int x = int(middle.x - half_width); x <= int(middle.x + half_width); x++) {
      const Tone t = tone_at(asset, x, y);
      values[0].push_back(t.y);
      values[1].push_back(t.u);
      values[2].push_back(t.v);
    }
  }
  const auto median = [](std::vector<float>& v) {
    if (v.empty()) {
      return 0.f;
    }
    const auto at = v.begin() + std::ptrdiff_t(v.size() / 2);
    std::nth_element(v.begin(), at, v.end());
    return *at;
  };
  return {median(values[0]), median(values[1]), median(values[2])};
}

/** How colourful a tone is, in any light. */
float colour_of(Tone tone) {
  return std::hypot(tone.u, tone.v) / std::max(1.f, tone.y);
}

/** Whether a tone is that of the skin, in another light. */
bool is_skin(Tone tone, Tone skin) {
  const float light = tone.y / std::max(10.f, skin.y), share = std::min(1.f, light);
  return light > .5f && light < 1.6f &&
         std::hypot(tone.u - share * skin.u, tone.v - share * skin.v) < 12;
}

/** @returns 0 to 1 */
float grey_of(Tone hair, Tone skin) {
  const auto within = [](std::array<float, 2> bounds, float value) {
    return smoothstep(bounds[0], bounds[1], value);
  };
  if (colour_of(skin) < COLOUR_PICTURE) {
    return 0;
  }
  const float light = hair.y / std::max(1.f, skin.y);
  return within(COLOURFUL, colour_of(hair) / colour_of(skin)) * within(LIGHT, light) *
         within(BRIGHT, light) * within(LUMA, hair.y);
}

struct Lines {
  float depth;  // percent of the luma: a quarter of the skin is deeper in a dark line
  float skin;   // share of the region
};

/** Measures the fine dark lines of a region's skin: hair, hats and rims of glasses are left out. */
Lines lines_of(const Model& model, Tone skin, Point middle, float half_width, float half_height) {
  const Asset& asset = model.asset;
  const int radius = std::max(2, int(std::lround(.022f * model.face_height)));
  const int x0 = int(middle.x - half_width) - radius, x1 = int(middle.x + half_width) + radius,
            y0 = int(middle.y - half_height) - radius, y1 = int(middle.y + half_height) + radius;
  Grey luma{x1 - x0, y1 - y0, {}}, other{x1 - x0, y1 - y0, {}};
  float mean = 0;
  for (int y = y0; y < y1; y++) {
    for (int x = x0; x < x1; x++) {
      // The mean of nine pixels: noise is no wrinkle.
      float sum = 0;
      for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
          sum += tone_at(asset, x + dx, y + dy).y;
        }
      }
      luma.data.push_back(sum / 9);
      other.data.push_back(is_skin(tone_at(asset, x, y), skin) ? 0.f : 1.f);
      mean += sum / 9;
    }
  }
  mean /= float(luma.data.size());
  const Grey closed = closing(luma, radius), near = extreme(other, radius, true);
  std::vector<float> depth;
  for (int y = radius; y < luma.height - radius; y++) {
    for (int x = radius; x < luma.width - radius; x++) {
      const size_t i = size_t(y) * size_t(luma.width) + size_t(x);
      if (near.data[i] == 0) {
        depth.push_back(closed.data[i] - luma.data[i]);
      }
    }
  }
  const float all = float((luma.width - 2 * radius) * (luma.height - 2 * radius));
  if (depth.empty()) {
    return {0, 0};
  }
  const auto at = depth.begin() + std::ptrdiff_t(depth.size() * 3 / 4);
  std::nth_element(depth.begin(), at, depth.end());
  return {100 * *at / std::max(14.f, mean), float(depth.size()) / all};
}

}  // namespace

float age_of(const Model& model, float grain) {
  const Asset& asset = model.asset;
  const auto point = [&](int index) { return asset.landmark(index); };
  const Point left = point(LEFT_EYE), right = point(RIGHT_EYE), top = point(FOREHEAD),
              brows{(point(LEFT_BROW).x + point(RIGHT_BROW).x) / 2,
                    (point(LEFT_BROW).y + point(RIGHT_BROW).y) / 2},
              up{top.x - brows.x, top.y - brows.y}, across{right.x - left.x, right.y - left.y};
  const float eyes = std::hypot(across.x, across.y), height = std::hypot(up.x, up.y);
  Tone skin{0, 0, 0};
  for (const int index : UPPER_CHEEKS) {
    const Tone one = median_tone(asset, point(index), .05f * eyes, .05f * eyes);
    skin = {skin.y + one.y / 2, skin.u + one.u / 2, skin.v + one.v / 2};
  }
  // Lines on one of both are expressions, or texture.
  const Lines forehead = lines_of(model, skin, {brows.x + .5f * up.x, brows.y + .5f * up.y},
                                  .22f * eyes, .28f * height);
  float depth = forehead.depth;
  for (const int index : UPPER_CHEEKS) {
    depth = std::min(
        depth, lines_of(model, skin, point(index), .09f * eyes, .07f * model.face_height).depth);
  }
  float noise = depth;
  bool is_seen = false;
  for (const int index : NOSE) {
    const Lines nose = lines_of(model, skin, point(index), .05f * eyes, .06f * model.face_height);
    if (nose.skin > NOSE_SEEN) {
      noise = std::min(noise, nose.depth);
      is_seen = true;
    }
  }
  const float lines = is_seen
                          ? smoothstep(YOUNG, OLD, depth - NOISE * noise)
                          : smoothstep(YOUNG, OLD, depth) * smoothstep(NOISY[0], NOISY[1], grain);
  // Above the forehead and at a temple: one of both may be the wall.
  const auto grey_at = [&](Point at, float sideways, float upwards) {
    return grey_of(median_tone(asset,
                               {at.x + sideways * across.x + upwards * up.x,
                                at.y + sideways * across.y + upwards * up.y},
                               .04f * eyes, .05f * eyes),
                   skin);
  };
  const float above = std::max(grey_at(top, 0, .8f), grey_at(top, 0, 1.1f)),
              beside = std::max(grey_at(point(TEMPLES[0]), -.02f, .25f),
                                grey_at(point(TEMPLES[1]), .02f, .25f)),
              seen = smoothstep(FOREHEAD_SEEN[0], FOREHEAD_SEEN[1], forehead.skin);
  return clamp01(lines + GREY_HAIR * seen * std::min(above, beside));
}

}  // namespace mouthpiece::face
