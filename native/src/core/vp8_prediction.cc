// The portable prediction, with a version for SSE4.1, and the choice between it and AVX2.
#include "core/vp8_prediction.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace mouthpiece::vp8 {
namespace {

#if defined(__SSE4_1__)
/** The six taps as three pairs, in an order in which no intermediate sum saturates. */
struct Taps {
  __m128i outer, odd, even;
  explicit Taps(int fraction) {
    const int8_t* f = FILTERS[fraction];
    const auto pair = [](int8_t a, int8_t b) {
      return _mm_set1_epi16(int16_t(uint8_t(a) | uint8_t(b) << 8));
    };
    outer = pair(f[0], f[5]);
    odd = pair(f[1], f[3]);
    even = pair(f[2], f[4]);
  }
  __m128i sum(__m128i with_outer, __m128i with_odd, __m128i with_even) const {
    const __m128i most =
        _mm_add_epi16(_mm_add_epi16(_mm_maddubs_epi16(with_outer, outer), _mm_set1_epi16(64)),
                      _mm_maddubs_epi16(with_odd, odd));
    return _mm_srai_epi16(_mm_adds_epi16(most, _mm_maddubs_epi16(with_even, even)), 7);
  }
};

inline __m128i load16(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

inline void filter_rows(const uint8_t* from, int stride, int fraction, int side, int rows,
                        uint8_t* out) {
  const Taps taps(fraction);
  const __m128i outer = _mm_setr_epi8(0, 5, 1, 6, 2, 7, 3, 8, 4, 9, 5, 10, 6, 11, 7, 12);
  const __m128i odd = _mm_setr_epi8(1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 6, 8, 7, 9, 8, 10);
  const __m128i even = _mm_setr_epi8(2, 4, 3, 5, 4, 6, 5, 7, 6, 8, 7, 9, 8, 10, 9, 11);
  for (int y = 0; y < rows; y++, from += stride, out += side) {
    for (int x = 0; x < side; x += 8) {
      const __m128i p = load16(from + x - 2);
      const __m128i sum =
          taps.sum(_mm_shuffle_epi8(p, outer), _mm_shuffle_epi8(p, odd), _mm_shuffle_epi8(p, even));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + x), _mm_packus_epi16(sum, sum));
    }
  }
}

template <int HALVES>
inline void filter_columns(const uint8_t* from, int stride, int fraction, uint8_t* out) {
  constexpr int SIDE = 8 * HALVES;
  const Taps taps(fraction);
  for (int x = 0; x < SIDE; x += 8) {
    const auto row = [&](int y) {
      return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + y * stride + x));
    };
    __m128i r[6] = {row(-2), row(-1), row(0), row(1), row(2), row(3)};
    for (int y = 0; y < SIDE; y++) {
      const __m128i sum = taps.sum(_mm_unpacklo_epi8(r[0], r[5]), _mm_unpacklo_epi8(r[1], r[3]),
                                   _mm_unpacklo_epi8(r[2], r[4]));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + y * SIDE + x), _mm_packus_epi16(sum, sum));
      for (int i = 0; i < 5; i++) {
        r[i] = r[i + 1];
      }
      r[5] = row(y + 4);
    }
  }
}
inline void filter_columns(const uint8_t* from, int stride, int fraction, int side, uint8_t* out) {
  if (side == 16) {
    filter_columns<2>(from, stride, fraction, out);
  } else {
    filter_columns<1>(from, stride, fraction, out);
  }
}
#else
inline uint8_t filtered(const uint8_t* p, int step, const int8_t* f) {
  int sum = 64;
  for (int i = 0; i < 6; i++) {
    sum += f[i] * p[(i - 2) * step];
  }
  return uint8_t(std::clamp(sum >> 7, 0, 255));
}
inline void filter_rows(const uint8_t* from, int stride, int fraction, int side, int rows,
                        uint8_t* out) {
  for (int y = 0; y < rows; y++, from += stride, out += side) {
    for (int x = 0; x < side; x++) {
      out[x] = filtered(from + x, 1, FILTERS[fraction]);
    }
  }
}
inline void filter_columns(const uint8_t* from, int stride, int fraction, int side, uint8_t* out) {
  for (int y = 0; y < side; y++, from += stride, out += side) {
    for (int x = 0; x < side; x++) {
      out[x] = filtered(from + x, stride, FILTERS[fraction]);
    }
  }
}
#endif

void interpolate(const uint8_t* from, int stride, int x, int y, int side, uint8_t* out) {
  if (x == 0 && y == 0) {
    for (int row = 0; row < side; row++) {
      std::memcpy(out + row * side, from + row * stride, size_t(side));
    }
  } else if (y == 0) {
    filter_rows(from, stride, x, side, side, out);
  } else if (x == 0) {
    filter_columns(from, stride, y, side, out);
  } else {
    uint8_t rows[22 * 16];
    filter_rows(from - 2 * stride, stride, x, side, side + 5, rows);
    filter_columns(rows + 2 * side, side, y, side, out);
  }
}

uint32_t squared_error(const uint8_t* a, int a_stride, const uint8_t* b, int side) {
#if defined(__SSE4_1__)
  const auto wide = [](const uint8_t* from) {
    return _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  };
  __m128i sum = _mm_setzero_si128();
  for (int y = 0; y < side; y++, a += a_stride, b += side) {
    for (int x = 0; x < side; x += 8) {
      const __m128i d = _mm_sub_epi16(wide(a + x), wide(b + x));
      sum = _mm_add_epi32(sum, _mm_madd_epi16(d, d));
    }
  }
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return uint32_t(_mm_cvtsi128_si32(sum));
#else
  uint32_t sum = 0;
  for (int y = 0; y < side; y++, a += a_stride, b += side) {
    for (int x = 0; x < side; x++) {
      sum += uint32_t((a[x] - b[x]) * (a[x] - b[x]));
    }
  }
  return sum;
#endif
}

uint32_t absolute_error(const uint8_t* a, int a_stride, const uint8_t* b, int b_stride) {
#if defined(__SSE4_1__)
  __m128i sum = _mm_setzero_si128();
  for (int y = 0; y < 16; y++) {
    sum = _mm_add_epi64(sum, _mm_sad_epu8(load16(a + y * a_stride), load16(b + y * b_stride)));
  }
  return uint32_t(_mm_cvtsi128_si32(sum) + _mm_extract_epi16(sum, 4));
#else
  uint32_t sum = 0;
  for (int y = 0; y < 16; y++) {
    for (int x = 0; x < 16; x++) {
      sum += uint32_t(std::abs(a[y * a_stride + x] - b[y * b_stride + x]));
    }
  }
  return sum;
#endif
}

void predict_luma(const uint8_t* from, int stride, int x, int y, uint8_t* out) {
  interpolate(from, stride, x, y, 16, out);
}

void predict_chroma(const uint8_t* u, const uint8_t* v, int stride, int x, int y, uint8_t* out) {
  interpolate(u, stride, x, y, 8, out);
  interpolate(v, stride, x, y, 8, out + CHROMA_BYTES);
}

}  // namespace

const Predictor PREDICTOR_PORTABLE{predict_luma, predict_chroma, squared_error, absolute_error};

const Predictor& choose_predictor() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return PREDICTOR_AVX2;
  }
#endif
  return PREDICTOR_PORTABLE;
}

uint32_t shade_error(const uint8_t* a, int a_stride, const uint8_t* b) {
  int most = 0;
  for (int half = 0; half < 2; half++) {
#if defined(__SSE4_1__)
    __m128i sum = _mm_setzero_si128();
    for (int y = 0; y < 8; y++, a += a_stride, b += 16) {
      const __m128i of_a = _mm_sad_epu8(load16(a), _mm_setzero_si128()),
                    of_b = _mm_sad_epu8(load16(b), _mm_setzero_si128());
      sum = _mm_add_epi32(sum, _mm_sub_epi32(of_a, of_b));
    }
    const int left = _mm_cvtsi128_si32(sum), right = _mm_extract_epi32(sum, 2);
#else
    int left = 0, right = 0;
    for (int y = 0; y < 8; y++, a += a_stride, b += 16) {
      for (int x = 0; x < 8; x++) {
        left += a[x] - b[x];
        right += a[x + 8] - b[x + 8];
      }
    }
#endif
    most = std::max({most, std::abs(left), std::abs(right)});
  }
  return uint32_t(most);
}

}  // namespace mouthpiece::vp8
