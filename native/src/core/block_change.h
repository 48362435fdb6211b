// How a macroblock of a picture differs from the one before: what the renderer tells the encoders.
#pragma once
#include <cstdint>

namespace mouthpiece {

/** Bytes of a dirty map. Other numbers than these count as DRAWN. */
enum BlockChange : uint8_t {
  UNCHANGED = 0,
  DRAWN = 1,
  /**
   * The block shows what the picture before has at its motion vector. Its pixels in the picture are
   * out of date until it is drawn again: when it moves next, or some frames later.
   */
  SHIFTED = 2,
};

}  // namespace mouthpiece
