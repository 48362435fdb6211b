// The AVX2 prediction: eight pixels in each half of a vector, which are the two halves of a row of
// luma, or a row of U and one of V. Rows that are filtered across are filtered down at once.
#include "core/vp8_prediction.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

namespace mouthpiece::vp8 {
namespace {

#define AVX2 __attribute__((target("avx2")))

/** The six taps as three pairs, in an order in which no intermediate sum saturates. */
struct Taps {
  __m256i outer, odd, even;
};
AVX2 inline __m256i pair_of(int8_t a, int8_t b) {
  return _mm256_set1_epi16(int16_t(uint8_t(a) | uint8_t(b) << 8));
}
AVX2 inline Taps taps_of(int fraction) {
  const int8_t* f = FILTERS[fraction];
  return {pair_of(f[0], f[5]), pair_of(f[1], f[3]), pair_of(f[2], f[4])};
}
/** @returns eight bytes in the lower quarter of each half, twice */
AVX2 inline __m256i apply(const Taps& taps, __m256i outer, __m256i odd, __m256i even) {
  const __m256i most = _mm256_add_epi16(
      _mm256_add_epi16(_mm256_maddubs_epi16(outer, taps.outer), _mm256_set1_epi16(64)),
      _mm256_maddubs_epi16(odd, taps.odd));
  const __m256i sum =
      _mm256_srai_epi16(_mm256_adds_epi16(most, _mm256_maddubs_epi16(even, taps.even)), 7);
  return _mm256_packus_epi16(sum, sum);
}

AVX2 inline __m128i load16(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
AVX2 inline __m256i load_halves(const uint8_t* low, const uint8_t* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}

/** Where the two halves of a prediction come from. */
struct Source {
  const uint8_t* low;
  const uint8_t* high;
  int stride;
};

/** One row: filtered across or copied. */
template <bool ACROSS>
AVX2 inline __m256i row_at(const Source& from, int y, [[maybe_unused]] const Taps& taps) {
  const uint8_t* low = from.low + y * from.stride;
  const uint8_t* high = from.high + y * from.stride;
  if constexpr (!ACROSS) {
    return load_halves(low, high);
  } else {
    const __m256i outer = _mm256_broadcastsi128_si256(
                      _mm_setr_epi8(0, 5, 1, 6, 2, 7, 3, 8, 4, 9, 5, 10, 6, 11, 7, 12)),
                  odd = _mm256_broadcastsi128_si256(
                      _mm_setr_epi8(1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 6, 8, 7, 9, 8, 10)),
                  even = _mm256_broadcastsi128_si256(
                      _mm_setr_epi8(2, 4, 3, 5, 4, 6, 5, 7, 6, 8, 7, 9, 8, 10, 9, 11));
    const __m256i p = load_halves(low - 2, high - 2);
    return apply(taps, _mm256_shuffle_epi8(p, outer), _mm256_shuffle_epi8(p, odd),
                 _mm256_shuffle_epi8(p, even));
  }
}

AVX2 inline void store_halves(__m256i value, uint8_t* low, uint8_t* high) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(low), _mm256_castsi256_si128(value));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(high), _mm256_extracti128_si256(value, 1));
}

/** @param low, high the two halves of the prediction; rows are `stride` bytes apart */
template <bool ACROSS, bool DOWN, int ROWS>
AVX2 inline void predict(const Source& from, int x, int y, uint8_t* low, uint8_t* high,
                         int stride) {
  const Taps across = taps_of(x);
  if constexpr (!DOWN) {
    for (int i = 0; i < ROWS; i++) {
      store_halves(row_at<ACROSS>(from, i, across), low + i * stride, high + i * stride);
    }
  } else {
    const Taps down = taps_of(y);
    __m256i a = row_at<ACROSS>(from, -2, across), b = row_at<ACROSS>(from, -1, across),
            c = row_at<ACROSS>(from, 0, across), d = row_at<ACROSS>(from, 1, across),
            e = row_at<ACROSS>(from, 2, across);
    for (int i = 0; i < ROWS; i++) {
      const __m256i f = row_at<ACROSS>(from, i + 3, across);
      store_halves(apply(down, _mm256_unpacklo_epi8(a, f), _mm256_unpacklo_epi8(b, d),
                         _mm256_unpacklo_epi8(c, e)),
                   low + i * stride, high + i * stride);
      a = b;
      b = c;
      c = d;
      d = e;
      e = f;
    }
  }
}

template <int ROWS>
AVX2 inline void choose(const Source& from, int x, int y, uint8_t* low, uint8_t* high, int stride) {
  if (x != 0 && y != 0) {
    predict<true, true, ROWS>(from, x, y, low, high, stride);
  } else if (x != 0) {
    predict<true, false, ROWS>(from, x, y, low, high, stride);
  } else if (y != 0) {
    predict<false, true, ROWS>(from, x, y, low, high, stride);
  } else {
    predict<false, false, ROWS>(from, x, y, low, high, stride);
  }
}

AVX2 void predict_luma(const uint8_t* from, int stride, int x, int y, uint8_t* out) {
  choose<16>({from, from + 8, stride}, x, y, out, out + 8, 16);
}

AVX2 void predict_chroma(const uint8_t* u, const uint8_t* v, int stride, int x, int y,
                         uint8_t* out) {
  choose<8>({u, v, stride}, x, y, out, out + CHROMA_BYTES, 8);
}

AVX2 inline uint32_t sum_of(__m256i lanes) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return uint32_t(_mm_cvtsi128_si32(sum));
}

AVX2 uint32_t squared_error(const uint8_t* a, int a_stride, const uint8_t* b, int side) {
  __m256i sum = _mm256_setzero_si256();
  // Sixteen pixels at a time: a row of luma, or two rows of chroma.
  const auto pair = [](const uint8_t* from, int step) AVX2 {
    return _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)),
                              _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + step)));
  };
  const int rows = side == 16 ? 1 : 2;
  for (int y = 0; y < side; y += rows, a += rows * a_stride, b += 16) {
    const __m128i of_a = side == 16 ? load16(a) : pair(a, a_stride);
    const __m256i d = _mm256_sub_epi16(_mm256_cvtepu8_epi16(of_a), _mm256_cvtepu8_epi16(load16(b)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(d, d));
  }
  return sum_of(sum);
}

AVX2 uint32_t absolute_error(const uint8_t* a, int a_stride, const uint8_t* b, int b_stride) {
  __m256i sum = _mm256_setzero_si256();
  for (int y = 0; y < 16; y += 2, a += 2 * a_stride, b += 2 * b_stride) {
    sum = _mm256_add_epi64(
        sum, _mm256_sad_epu8(load_halves(a, a + a_stride), load_halves(b, b + b_stride)));
  }
  return sum_of(sum);
}

}  // namespace

const Predictor PREDICTOR_AVX2{predict_luma, predict_chroma, squared_error, absolute_error};

}  // namespace mouthpiece::vp8
#endif
