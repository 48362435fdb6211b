// The relief of the tongue, seen from the front: how it changes the light, and where it shines.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace mouthpiece::face {

/**
 * A map of the tongue. Columns go from side to side, rows from its back (0) by its ridge (1) to
 * LAST in front of it, in units of the way from the back to the ridge.
 */
struct TongueRelief {
  static constexpr int WIDTH = 64, HEIGHT = 64;
  static constexpr float LAST = 1.8f;
  enum Channel : size_t { LIGHT, SHINE, CHANNELS = 4 };
  /**
   * LIGHT: share of the light that a smooth tongue reflects there, 128 is all of it. SHINE:
   * reflection of a lamp in the wet surface, 255 is a mirror's. Two channels are not used: the
   * renderer samples four at once.
   */
  std::array<uint8_t, CHANNELS * WIDTH * HEIGHT> pixels{};
};

/** @returns the same map for all faces, made at the first call */
const TongueRelief& tongue_relief();

}  // namespace mouthpiece::face
