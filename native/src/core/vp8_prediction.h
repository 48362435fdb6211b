// Predictions of VP8's macroblocks from the previous frame, and how far they are from the picture.
// The portable and the AVX2 version give the same bits.
#pragma once
#include <cstdint>

namespace mouthpiece::vp8 {

/** A macroblock: 16x16 luma, then 8x8 of U and of V, each without gaps. */
constexpr int LUMA_BYTES = 256, CHROMA_BYTES = 64, BLOCK_BYTES = 384;

/** One implementation. Positions are in eighths of a pixel: a pixel and fractions of 0 to 7. */
struct Predictor {
  /**
   * Copies 16x16 pixels of luma as decoders interpolate them (RFC 6386, 18.3). Reads two pixels
   * before and six after the square.
   */
  void (*luma)(const uint8_t* from, int stride, int x, int y, uint8_t* out);
  /** The same for 8x8 pixels of U and of V. */
  void (*chroma)(const uint8_t* u, const uint8_t* v, int stride, int x, int y, uint8_t* out);
  /** @returns sum of the squared differences of `side` rows of `side` pixels (16 or 8) */
  uint32_t (*squared_error)(const uint8_t* a, int a_stride, const uint8_t* b, int side);
  /** @returns sum of absolute differences of 16x16 pixels */
  uint32_t (*absolute_error)(const uint8_t* a, int a_stride, const uint8_t* b, int b_stride);
};

extern const Predictor PREDICTOR_PORTABLE;
#if defined(__x86_64__)
extern const Predictor PREDICTOR_AVX2;
#endif

/** @returns the fastest version for this processor */
const Predictor& choose_predictor();

/** The six taps of each fraction, in 1/128. */
constexpr int8_t FILTERS[8][6] = {{0, 0, 0, 0, 0, 0},       {0, -6, 123, 12, -1, 0},
                                  {2, -11, 108, 36, -8, 1}, {0, -9, 93, 50, -6, 0},
                                  {3, -16, 77, 77, -16, 3}, {0, -6, 50, 93, -9, 0},
                                  {1, -8, 36, 108, -11, 2}, {0, -1, 12, 123, -6, 0}};

/**
 * @param b 16x16 pixels without gaps
 * @returns the largest sum of differences, as a magnitude, of the four 8x8 quarters of 16x16 pixels
 */
uint32_t shade_error(const uint8_t* a, int a_stride, const uint8_t* b);

}  // namespace mouthpiece::vp8
