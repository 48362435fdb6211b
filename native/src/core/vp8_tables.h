// Tables of VP8 (RFC 6386).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace mouthpiece::vp8 {

/** Probabilities of the token tree's nodes: [block type][band][context][node], flat. */
constexpr size_t NODES = 11, CONTEXTS = size_t(4 * 8 * 3);
using CoefficientProbabilities = std::array<uint8_t, CONTEXTS * NODES>;
/** Of a vector's component: is_short, sign, 7 of the short tree, 10 of the long form's bits. */
using MotionProbabilities = std::array<uint8_t, 19>;

/** Quantiser steps by quantiser index. */
extern const std::array<uint8_t, 128> DC_STEPS;
extern const std::array<uint16_t, 128> AC_STEPS;
extern const CoefficientProbabilities DEFAULT_COEFFICIENTS, COEFFICIENT_UPDATES;
extern const std::array<std::array<uint8_t, 4>, 6> MODE_CONTEXTS;
/** Probabilities of motion vectors: of rows, then of columns. */
extern const std::array<MotionProbabilities, 2> DEFAULT_MOTION, MOTION_UPDATES;

}  // namespace mouthpiece::vp8
