// Heights of the tongue's surface, and the light on them. Chosen by eye on open vowels, where a
// smooth tongue looks like plastic. Lengths are half widths of the tongue.
#include "core/face_tongue.h"

#include <algorithm>
#include <cmath>

#include "core/face_model.h"

namespace mouthpiece::face {
namespace {

/** Heights: of the groove in the middle, of lumps, and of papillae of two sizes. */
constexpr float GROOVE = .045f, LUMPS = .03f, PAPILLAE = .007f, FINE_PAPILLAE = .003f;
/**
 * Slopes that face the lamps, in front above and a little to one side, are lighter; what lies low
 * is darker.
 */
constexpr float BY_SLOPE_ALONG = .55f, BY_SLOPE_ACROSS = .22f, BY_DEPTH = 1.6f;
/**
 * The surface shines where it faces half way between lamp and viewer: near the middle (slopes of
 * the dome across), before the ridge (along); how far from there it still does.
 */
constexpr float DOME = 1.1f, BEND = 2.2f, SHINING_ROW = .8f, SHINE_ACROSS = .5f, SHINE_ALONG = .55f;

/** @returns a random number from -1 to 1 of a point of a lattice */
float random_at(int x, int y, uint32_t seed) {
  uint32_t hash = uint32_t(x) * 374761393u + uint32_t(y) * 668265263u + seed * 2246822519u;
  hash = (hash ^ (hash >> 13)) * 1274126177u;
  return float((hash ^ (hash >> 16)) & 0xffff) / 32768.f - 1;
}

/** Value noise from -1 to 1, with a lattice of distance 1. */
float noise(float x, float y, uint32_t seed) {
  const float left = std::floor(x), top = std::floor(y), tx = smoothstep(0, 1, x - left),
              ty = smoothstep(0, 1, y - top);
  const int i = int(left), j = int(top);
  return mix(mix(random_at(i, j, seed), random_at(i + 1, j, seed), tx),
             mix(random_at(i, j + 1, seed), random_at(i + 1, j + 1, seed), tx), ty);
}

/** Height of the surface above a smooth dome. @param x from -1 to 1 @param row as in the map */
float height(float x, float row) {
  const float middle = .05f * std::sin(2.1f * row + .6f) + .02f * noise(3 * row, 7, 5),
              from = (x - middle) / (.10f + .05f * clamp01(1 - row)),
              groove = -GROOVE * std::exp(-from * from) * smoothstep(1.35f, .5f, row);
  return groove + LUMPS * noise(3.5f * x + 11, 4 * row, 1) + PAPILLAE * noise(15 * x, 17 * row, 2) +
         FINE_PAPILLAE * noise(30 * x, 34 * row, 3);
}

TongueRelief make() {
  TongueRelief relief;
  constexpr float STEP = .012f;
  uint8_t* out = relief.pixels.data();
  for (int j = 0; j < TongueRelief::HEIGHT; j++) {
    for (int i = 0; i < TongueRelief::WIDTH; i++, out += TongueRelief::CHANNELS) {
      const float x = 2 * float(i) / (TongueRelief::WIDTH - 1) - 1,
                  row = TongueRelief::LAST * float(j) / (TongueRelief::HEIGHT - 1);
      const float across = (height(x + STEP, row) - height(x - STEP, row)) / (2 * STEP),
                  along = (height(x, row + STEP) - height(x, row - STEP)) / (2 * STEP);
      const float light = 1 - along * BY_SLOPE_ALONG - across * BY_SLOPE_ACROSS +
                          BY_DEPTH * std::min(0.f, height(x, row));
      const float aside = (DOME * x - across) / SHINE_ACROSS,
                  ahead = (BEND * (row - SHINING_ROW) - along) / SHINE_ALONG;
      out[TongueRelief::LIGHT] = to_byte(128 * light);
      out[TongueRelief::SHINE] = to_byte(255 * std::exp(-aside * aside - ahead * ahead));
    }
  }
  return relief;
}

}  // namespace

const TongueRelief& tongue_relief() {
  static const TongueRelief relief = make();
  return relief;
}

}  // namespace mouthpiece::face
