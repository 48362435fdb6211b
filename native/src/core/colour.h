// Colour conversion between RGBA and I420, BT.601 limited range, as WebRTC receivers assume.
#pragma once
#include <cstdint>

namespace mouthpiece {

/** Tight rows; width and height even; `rgba` width * height * 4 bytes, `i420` i420_bytes(width,
 * height). Alpha is ignored. */
void rgba_to_i420(const uint8_t* rgba, int width, int height, uint8_t* i420);
/** The other way round; alpha becomes 255. */
void i420_to_rgba(const uint8_t* i420, int width, int height, uint8_t* rgba);

}  // namespace mouthpiece
