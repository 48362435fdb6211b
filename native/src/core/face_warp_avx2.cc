// The AVX2 tile warp: sixteen pixels at a time, shuffled out of a few rows of sixteen bytes per
// half. Without gather instructions.
#include "core/face_warp.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>

namespace mouthpiece::face {
namespace {

#define AVX2 __attribute__((target("avx2")))

/**
 * The upper and the lower row of a tile's nodes, in eight lanes. Unused lanes repeat the last node.
 */
struct NodeRows {
  __m128i top, bottom;
};

AVX2 inline __m128i load(const int16_t* nodes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(nodes));
}

/** Luma: nodes 0 to 4, the last repeated. */
AVX2 inline NodeRows luma_nodes(const int16_t* nodes, int columns) {
  const __m128i pick = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 9, 8, 9, 8, 9);
  return {_mm_shuffle_epi8(load(nodes), pick), _mm_shuffle_epi8(load(nodes + columns), pick)};
}

/** Chroma: nodes 0, 2 and 4 in both halves, the last repeated. */
AVX2 inline NodeRows chroma_nodes(const int16_t* nodes, int columns) {
  const __m128i pick = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 8, 9, 8, 9, 8, 9, 8, 9, 8, 9);
  return {_mm_shuffle_epi8(load(nodes), pick), _mm_shuffle_epi8(load(nodes + 2 * columns), pick)};
}

struct Range {
  int low, high;
};

/** Minimum and maximum of signed 16-bit lanes. phminposuw finds the minimum of unsigned lanes. */
AVX2 inline Range range_of(__m128i least, __m128i most) {
  const int low = _mm_extract_epi16(
                      _mm_minpos_epu16(_mm_xor_si128(least, _mm_set1_epi16(int16_t(0x8000)))), 0) ^
                  0x8000;
  const int high =
      _mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(most, _mm_set1_epi16(0x7fff))), 0) ^ 0x7fff;
  return {int16_t(low), int16_t(high)};
}
AVX2 inline Range range_of(NodeRows n) {
  const Range range = range_of(_mm_min_epi16(n.top, n.bottom), _mm_max_epi16(n.top, n.bottom));
  return {range.low - 1, range.high};  // what lies between is rounded down
}

/** @returns whole pixels from the start of the source window to the destination position */
inline int origin(Range displacement) {
  return (displacement.high + SUBPIXEL - 1) >> SUBPIXEL_BITS;
}
/**
 * @returns pixels from the window's start to the last source of one position; eight adjacent
 * positions need seven more
 */
inline int reach(Range displacement) {
  return (origin(displacement) * SUBPIXEL - displacement.low) >> SUBPIXEL_BITS;
}

/** Bounds of a tile's displacements on one axis. They are rounded down: by less than 1/SUBPIXEL. */
struct Bounds {
  Range top, bottom;  // of the rows of nodes
  Range all() const { return {std::min(top.low, bottom.low) - 1, std::max(top.high, bottom.high)}; }
  Range row(int i) const {
    return {((top.low * (NODE_STEP - i) + bottom.low * i) >> 2) - 1,
            (top.high * (NODE_STEP - i) + bottom.high * i + NODE_STEP - 1) >> 2};
  }
};

/** Tiles that are stretched more than this are left to the portable version. */
constexpr int MAX_REACH_X = 7, MAX_REACH_Y = 12;

inline bool fits(Range x, Range y, int column, int row, int window_width, const Plane& source) {
  return reach(x) <= MAX_REACH_X && reach(y) <= MAX_REACH_Y && column >= 0 &&
         column + window_width <= source.width && row >= 0 &&
         row + NODE_STEP + reach(y) + 1 <= source.height;
}

/** Displacements of sixteen pixels of a tile's first row, in 1/4 SUBPIXEL, and from row to row. */
struct Slope {
  __m256i at, step;
};

/** `spread` and `next` are shuffles that give each pixel the node on its left and on its right. */
AVX2 inline Slope slope_of(NodeRows n, __m256i spread, __m256i next) {
  const __m256i steps = _mm256_setr_epi16(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
  const auto across = [&](__m128i nodes) AVX2 {
    const __m256i both = _mm256_broadcastsi128_si256(nodes),
                  left = _mm256_shuffle_epi8(both, spread), right = _mm256_shuffle_epi8(both, next);
    return _mm256_add_epi16(_mm256_slli_epi16(left, 2),
                            _mm256_mullo_epi16(_mm256_sub_epi16(right, left), steps));
  };
  const __m256i top = across(n.top);
  return {top, _mm256_srai_epi16(_mm256_sub_epi16(across(n.bottom), top), 2)};
}

/** Where the two halves of a tile's rows are read, in one plane. */
struct Window {
  const uint8_t* low;
  const uint8_t* high;
};

/**
 * Fills four rows of sixteen pixels. `plain` and `sharp` point into the source row of the tile's
 * first pixel, `origin_x` pixels left of it. SHIFT normalises displacements.
 */
template <int SHIFT, bool SHARPEN>
AVX2 inline void warp_rows(Slope sx, Slope sy, int origin_x, const Bounds& down_by, Window plain,
                           [[maybe_unused]] Window sharp, int source_stride, uint8_t* out_low,
                           uint8_t* out_high, int stride) {
  const __m256i fraction = _mm256_set1_epi16(SUBPIXEL - 1), whole = _mm256_set1_epi16(SUBPIXEL);
  const __m256i place_x = _mm256_add_epi16(
      _mm256_setr_epi16(0, 64, 128, 192, 256, 320, 384, 448, 0, 64, 128, 192, 256, 320, 384, 448),
      _mm256_set1_epi16(int16_t(origin_x * SUBPIXEL)));
  for (int row = 0; row < NODE_STEP; row++) {
    const Range range = down_by.row(row);
    const int start = origin(range), last = reach(range);
    const __m256i x = _mm256_sub_epi16(place_x, _mm256_srai_epi16(sx.at, SHIFT)),
                  y = _mm256_sub_epi16(_mm256_set1_epi16(int16_t(start * SUBPIXEL)),
                                       _mm256_srai_epi16(sy.at, SHIFT));
    sx.at = _mm256_add_epi16(sx.at, sx.step);
    sy.at = _mm256_add_epi16(sy.at, sy.step);
    const __m256i fx = _mm256_and_si256(x, fraction), fy = _mm256_and_si256(y, fraction);
    const __m256i column = _mm256_srai_epi16(x, SUBPIXEL_BITS);
    // Each pixel needs bytes `column` and `column + 1`, with the weights 64 - fx and fx.
    const __m256i pick = _mm256_add_epi16(_mm256_or_si256(column, _mm256_slli_epi16(column, 8)),
                                          _mm256_set1_epi16(0x0100));
    const __m256i weights = _mm256_or_si256(_mm256_sub_epi16(whole, fx), _mm256_slli_epi16(fx, 8));
    const __m256i down = _mm256_slli_epi16(fy, 9);
    const int first = (row - start) * source_stride;
    const auto bilinear = [&](Window from) AVX2 {
      const auto across = [&](int below) AVX2 {
        const int at = first + below * source_stride;
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.low + at)),
                      b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.high + at));
        return _mm256_maddubs_epi16(
            _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1), pick),
            weights);
      };
      // Each pixel needs the two rows round its source. Where the displacement hardly varies, two
      // rows do for all pixels; stretched tiles need more.
      __m256i a = across(0), b = across(1);
      if (last > 0) {
        const __m256i line = _mm256_srai_epi16(y, SUBPIXEL_BITS);
        __m256i previous = b;
        for (int k = 1; k <= last; k++) {
          const __m256i here = _mm256_cmpeq_epi16(line, _mm256_set1_epi16(int16_t(k))),
                        following = across(k + 1);
          a = _mm256_blendv_epi8(a, previous, here);
          b = _mm256_blendv_epi8(b, following, here);
          previous = following;
        }
      }
      return _mm256_add_epi16(a, _mm256_mulhrs_epi16(_mm256_sub_epi16(b, a), down));
    };
    __m256i value = bilinear(plain);
    if constexpr (SHARPEN) {
      const __m256i between_x = _mm256_mullo_epi16(fx, _mm256_sub_epi16(whole, fx)),
                    between_y = _mm256_mullo_epi16(fy, _mm256_sub_epi16(whole, fy));
      const __m256i share = _mm256_slli_epi16(
          _mm256_min_epi16(_mm256_add_epi16(between_x, between_y), _mm256_set1_epi16(2047)), 4);
      value = _mm256_add_epi16(
          value, _mm256_mulhrs_epi16(_mm256_sub_epi16(bilinear(sharp), value), share));
    }
    const __m256i pixel =
        _mm256_srai_epi16(_mm256_add_epi16(value, _mm256_set1_epi16(SUBPIXEL / 2)), SUBPIXEL_BITS);
    const __m256i packed = _mm256_packus_epi16(pixel, pixel);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out_low + row * stride),
                     _mm256_castsi256_si128(packed));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out_high + row * stride),
                     _mm256_extracti128_si256(packed, 1));
  }
}

AVX2 void warp_luma(const LumaPlane& source, const Nodes& nodes, int x, int y, uint8_t* out,
                    int stride) {
  const NodeRows nx = luma_nodes(nodes.x, nodes.columns), ny = luma_nodes(nodes.y, nodes.columns);
  const Range rx = range_of(nx);
  const Bounds down{range_of(ny.top, ny.top), range_of(ny.bottom, ny.bottom)};
  const Range ry = down.all();
  const int column = x - origin(rx), row = y - origin(ry);
  if (!fits(rx, ry, column, row, 24, source)) {
    WARP_PORTABLE.luma(source, nodes, x, y, out, stride);
    return;
  }
  const __m256i spread = _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 4,
                                          5, 4, 5, 4, 5, 6, 7, 6, 7, 6, 7, 6, 7);
  const __m256i next = _mm256_setr_epi8(2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 4, 5, 4, 5, 4, 5, 6, 7, 6, 7,
                                        6, 7, 6, 7, 8, 9, 8, 9, 8, 9, 8, 9);
  const int at = y * source.stride + column;
  warp_rows<2, true>(slope_of(nx, spread, next), slope_of(ny, spread, next), origin(rx), down,
                     {source.data + at, source.data + at + 8},
                     {source.sharp + at, source.sharp + at + 8}, source.stride, out, out + 8,
                     stride);
}

AVX2 void warp_chroma(const Plane& u, const Plane& v, const Nodes& nodes, int x, int y,
                      uint8_t* out_u, uint8_t* out_v, int stride) {
  const NodeRows nx = chroma_nodes(nodes.x, nodes.columns),
                 ny = chroma_nodes(nodes.y, nodes.columns);
  const auto halved = [](Range range) { return Range{range.low >> 1, (range.high + 1) >> 1}; };
  const Range rx = halved(range_of(nx));
  const Bounds down{halved(range_of(ny.top, ny.top)), halved(range_of(ny.bottom, ny.bottom))};
  const Range ry = down.all();
  const int column = x - origin(rx), row = y - origin(ry);
  if (!fits(rx, ry, column, row, 16, u)) {
    WARP_PORTABLE.chroma(u, v, nodes, x, y, out_u, out_v, stride);
    return;
  }
  const __m256i spread = _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 0, 1, 0,
                                          1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3);
  const __m256i next = _mm256_setr_epi8(2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 4, 5, 4, 5, 4, 5, 2, 3, 2, 3,
                                        2, 3, 2, 3, 4, 5, 4, 5, 4, 5, 4, 5);
  const int at = y * u.stride + column;
  const Window both{u.data + at, v.data + at};
  warp_rows<3, false>(slope_of(nx, spread, next), slope_of(ny, spread, next), origin(rx), down,
                      both, both, u.stride, out_u, out_v, stride);
}

}  // namespace

const Warp WARP_AVX2{warp_luma, warp_chroma};

}  // namespace mouthpiece::face
#endif
