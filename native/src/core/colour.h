// Colour conversion between RGBA and I420: BT.601, limited range, as WebRTC receivers assume.
#pragma once
#include <cstdint>

namespace mouthpiece {

/**
 * @param rgba width * height * 4 bytes, rows without padding; alpha is ignored
 * @param width, height even
 * @param i420 i420_bytes(width, height) bytes
 */
void rgba_to_i420(const uint8_t* rgba, int width, int height, uint8_t* i420);
/** The reverse conversion. Alpha is 255. */
void i420_to_rgba(const uint8_t* i420, int width, int height, uint8_t* rgba);

}  // namespace mouthpiece
