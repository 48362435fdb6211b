// The AVX2 drawing of eyes: eight pixels at a time.
#include "core/face_eye_drawing.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstring>

namespace mouthpiece::face {
namespace {
/** Apart from the vectors of four, whose functions have the same names. */
namespace eight {

#define EYE_TARGET __attribute__((target("avx2")))

using F __attribute__((vector_size(32))) = float;
using I __attribute__((vector_size(32))) = int32_t;
constexpr int LANES = 8;

EYE_TARGET inline F splat(float x) {
  return F(_mm256_set1_ps(x));
}
EYE_TARGET inline F min(F a, F b) {
  return F(_mm256_min_ps(__m256(a), __m256(b)));
}
EYE_TARGET inline F max(F a, F b) {
  return F(_mm256_max_ps(__m256(a), __m256(b)));
}
EYE_TARGET inline F clamp01(F x) {
  return min(max(x, splat(0)), splat(1));
}
EYE_TARGET inline F mix(F a, F b, F t) {
  return a + (b - a) * t;
}
EYE_TARGET inline F smoothstep(F from, F to, F x) {
  const F t = clamp01((x - from) / (to - from));
  return t * t * (3 - 2 * t);
}
EYE_TARGET inline bool any(I mask) {
  return _mm256_testz_si256(__m256i(mask), __m256i(mask)) == 0;
}
EYE_TARGET inline I to_int(F x) {
  return I(_mm256_cvttps_epi32(__m256(x)));
}
EYE_TARGET inline F to_float(I x) {
  return F(_mm256_cvtepi32_ps(__m256i(x)));
}

/** Two vectors of four floats. */
EYE_TARGET inline __m256 halves(const float* low, const float* high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

/** The numbers of eight lanes, to address memory by. */
struct Lanes {
  alignas(32) int32_t at[LANES];
  EYE_TARGET explicit Lanes(I x) { _mm256_store_si256(reinterpret_cast<__m256i*>(at), __m256i(x)); }
};

struct Margins {
  F upper, lower;
};
EYE_TARGET inline Margins margins_at(const Eye& eye, F t) {
  const F at = clamp01(t) * float(Eye::SAMPLES - 1);
  const I i = I(_mm256_min_epi32(__m256i(to_int(at)), _mm256_set1_epi32(Eye::SAMPLES - 2)));
  const Lanes index(i);
  // Both margins at a sample and at the next: a row for each pixel, then a column for each number.
  const auto rows = [&](int lane) EYE_TARGET {
    return halves(eye.margins[size_t(index.at[lane])].data(),
                  eye.margins[size_t(index.at[lane + 4])].data());
  };
  const __m256 a = rows(0), b = rows(1), c = rows(2), d = rows(3);
  const __m256d ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b)),
                cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d)),
                next_ab = _mm256_castps_pd(_mm256_unpackhi_ps(a, b)),
                next_cd = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
  const F share = at - to_float(i);
  const auto low = [&](__m256d x, __m256d y)
                       EYE_TARGET { return F(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y))); };
  const auto high = [&](__m256d x, __m256d y)
                        EYE_TARGET { return F(_mm256_castpd_ps(_mm256_unpackhi_pd(x, y))); };
  return {mix(low(ab, cd), low(next_ab, next_cd), share),
          mix(high(ab, cd), high(next_ab, next_cd), share)};
}

/** Bilinear samples of a plane of STEP interleaved channels, as BilinearTaps takes them. */
template <size_t STEP>
class Taps {
 public:
  EYE_TARGET Taps(const uint8_t* data, int width, int height, F x, F y)
      : inside((x >= 0) & (y >= 0) & (x < float(width - 1)) & (y < float(height - 1))) {
    const I ix = inside & to_int(x), iy = inside & to_int(y);
    fx_ = x - to_float(ix);
    fy_ = y - to_float(iy);
    const __m256i pixel =
        _mm256_add_epi32(_mm256_mullo_epi32(__m256i(iy), _mm256_set1_epi32(width)), __m256i(ix));
    const Lanes index{I(pixel)};
    const auto at = [&](int lane, size_t below)
                        EYE_TARGET { return data + STEP * (size_t(index.at[lane]) + below); };
    for (size_t below = 0; below < 2; below++) {
      const size_t down = below * size_t(width);
      Row& row = rows_[below];
      if constexpr (STEP == 4) {
        const auto two = [&](int lane) EYE_TARGET {
          const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at(lane, down)));
          return _mm_castsi128_ps(_mm_unpacklo_epi64(
              low, _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at(lane + 1, down)))));
        };
        const auto both = [&](int lane) EYE_TARGET {
          return _mm256_insertf128_ps(_mm256_castps128_ps256(two(lane)), two(lane + 4), 1);
        };
        const __m256 a = both(0), b = both(2);
        row.left = I(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)));
        row.right = I(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd)));
      } else {
        const auto word = [&](int lane) EYE_TARGET {
          uint16_t out;
          std::memcpy(&out, at(lane, down), sizeof out);
          return int16_t(out);
        };
        const __m128i words =
            _mm_setr_epi16(word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7));
        row.left = I(_mm256_cvtepu16_epi32(words));
        row.right = I(_mm256_srli_epi32(__m256i(row.left), 8));
      }
    }
  }
  EYE_TARGET F operator()(int channel = 0) const {
    const auto corner = [&](I pixels)
                            EYE_TARGET { return to_float((pixels >> (8 * channel)) & 255); };
    return mix(mix(corner(rows_[0].left), corner(rows_[0].right), fx_),
               mix(corner(rows_[1].left), corner(rows_[1].right), fx_), fy_);
  }
  const I inside;

 private:
  static_assert(STEP == 1 || STEP == 4);
  struct Row {
    I left, right;
  };
  F fx_, fy_;
  Row rows_[2];
};

EYE_TARGET inline F along_cell(float step) {
  return F{0, 1, 2, 3, 0, 1, 2, 3} * step;
}
EYE_TARGET inline F along(float step) {
  return F{0, 1, 2, 3, 4, 5, 6, 7} * step;
}
EYE_TARGET inline F between_nodes(const int16_t* nodes, int next, F share) {
  const __m128 a = _mm_set1_ps(nodes[0]), b = _mm_set1_ps(nodes[next]),
               c = _mm_set1_ps(nodes[ptrdiff_t(2) * next]);
  return mix(F(_mm256_set_m128(b, a)), F(_mm256_set_m128(c, b)), share);
}
EYE_TARGET inline F take(const uint8_t* bytes) {
  return to_float(
      I(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)))));
}
EYE_TARGET inline void put(F value, I mask, uint8_t* bytes) {
  const auto narrow = [&](__m256i lanes) EYE_TARGET {
    return _mm_packs_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  };
  const __m128i words = narrow(__m256i(to_int(min(max(value + .5f, splat(0)), splat(255)))));
  const __m128i wanted = narrow(__m256i(mask));
  auto* to = reinterpret_cast<__m128i*>(bytes);
  _mm_storel_epi64(to, _mm_blendv_epi8(_mm_loadl_epi64(to), _mm_packus_epi16(words, words),
                                       _mm_packs_epi16(wanted, wanted)));
}

#include "core/face_eye_pixels.h"

EYE_TARGET void draw(const EyeState& state, const EyeCanvas& canvas) {
  draw_luma(state, canvas);
  draw_chroma(state, canvas);
}

#undef EYE_TARGET

}  // namespace eight
}  // namespace

void draw_eye_avx2(const EyeState& state, const EyeCanvas& canvas) {
  eight::draw(state, canvas);
}

}  // namespace mouthpiece::face
#endif
