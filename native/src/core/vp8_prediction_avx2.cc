// The AVX2 prediction: eight pixels in each half of a vector, which are the two halves of a row of
// luma, or a row of U and one of V. Rows that are filtered across are filtered down at once.
#include "core/vp8_prediction.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstddef>

namespace mouthpiece::vp8 {
namespace {

#define AVX2 __attribute__((target("avx2")))

/** The six taps as three pairs, in an order in which no intermediate sum saturates. */
struct Taps {
  __m256i outer, odd, even;
};
/** The same as words, for each fraction. */
constexpr auto PAIRS = [] {
  std::array<std::array<int16_t, 3>, 8> out{};
  for (size_t i = 0; i < out.size(); i++) {
    const int8_t* f = FILTERS[i];
    const auto pair = [f](int first, int second) {
      return int16_t(uint8_t(f[first]) | uint8_t(f[second]) << 8);
    };
    out[i] = {pair(0, 5), pair(1, 3), pair(2, 4)};
  }
  return out;
}();
AVX2 inline Taps taps_of(int fraction) {
  const auto& [outer, odd, even] = PAIRS[size_t(fraction)];
  return {_mm256_set1_epi16(outer), _mm256_set1_epi16(odd), _mm256_set1_epi16(even)};
}

/** @returns eight filtered pixels in each half, in words and not clamped yet */
AVX2 inline __m256i apply(const Taps& taps, __m256i outer, __m256i odd, __m256i even) {
  const __m256i most = _mm256_add_epi16(_mm256_maddubs_epi16(outer, taps.outer),
                                        _mm256_maddubs_epi16(odd, taps.odd));
  // Divides by 128 and rounds.
  return _mm256_mulhrs_epi16(_mm256_adds_epi16(most, _mm256_maddubs_epi16(even, taps.even)),
                             _mm256_set1_epi16(1 << 8));
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

AVX2 inline __m256i row_at(const Source& from, int y) {
  return load_halves(from.low + y * from.stride, from.high + y * from.stride);
}

/** A row filtered across, in words. */
AVX2 inline __m256i across_at(const Source& from, int y, const Taps& taps) {
  const __m256i outer = _mm256_broadcastsi128_si256(
                    _mm_setr_epi8(0, 5, 1, 6, 2, 7, 3, 8, 4, 9, 5, 10, 6, 11, 7, 12)),
                odd = _mm256_broadcastsi128_si256(
                    _mm_setr_epi8(1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 6, 8, 7, 9, 8, 10)),
                even = _mm256_broadcastsi128_si256(
                    _mm_setr_epi8(2, 4, 3, 5, 4, 6, 5, 7, 6, 8, 7, 9, 8, 10, 9, 11));
  const __m256i p = row_at({from.low - 2, from.high - 2, from.stride}, y);
  return apply(taps, _mm256_shuffle_epi8(p, outer), _mm256_shuffle_epi8(p, odd),
               _mm256_shuffle_epi8(p, even));
}

/** Bytes of two rows: of each half of a vector the upper row's eight and the lower one's. */
AVX2 inline __m256i bytes_of(__m256i upper, __m256i lower) {
  return _mm256_packus_epi16(upper, lower);
}

/** Pixels of two rows side by side, as a pair of taps weighs them. A pair serves two rows. */
AVX2 inline __m256i pair_of(__m256i upper, __m256i lower) {
  return _mm256_unpacklo_epi8(upper, lower);
}

/** Stores two rows of luma, whose halves lie side by side. */
struct LumaRows {
  static constexpr int ROWS = 16;
  uint8_t* out;
  AVX2 void store(int y, __m256i rows) const {
    constexpr int BY_ROW = 0xd8;  // quarters 0, 2, 1, 3
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + y * 16),
                        _mm256_permute4x64_epi64(rows, BY_ROW));
  }
};
/** Stores two rows of U, which are one half, and of V. */
struct ChromaRows {
  static constexpr int ROWS = 8;
  uint8_t* out;
  AVX2 void store(int y, __m256i rows) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + y * 8), _mm256_castsi256_si128(rows));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + CHROMA_BYTES + y * 8),
                     _mm256_extracti128_si256(rows, 1));
  }
};

template <bool ACROSS, bool DOWN, class Rows>
AVX2 inline void predict(const Source& from, int x, int y, const Rows& to) {
  const Taps across = taps_of(x), down = taps_of(y);
  // The first eight bytes of each half are a row.
  const auto row = [&](int i) AVX2 {
    if constexpr (ACROSS) {
      const __m256i words = across_at(from, i, across);
      return bytes_of(words, words);
    } else {
      return row_at(from, i);
    }
  };
  if constexpr (DOWN) {
    __m256i a = row(-2), b = row(-1), c = row(0), d = row(1), e = row(2), bd = pair_of(b, d);
#pragma GCC unroll 4
    for (int i = 0; i < Rows::ROWS; i += 2) {
      const __m256i f = row(i + 3), g = row(i + 4), ce = pair_of(c, e), df = pair_of(d, f);
      to.store(i, bytes_of(apply(down, pair_of(a, f), bd, ce), apply(down, pair_of(b, g), ce, df)));
      a = c;
      b = d;
      c = e;
      d = f;
      e = g;
      bd = df;
    }
  } else {
    for (int i = 0; i < Rows::ROWS; i += 2) {
      if constexpr (ACROSS) {
        to.store(i, bytes_of(across_at(from, i, across), across_at(from, i + 1, across)));
      } else {
        to.store(i, _mm256_unpacklo_epi64(row(i), row(i + 1)));
      }
    }
  }
}

template <class Rows>
AVX2 inline void choose(const Source& from, int x, int y, const Rows& to) {
  if (x != 0 && y != 0) {
    predict<true, true>(from, x, y, to);
  } else if (x != 0) {
    predict<true, false>(from, x, y, to);
  } else if (y != 0) {
    predict<false, true>(from, x, y, to);
  } else {
    predict<false, false>(from, x, y, to);
  }
}

AVX2 void predict_luma(const uint8_t* from, int stride, int x, int y, uint8_t* out) {
  choose(Source{from, from + 8, stride}, x, y, LumaRows{out});
}

AVX2 void predict_chroma(const uint8_t* u, const uint8_t* v, int stride, int x, int y,
                         uint8_t* out) {
  choose(Source{u, v, stride}, x, y, ChromaRows{out});
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
