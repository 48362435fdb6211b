// The AVX2 row warp: eight pixels at a time, two gathers each.
#include "core/face_warp.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace mouthpiece::face {

__attribute__((target("avx2"))) void warp_row_avx2(const Plane& source, const WarpSpan& span, uint8_t* out) {
  const int unit = span.scale == 1 ? 9 : 10;
  const __m128i cut = _mm_cvtsi32_si128(unit - 8);
  const __m256i step = _mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3);
  const __m256i rest = _mm256_setr_epi32(4, 3, 2, 1, 4, 3, 2, 1);
  const __m256i first = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1), second = _mm256_setr_epi32(1, 1, 1, 1, 2, 2, 2, 2);
  const __m256i zero = _mm256_setzero_si256(), byte = _mm256_set1_epi32(255), one = _mm256_set1_epi32(256);
  const __m256i right = _mm256_set1_epi32((source.width - 1) << 8), bottom = _mm256_set1_epi32((source.height - 1) << 8);
  const __m256i stride = _mm256_set1_epi32(source.stride), last_word = _mm256_set1_epi32(source.width - 4);
  const __m256i place_y = _mm256_set1_epi32(span.y << unit), round = _mm256_set1_epi32(32768);
  const int* base = reinterpret_cast<const int*>(source.data);
  for (int i = 0; i < span.count; i += 8) {
    // The load reads one word past the nodes needed (three of four): WarpSpan promises that it may.
    const __m256i nx = _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(span.dx + i / 4)));
    const __m256i ny = _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(span.dy + i / 4)));
    const __m256i dx = _mm256_add_epi32(_mm256_mullo_epi32(_mm256_permutevar8x32_epi32(nx, first), rest), _mm256_mullo_epi32(_mm256_permutevar8x32_epi32(nx, second), step));
    const __m256i dy = _mm256_add_epi32(_mm256_mullo_epi32(_mm256_permutevar8x32_epi32(ny, first), rest), _mm256_mullo_epi32(_mm256_permutevar8x32_epi32(ny, second), step));
    const __m256i place_x = _mm256_slli_epi32(_mm256_add_epi32(_mm256_set1_epi32(span.x + i), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)), unit);
    const __m256i x = _mm256_min_epi32(_mm256_max_epi32(_mm256_sra_epi32(_mm256_sub_epi32(place_x, dx), cut), zero), right);
    const __m256i y = _mm256_min_epi32(_mm256_max_epi32(_mm256_sra_epi32(_mm256_sub_epi32(place_y, dy), cut), zero), bottom);
    const __m256i fx = _mm256_and_si256(x, byte), fy = _mm256_and_si256(y, byte);
    const __m256i column = _mm256_srli_epi32(x, 8);
    // A word of four pixels that never crosses the row's end, shifted so that the wanted pixel is lowest. What then is missing has weight 0.
    const __m256i word = _mm256_min_epi32(column, last_word);
    const __m256i shift = _mm256_slli_epi32(_mm256_sub_epi32(column, word), 3);
    const __m256i at = _mm256_add_epi32(_mm256_mullo_epi32(_mm256_srli_epi32(y, 8), stride), word);
    const __m256i below = _mm256_add_epi32(at, _mm256_and_si256(_mm256_cmpgt_epi32(bottom, y), stride));
    const __m256i top = _mm256_srlv_epi32(_mm256_i32gather_epi32(base, at, 1), shift);
    const __m256i low = _mm256_srlv_epi32(_mm256_i32gather_epi32(base, below, 1), shift);
    const __m256i weights = _mm256_or_si256(_mm256_sub_epi32(one, fx), _mm256_slli_epi32(fx, 16));
    const __m256i pairs = _mm256_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1);
    const __m256i a = _mm256_madd_epi16(_mm256_shuffle_epi8(top, pairs), weights);
    const __m256i b = _mm256_madd_epi16(_mm256_shuffle_epi8(low, pairs), weights);
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(_mm256_mullo_epi32(a, _mm256_sub_epi32(one, fy)), _mm256_mullo_epi32(b, fy)), round);
    const __m256i value = _mm256_srli_epi32(sum, 16);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i), _mm_packus_epi16(packed, packed));
  }
}

}  // namespace mouthpiece::face
#endif
