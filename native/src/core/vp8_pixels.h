// Operations on the pixels of VP8's macroblocks: prediction, transforms, the loop filter.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace mouthpiece::vp8 {

/** A macroblock: 16x16 luma, then 8x8 of U and of V, each without gaps. */
constexpr int LUMA_BYTES = 256, CHROMA_BYTES = 64, BLOCK_BYTES = 384;

/**
 * Copies a square of 16 or 8 pixels from a position in eighths of a pixel, as decoders interpolate
 * it (RFC 6386, 18.3). Reads two pixels before and three after the square.
 * @param from the pixel that the whole part of the position is at
 * @param x, y fractions, 0 to 7
 */
void interpolate(const uint8_t* from, int stride, int x, int y, int side, uint8_t* out);

/** @returns sum of the squared differences of `side` rows of `side` pixels (16 or 8) */
uint32_t squared_error(const uint8_t* a, int a_stride, const uint8_t* b, int side);

/** @returns sum of absolute differences of 16x16 pixels */
uint32_t absolute_error(const uint8_t* a, int a_stride, const uint8_t* b, int b_stride);

/** Quantiser steps of a kind of block, prepared for `quantize`. First the DC, then AC. */
struct Steps {
  std::array<int16_t, 2> step{}, dead_zone{}, round{};
  std::array<uint16_t, 2> reciprocal{};
};
Steps make_steps(int dc, int ac, float rounding);

/** Coefficients of 4x4 blocks, in rows. */
using Coefficients = std::array<int16_t, 16>;

/** Transforms the differences of two adjacent 4x4 blocks: 8x4 pixels. */
void transform_pair(const uint8_t* source, int source_stride, const uint8_t* predicted, int stride,
                    Coefficients* out);
/** Transforms the DCs of 16 blocks. */
void transform_dcs(const Coefficients* blocks, Coefficients& out);
/** The inverse, as decoders do it: writes the DCs of 16 blocks. */
void restore_dcs(const Coefficients& dcs, Coefficients* blocks);

/**
 * Quantises in place: levels into `levels`, what a decoder makes of them into `block`.
 * @returns whether a level is not 0
 */
bool quantize(Coefficients& block, const Steps& steps, Coefficients& levels);

/** Adds the inverse transform of two adjacent blocks to the prediction, in place. */
void add_pair(const Coefficients* blocks, uint8_t* picture, int stride);

/** Limits of the simple loop filter for a level, at sharpness 0 (RFC 6386, 15.2). */
struct FilterLimits {
  uint8_t outer, inner;
};
FilterLimits filter_limits(int level);
/** Filters the edges of one macroblock of luma, in the order that decoders use. */
void filter_edges(uint8_t* luma, int stride, bool has_left, bool has_top, bool has_inner,
                  FilterLimits limits);

}  // namespace mouthpiece::vp8
