// Operations on the pixels of VP8's macroblocks: transforms, quantisers, the loop filter.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace mouthpiece::vp8 {

/** Coefficients of a 4x4 block, in rows. */
struct alignas(16) Coefficients : std::array<int16_t, 16> {};

/** Quantiser steps of a kind of block, prepared for `quantize`: by coefficient. */
struct Steps {
  Coefficients step, dead_zone, round, reciprocal;
};
/**
 * @param rounding share of a step that is added to a coefficient before it is divided
 * @param falling by how much it is less for each column and row after the first frequency
 */
Steps make_steps(int dc, int ac, float rounding, float falling = 0);
/** The same for blocks whose DC is coded elsewhere: its level is 0. */
Steps make_ac_steps(int ac, float rounding, float falling);

/** Transforms the differences of two adjacent 4x4 blocks: 8x4 pixels. */
void transform_pair(const uint8_t* source, int source_stride, const uint8_t* predicted, int stride,
                    Coefficients* out);
/** Transforms the DCs of 16 blocks. */
void transform_dcs(const Coefficients* blocks, Coefficients& out);
/** The inverse, as decoders do it: the DCs of 16 blocks. */
void restore_dcs(const Coefficients& dcs, Coefficients& out);

/**
 * Quantises: levels in zigzag order into `levels`, dequantised coefficients into `block`.
 * @returns a bit for each level that is not 0, the first one's lowest
 */
uint32_t quantize(Coefficients& block, const Steps& steps, Coefficients& levels);

/** Adds the inverse transform of two adjacent blocks to the prediction, in place. */
void add_pair(const Coefficients* blocks, uint8_t* picture, int stride);
/** The same with other DCs than those of `blocks`. */
void add_pair(const Coefficients* blocks, const int16_t* dcs, uint8_t* picture, int stride);
/** The same for blocks of which all but the DCs is 0. */
void add_dcs(int first, int second, uint8_t* picture, int stride);

/** Limits of the simple loop filter for a level, at sharpness 0 (RFC 6386, 15.2). */
struct FilterLimits {
  uint8_t outer, inner;
};
FilterLimits filter_limits(int level);
/** Filters the edges of one macroblock of luma, in the order that decoders use. */
void filter_edges(uint8_t* luma, int stride, bool has_left, bool has_top, bool has_inner,
                  FilterLimits limits);

}  // namespace mouthpiece::vp8
