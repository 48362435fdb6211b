// Transforms and quantisers of VP8. In the compiler's vector types, so that other processors than
// x86 run the same code.
#include "core/vp8_pixels.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace mouthpiece::vp8 {
namespace {

using I8 __attribute__((vector_size(16))) = int16_t;
using U8 __attribute__((vector_size(16))) = uint16_t;
using B8 __attribute__((vector_size(8))) = uint8_t;

inline I8 load_wide(const uint8_t* from) {
#if defined(__SSE4_1__)
  return I8(_mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
  B8 bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, I8);
#endif
}
inline I8 load(const int16_t* from) {
  I8 out;
  std::memcpy(&out, from, sizeof out);
  return out;
}
inline void store(int16_t* to, I8 value) {
  std::memcpy(to, &value, sizeof value);
}
inline void store_clamped(uint8_t* to, I8 value) {
#if defined(__SSE4_1__)
  const __m128i packed = _mm_packus_epi16(__m128i(value), __m128i(value));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), packed);
#else
  value = value < 0 ? I8{} : value;
  value = value > 255 ? I8{} + 255 : value;
  const B8 bytes = __builtin_convertvector(value, B8);
  std::memcpy(to, &bytes, sizeof bytes);
#endif
}
/** The upper half of the product of each lane with a constant. */
inline I8 multiply_high(I8 a, int16_t b) {
#if defined(__SSE4_1__)
  return I8(_mm_mulhi_epi16(__m128i(a), _mm_set1_epi16(b)));
#else
  I8 out;
  for (int i = 0; i < 8; i++) {
    out[i] = int16_t((int32_t(a[i]) * b) >> 16);
  }
  return out;
#endif
}

/** sqrt(2) cos(pi/8) - 1 and sqrt(2) sin(pi/8) - 1, in 1/65536. */
constexpr int16_t COSINE = 20091, SINE = int16_t(35468 - 65536);

/**
 * Transposes two 4x4 blocks that lie side by side in four vectors. Each shuffle is one instruction
 * of SSE.
 */
inline void transpose(I8 (&r)[4]) {
  using I4 __attribute__((vector_size(16))) = int32_t;
  const auto low = [](I8 x, I8 y) {
    return I4(__builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11));
  };
  const auto high = [](I8 x, I8 y) {
    return I4(__builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15));
  };
  const I4 left = low(r[0], r[1]), left_below = low(r[2], r[3]), right = high(r[0], r[1]),
           right_below = high(r[2], r[3]);
  const I8 a = I8(__builtin_shufflevector(left, left_below, 0, 4, 1, 5)),
           b = I8(__builtin_shufflevector(left, left_below, 2, 6, 3, 7)),
           c = I8(__builtin_shufflevector(right, right_below, 0, 4, 1, 5)),
           d = I8(__builtin_shufflevector(right, right_below, 2, 6, 3, 7));
  r[0] = __builtin_shufflevector(a, c, 0, 1, 2, 3, 8, 9, 10, 11);
  r[1] = __builtin_shufflevector(a, c, 4, 5, 6, 7, 12, 13, 14, 15);
  r[2] = __builtin_shufflevector(b, d, 0, 1, 2, 3, 8, 9, 10, 11);
  r[3] = __builtin_shufflevector(b, d, 4, 5, 6, 7, 12, 13, 14, 15);
}

/** One dimension of the forward transform, 1/2 of the inverse's scale a dimension. */
inline void forward(I8 (&r)[4]) {
  const I8 a = r[0] + r[3], b = r[1] + r[2], c = r[1] - r[2], d = r[0] - r[3];
  r[0] = a + b;
  r[2] = a - b;
  r[1] = c + multiply_high(c, SINE) + d + multiply_high(d, COSINE);
  r[3] = d + multiply_high(d, SINE) - c - multiply_high(c, COSINE);
}

/** One dimension of the inverse transform (RFC 6386, 14.3). */
inline void inverse(I8 (&r)[4]) {
  const I8 a = r[0] + r[2], b = r[0] - r[2];
  const I8 c = r[1] + multiply_high(r[1], SINE) - r[3] - multiply_high(r[3], COSINE);
  const I8 d = r[1] + multiply_high(r[1], COSINE) + r[3] + multiply_high(r[3], SINE);
  r[0] = a + d;
  r[3] = a - d;
  r[1] = b + c;
  r[2] = b - c;
}

}  // namespace

Steps make_steps(int dc, int ac, float rounding, float falling) {
  Steps out;
  for (size_t i = 0; i < 16; i++) {
    const int step = i == 0 ? dc : ac, frequency = std::max(int(i % 4 + i / 4) - 1, 0),
              round = int((rounding - falling * float(frequency)) * float(step));
    out.step[i] = int16_t(step);
    out.round[i] = int16_t(round);
    out.dead_zone[i] = int16_t(step - round);
    out.reciprocal[i] = int16_t(uint16_t((65536 + step - 1) / step));
  }
  return out;
}

Steps make_ac_steps(int ac, float rounding, float falling) {
  Steps out = make_steps(ac, ac, rounding, falling);
  out.dead_zone[0] = INT16_MAX;
  return out;
}

void transform_pair(const uint8_t* source, int source_stride, const uint8_t* predicted, int stride,
                    Coefficients* out) {
  I8 r[4];
  for (int y = 0; y < 4; y++) {
    r[y] = (load_wide(source + y * source_stride) - load_wide(predicted + y * stride)) * 8;
  }
  transpose(r);
  forward(r);
  transpose(r);
  forward(r);
  for (I8& row : r) {
    row = (row + 8) >> 4;
  }
  store(&out[0][0], __builtin_shufflevector(r[0], r[1], 0, 1, 2, 3, 8, 9, 10, 11));
  store(&out[0][8], __builtin_shufflevector(r[2], r[3], 0, 1, 2, 3, 8, 9, 10, 11));
  store(&out[1][0], __builtin_shufflevector(r[0], r[1], 4, 5, 6, 7, 12, 13, 14, 15));
  store(&out[1][8], __builtin_shufflevector(r[2], r[3], 4, 5, 6, 7, 12, 13, 14, 15));
}

void transform_dcs(const Coefficients* blocks, Coefficients& out) {
  int t[16];
  for (size_t i = 0; i < 4; i++) {
    const int p = blocks[4 * i][0], q = blocks[4 * i + 1][0], r = blocks[4 * i + 2][0],
              s = blocks[4 * i + 3][0];
    const int a = p + s, b = q + r, c = q - r, d = p - s;
    t[4 * i] = a + b;
    t[4 * i + 1] = c + d;
    t[4 * i + 2] = a - b;
    t[4 * i + 3] = d - c;
  }
  for (size_t i = 0; i < 4; i++) {
    const int a = t[i] + t[12 + i], b = t[4 + i] + t[8 + i], c = t[4 + i] - t[8 + i],
              d = t[i] - t[12 + i];
    out[i] = int16_t((a + b + 1) >> 1);
    out[4 + i] = int16_t((c + d + 1) >> 1);
    out[8 + i] = int16_t((a - b + 1) >> 1);
    out[12 + i] = int16_t((d - c + 1) >> 1);
  }
}

void restore_dcs(const Coefficients& dcs, Coefficients& out) {
  int t[16];
  for (size_t i = 0; i < 4; i++) {
    const int a = dcs[i] + dcs[12 + i], b = dcs[4 + i] + dcs[8 + i], c = dcs[4 + i] - dcs[8 + i],
              d = dcs[i] - dcs[12 + i];
    t[i] = a + b;
    t[4 + i] = c + d;
    t[8 + i] = a - b;
    t[12 + i] = d - c;
  }
  for (size_t i = 0; i < 4; i++) {
    const int a = t[4 * i] + t[4 * i + 3], b = t[4 * i + 1] + t[4 * i + 2],
              c = t[4 * i + 1] - t[4 * i + 2], d = t[4 * i] - t[4 * i + 3];
    out[4 * i] = int16_t((a + b + 3) >> 3);
    out[4 * i + 1] = int16_t((c + d + 3) >> 3);
    out[4 * i + 2] = int16_t((a - b + 3) >> 3);
    out[4 * i + 3] = int16_t((d - c + 3) >> 3);
  }
}

uint32_t quantize(Coefficients& block, const Steps& steps, Coefficients& levels) {
  I8 level[2];
  for (size_t half = 0; half < 2; half++) {
    const size_t at = half * 8;
    const I8 x = load(&block[at]);
    const I8 negative = x < 0;
    const I8 magnitude = (x ^ negative) - negative;
    const I8 coded = magnitude >= load(&steps.dead_zone[at]);
#if defined(__SSE4_1__)
    I8 size = I8(_mm_mulhi_epu16(__m128i(magnitude + load(&steps.round[at])),
                                 __m128i(load(&steps.reciprocal[at]))));
#else
    const U8 sum = U8(magnitude + load(&steps.round[at])), by = U8(load(&steps.reciprocal[at]));
    I8 size;
    for (int i = 0; i < 8; i++) {
      size[i] = int16_t((uint32_t(sum[i]) * by[i]) >> 16);
    }
#endif
    size &= coded;
    size = size > 2047 ? I8{} + 2047 : size;
    level[half] = (size ^ negative) - negative;
    store(&block[at], level[half] * load(&steps.step[at]));
  }
  // RFC 6386, 13
  const I8 first = __builtin_shufflevector(level[0], level[1], 0, 1, 4, 8, 5, 2, 3, 6),
           second = __builtin_shufflevector(level[0], level[1], 9, 12, 13, 10, 7, 11, 14, 15);
  store(&levels[0], first);
  store(&levels[8], second);
#if defined(__SSE4_1__)
  const __m128i bytes = _mm_packs_epi16(__m128i(first), __m128i(second));
  return uint32_t(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()))) ^ 0xffffU;
#else
  uint32_t bits = 0;
  for (size_t i = 0; i < 16; i++) {
    bits |= uint32_t(levels[i] != 0) << i;
  }
  return bits;
#endif
}

namespace {

/** The rows of two blocks side by side. */
struct Rows {
  I8 r[4];
  explicit Rows(const Coefficients* blocks) {
    const I8 a = load(&blocks[0][0]), b = load(&blocks[0][8]), c = load(&blocks[1][0]),
             d = load(&blocks[1][8]);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 2, 3, 8, 9, 10, 11);
    r[1] = __builtin_shufflevector(a, c, 4, 5, 6, 7, 12, 13, 14, 15);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 2, 3, 8, 9, 10, 11);
    r[3] = __builtin_shufflevector(b, d, 4, 5, 6, 7, 12, 13, 14, 15);
  }
};

inline void add_rows(I8 (&r)[4], uint8_t* picture, int stride) {
  inverse(r);
  transpose(r);
  inverse(r);
  for (I8& column : r) {
    column = (column + 4) >> 3;
  }
  transpose(r);
  for (int y = 0; y < 4; y++) {
    uint8_t* row = picture + y * stride;
    store_clamped(row, load_wide(row) + r[y]);
  }
}

}  // namespace

void add_pair(const Coefficients* blocks, uint8_t* picture, int stride) {
  Rows rows(blocks);
  add_rows(rows.r, picture, stride);
}

void add_pair(const Coefficients* blocks, const int16_t* dcs, uint8_t* picture, int stride) {
  Rows rows(blocks);
  rows.r[0][0] = dcs[0];
  rows.r[0][4] = dcs[1];
  add_rows(rows.r, picture, stride);
}

void add_dcs(int first, int second, uint8_t* picture, int stride) {
  const int16_t a = int16_t((first + 4) >> 3), b = int16_t((second + 4) >> 3);
  const I8 change{a, a, a, a, b, b, b, b};
  for (int y = 0; y < 4; y++) {
    uint8_t* row = picture + y * stride;
    store_clamped(row, load_wide(row) + change);
  }
}

}  // namespace mouthpiece::vp8
