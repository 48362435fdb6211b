// The simple loop filter of VP8 (RFC 6386, 15.2).
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/vp8_pixels.h"

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace mouthpiece::vp8 {
namespace {

#if defined(__SSE4_1__)
/** Filters sixteen positions of an edge between p0 and q0. */
inline void filter(__m128i p1, __m128i& p0, __m128i& q0, __m128i q1, uint8_t limit) {
  const __m128i sign = _mm_set1_epi8(int8_t(-128)), zero = _mm_setzero_si128();
  const auto distance = [](__m128i a, __m128i b) {
    return _mm_or_si128(_mm_subs_epu8(a, b), _mm_subs_epu8(b, a));
  };
  const __m128i inner = distance(p0, q0);
  const __m128i outer =
      _mm_and_si128(_mm_srli_epi16(distance(p1, q1), 1), _mm_set1_epi8(int8_t(0x7f)));
  const __m128i over = _mm_subs_epu8(_mm_adds_epu8(_mm_adds_epu8(inner, inner), outer),
                                     _mm_set1_epi8(int8_t(limit)));
  const __m128i mask = _mm_cmpeq_epi8(over, zero);
  const __m128i a = _mm_xor_si128(p1, sign), b = _mm_xor_si128(p0, sign),
                c = _mm_xor_si128(q0, sign), d = _mm_xor_si128(q1, sign);
  const __m128i step = _mm_subs_epi8(c, b);
  __m128i value = _mm_subs_epi8(a, d);
  value = _mm_adds_epi8(_mm_adds_epi8(_mm_adds_epi8(value, step), step), step);
  value = _mm_and_si128(value, mask);
  const auto eighth = [&](__m128i x) {
    const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(zero, x), 11);
    const __m128i high = _mm_srai_epi16(_mm_unpackhi_epi8(zero, x), 11);
    return _mm_packs_epi16(low, high);
  };
  q0 = _mm_xor_si128(_mm_subs_epi8(c, eighth(_mm_adds_epi8(value, _mm_set1_epi8(4)))), sign);
  p0 = _mm_xor_si128(_mm_adds_epi8(b, eighth(_mm_adds_epi8(value, _mm_set1_epi8(3)))), sign);
}

/** The edge above `at`. */
inline void filter_row_edge(uint8_t* at, int stride, uint8_t limit) {
  const auto row = [&](int y) { return reinterpret_cast<__m128i*>(at + y * stride); };
  __m128i p0 = _mm_loadu_si128(row(-1)), q0 = _mm_loadu_si128(row(0));
  filter(_mm_loadu_si128(row(-2)), p0, q0, _mm_loadu_si128(row(1)), limit);
  _mm_storeu_si128(row(-1), p0);
  _mm_storeu_si128(row(0), q0);
}

/** The edge on the left of `at`. */
inline void filter_column_edge(uint8_t* at, int stride, uint8_t limit) {
  const auto rows = [&](int y) {
    int32_t r[4];
    for (int i = 0; i < 4; i++) {
      std::memcpy(&r[i], at + (y + i) * stride - 2, 4);
    }
    const __m128i by_column = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm_shuffle_epi8(_mm_setr_epi32(r[0], r[1], r[2], r[3]), by_column);
  };
  const __m128i a = rows(0), b = rows(4), c = rows(8), d = rows(12);
  const __m128i low_ab = _mm_unpacklo_epi32(a, b), low_cd = _mm_unpacklo_epi32(c, d),
                high_ab = _mm_unpackhi_epi32(a, b), high_cd = _mm_unpackhi_epi32(c, d);
  __m128i p0 = _mm_unpackhi_epi64(low_ab, low_cd), q0 = _mm_unpacklo_epi64(high_ab, high_cd);
  filter(_mm_unpacklo_epi64(low_ab, low_cd), p0, q0, _mm_unpackhi_epi64(high_ab, high_cd), limit);
  uint16_t pairs[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(pairs), _mm_unpacklo_epi8(p0, q0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(pairs + 8), _mm_unpackhi_epi8(p0, q0));
  for (int y = 0; y < 16; y++) {
    std::memcpy(at + y * stride - 1, &pairs[y], 2);
  }
}
#else
inline int to_char(int x) {
  return std::clamp(x, -128, 127);
}
/** Filters sixteen positions of an edge before `at`; `across` is the step over it. */
inline void filter_edge(uint8_t* at, int across, int along, uint8_t limit) {
  for (int i = 0; i < 16; i++, at += along) {
    const int p1 = at[-2 * across], p0 = at[-across], q0 = at[0], q1 = at[across];
    if (std::abs(p0 - q0) * 2 + std::abs(p1 - q1) / 2 > limit) {
      continue;
    }
    const int value = to_char(to_char(p1 - q1) + 3 * (q0 - p0));
    at[0] = uint8_t(to_char(q0 - 128 - (to_char(value + 4) >> 3)) + 128);
    at[-across] = uint8_t(to_char(p0 - 128 + (to_char(value + 3) >> 3)) + 128);
  }
}
inline void filter_row_edge(uint8_t* at, int stride, uint8_t limit) {
  filter_edge(at, stride, 1, limit);
}
inline void filter_column_edge(uint8_t* at, int stride, uint8_t limit) {
  filter_edge(at, 1, stride, limit);
}
#endif

}  // namespace

FilterLimits filter_limits(int level) {
  const int inside = std::max(level, 1);
  return {uint8_t(2 * (level + 2) + inside), uint8_t(2 * level + inside)};
}

void filter_edges(uint8_t* luma, int stride, bool has_left, bool has_top, bool has_inner,
                  FilterLimits limits) {
  if (has_left) {
    filter_column_edge(luma, stride, limits.outer);
  }
  for (int x = 4; has_inner && x < 16; x += 4) {
    filter_column_edge(luma + x, stride, limits.inner);
  }
  if (has_top) {
    filter_row_edge(luma, stride, limits.outer);
  }
  for (int y = 4; has_inner && y < 16; y += 4) {
    filter_row_edge(luma + y * stride, stride, limits.inner);
  }
}

}  // namespace mouthpiece::vp8
