// Codes a frame from its picture to its tokens, and reconstructs it as decoders do.
#include "core/vp8_inter_coder.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/block_change.h"

namespace mouthpiece::vp8 {
namespace {

/** A block whose prediction is this good gets no residual: sum of squares, luma and chroma. */
constexpr uint32_t GOOD_LUMA = 500, GOOD_CHROMA = 250;
/**
 * The same for a block that moves, where fine texture is seen less: 37 dB. A shade that is wrong is
 * seen all the same: the sum of the differences of 8x8 luma pixels is bounded as well.
 */
constexpr uint32_t GOOD_MOVING_LUMA = 3400, GOOD_MOVING_CHROMA = 400, GOOD_SHADE = 80;
/** With more than this share of its blocks in motion a picture moves. */
constexpr double MOVING_SHARE = 1. / 8;
/**
 * Rounding of levels: less than a half, since small levels cost more than they gain. Those of high
 * frequencies cost most: many zeros come before them.
 */
constexpr float ROUND_LUMA = .40F, ROUND_LUMA_FALLS = .06F, ROUND_DCS = .40F, ROUND_CHROMA = .30F;
/** Where the contexts of each level's token begin: three for each band (RFC 6386, 13). */
constexpr std::array<uint32_t, 16> PLACES = {0,  3,  6,  9,  18, 12, 15, 18,
                                             18, 18, 18, 18, 18, 18, 18, 21};

}  // namespace

int filter_level(int quantizer) {
  return std::min(63, quantizer / 6);
}

InterCoder::InterCoder(int width, int height, const Predictor& predictor)
    : predictor_(predictor),
      width_(width),
      height_(height),
      columns_((width + 15) / 16),
      rows_((height + 15) / 16) {
  for (size_t i = 0; i < 3; i++) {
    const int side = i == 0 ? 16 : 8;
    strides_[i] = columns_ * side + 2 * BORDER;
    const size_t bytes = size_t(strides_[i]) * size_t(rows_ * side + 2 * BORDER);
    planes_[i].assign((LEAD + bytes + LINE - 1) / LINE, {});
  }
  blocks_.resize(size_t(columns_ + 1) * size_t(rows_ + 1));
  above_.resize(size_t(columns_));
}

void InterCoder::start(const Planes& key_frame) {
  for (int p = 0; p < 3; p++) {
    const int side = p == 0 ? 16 : 8;
    for (int y = 0; y < rows_ * side; y++) {
      std::memcpy(reference(p, 0, y), key_frame.data[size_t(p)] + y * key_frame.stride[size_t(p)],
                  size_t(columns_ * side));
    }
  }
  for (int by = 0; by < rows_; by++) {
    extend_sides(by);
  }
  extend_ends(true, true);
  probabilities_ = DEFAULT_COEFFICIENTS;
  has_filter_deltas_ = false;
}

Planes InterCoder::decoded() const {
  return {{reference(0, 0, 0), reference(1, 0, 0), reference(2, 0, 0)}, strides_};
}

size_t InterCoder::code(std::span<const uint8_t> picture, std::span<const uint8_t> active,
                        std::span<const Motion> motion, RateControl& rate, Scratch& scratch,
                        std::span<uint8_t> out) {
  std::fill(blocks_.begin(), blocks_.end(), Block{});
  for (int by = 0; by < rows_; by++) {
    for (int bx = 0; bx < columns_; bx++) {
      block(bx, by).is_inter = true;
    }
  }
  scratch.pixels.resize(active.size() * BLOCK_BYTES);
  scratch.token_count = 0;
  const double activity = predict_all(picture, active, motion, scratch);
  const auto moving = std::count_if(blocks_.begin(), blocks_.end(),
                                    [](const Block& at) { return at.motion != Motion{}; });
  const bool moves = double(moving) > MOVING_SHARE * double(active.size());
  const int quantizer = rate.choose(activity, moves);
  code_residuals(picture, active, quantizer, scratch);
  const size_t bytes = write_frame(quantizer, scratch, out);
  rate.sent(bytes, activity);
  filter(active, filter_level(quantizer));
  return bytes;
}

double InterCoder::predict_all(std::span<const uint8_t> picture, std::span<const uint8_t> active,
                               std::span<const Motion> motion, Scratch& scratch) {
  double activity = 0;
  for (int by = 0; by < rows_; by++) {
    for (int bx = 0; bx < columns_; bx++) {
      const size_t k = size_t(by * columns_ + bx);
      prefetch_below(picture, active, bx, by);
      if (!active[k]) {
        continue;
      }
      uint8_t* predicted = scratch.pixels.data() + k * BLOCK_BYTES;
      Block& here = block(bx, by);
      if (active[k] == SHIFTED && !motion.empty()) {
        here.motion = within(bx, by, motion[k]);
        predict(bx, by, here.motion, predicted);
        continue;
      }
      const Planes source = source_of(picture, bx, by);
      here.motion = choose_motion(bx, by, motion.empty() ? nullptr : &motion[k], source, predicted);
      predict_chroma(bx, by, here.motion, predicted + LUMA_BYTES);
      const uint32_t luma =
          predictor_.squared_error(source.data[0], source.stride[0], predicted, 16);
      const uint32_t u = predictor_.squared_error(source.data[1], source.stride[1], predicted + 256,
                                                  8),
                     v = predictor_.squared_error(source.data[2], source.stride[2], predicted + 320,
                                                  8);
      here.is_coded = luma >= GOOD_LUMA || std::max(u, v) >= GOOD_CHROMA;
      if (here.is_coded && here.motion != Motion{}) {
        here.has_chroma = std::max(u, v) >= GOOD_CHROMA;
        here.is_coded = luma >= GOOD_MOVING_LUMA || std::max(u, v) >= GOOD_MOVING_CHROMA ||
                        shade_error(source.data[0], source.stride[0], predicted) >= GOOD_SHADE;
      }
      if (here.is_coded) {
        activity += predictor_.absolute_error(source.data[0], source.stride[0], predicted, 16);
      }
    }
  }
  return activity;
}

/**
 * Fetches a share of the next row of macroblocks into the cache, where blocks are active: of the
 * reference, and of the picture where blocks are drawn. Between two frames of a stream the memory
 * of others takes its place. Of lines of the cache that several blocks share each block fetches
 * some. Inlined at any rate: to the compiler a call of it has no effect.
 */
[[gnu::always_inline]] inline void InterCoder::prefetch_below(std::span<const uint8_t> picture,
                                                              std::span<const uint8_t> active,
                                                              int bx, int by) const {
  constexpr int SHARING = LINE / 16, LUMA_ROWS = 16 / SHARING, CHROMA_ROWS = 8 / SHARING;
  const int part = bx % SHARING, first = bx - part;
  uint32_t any = 0;
  const size_t below = size_t((by + 1) * columns_ + first);
  if (by + 1 == rows_ || below + sizeof any > active.size()) {
    return;
  }
  static_assert(SHARING == sizeof any);
  std::memcpy(&any, &active[below], sizeof any);
  if (any == 0) {
    return;
  }
  const int y = (by + 1) * 16 + part * LUMA_ROWS, chroma_y = (by + 1) * 8 + part * CHROMA_ROWS;
  for (int i = 0; i < LUMA_ROWS; i++) {
    __builtin_prefetch(reference(0, first * 16, y + i));
  }
  for (int i = 0; i < CHROMA_ROWS; i++) {
    __builtin_prefetch(reference(1, first * 8, chroma_y + i));
    __builtin_prefetch(reference(2, first * 8, chroma_y + i));
  }
  constexpr uint32_t ANY_DRAWN = DRAWN * 0x01010101U;
  if ((any & ANY_DRAWN) == 0 || y + LUMA_ROWS > height_) {
    return;
  }
  const size_t width = size_t(width_), half = width / 2, pixels = width * size_t(height_);
  const uint8_t* luma = picture.data() + size_t(y) * width + first * 16;
  const uint8_t* u = picture.data() + pixels + size_t(chroma_y) * half + first * 8;
  for (size_t i = 0; i < LUMA_ROWS; i++) {
    __builtin_prefetch(luma + i * width);
  }
  for (size_t i = 0; i < CHROMA_ROWS; i++) {
    __builtin_prefetch(u + i * half);
    __builtin_prefetch(u + pixels / 4 + i * half);
  }
}

/** Where a macroblock's pixels are. At the picture's edge what is outside repeats the edge. */
Planes InterCoder::source_of(std::span<const uint8_t> picture, int bx, int by) {
  const int half = width_ / 2;
  const uint8_t* luma = picture.data();
  const uint8_t* u = luma + size_t(width_) * size_t(height_);
  const uint8_t* v = u + size_t(half) * size_t(height_ / 2);
  if (bx * 16 + 16 <= width_ && by * 16 + 16 <= height_) {
    return {
        {luma + by * 16 * width_ + bx * 16, u + by * 8 * half + bx * 8, v + by * 8 * half + bx * 8},
        {width_, half, half}};
  }
  uint8_t* to = padded_.data();
  for (const auto& [from, side, across, down] : {std::tuple{luma, 16, width_, height_},
                                                 {u, 8, half, height_ / 2},
                                                 {v, 8, half, height_ / 2}}) {
    for (int y = 0; y < side; y++) {
      for (int x = 0; x < side; x++) {
        *to++ =
            from[std::min(by * side + y, down - 1) * across + std::min(bx * side + x, across - 1)];
      }
    }
  }
  return {{padded_.data(), padded_.data() + LUMA_BYTES, padded_.data() + LUMA_BYTES + CHROMA_BYTES},
          {16, 8, 8}};
}

void InterCoder::code_residuals(std::span<const uint8_t> picture, std::span<const uint8_t> active,
                                int quantizer, Scratch& scratch) {
  const int dc = DC_STEPS[size_t(quantizer)], ac = AC_STEPS[size_t(quantizer)];
  steps_ = {make_ac_steps(ac, ROUND_LUMA, ROUND_LUMA_FALLS),
            make_steps(2 * dc, std::max(8, ac * 155 / 100), ROUND_DCS),
            make_steps(std::min(dc, 132), ac, ROUND_CHROMA)};
  std::fill(above_.begin(), above_.end(), Context{});
  counts_.fill(0);
  for (int by = 0; by < rows_; by++) {
    left_ = {};
    for (int bx = 0; bx < columns_; bx++) {
      const size_t k = size_t(by * columns_ + bx);
      Block& here = block(bx, by);
      uint8_t* pixels = scratch.pixels.data() + k * BLOCK_BYTES;
      here.is_coded = here.is_coded &&
                      code_levels(bx, here.has_chroma, source_of(picture, bx, by), pixels, scratch);
      if (!here.is_coded) {
        left_ = {};
        above_[size_t(bx)] = {};
      }
      if (active[k] && (here.is_coded || here.motion != Motion{})) {
        store_block(bx, by, pixels);
      }
    }
  }
}

/**
 * Transforms, quantises and tokenises the residual of one macroblock, and adds the residual that
 * decoders reconstruct to the prediction in `pixels`.
 * @param has_chroma whether chroma gets a residual, too
 * @returns whether a level is not 0; else nothing was written
 */
bool InterCoder::code_levels(int bx, bool has_chroma, const Planes& source, uint8_t* pixels,
                             Scratch& scratch) {
  std::array<Coefficients, 24> blocks, levels;
  std::array<uint32_t, 24> nonzero{};
  Coefficients dcs, dc_levels;
  // Of each pair of blocks: plane, first column and row; 8 pairs of luma, 2 of U, 2 of V.
  const auto place = [](int i) {
    struct {
      int plane, x, y;
    } out{i < 8 ? 0 : i < 10 ? 1 : 2, i < 8 ? i % 2 * 8 : 0, (i < 8 ? i / 2 : i % 2) * 4};
    return out;
  };
  const auto at = [&](int plane, int x, int y) {
    return plane == 0 ? pixels + y * 16 + x
                      : pixels + LUMA_BYTES + (plane - 1) * CHROMA_BYTES + y * 8 + x;
  };
  const int pairs = has_chroma ? 12 : 8;
  for (int i = 0; i < pairs; i++) {
    const auto [plane, x, y] = place(i);
    const int stride = plane == 0 ? 16 : 8, from = source.stride[size_t(plane)];
    transform_pair(source.data[size_t(plane)] + y * from + x, from, at(plane, x, y), stride,
                   &blocks[size_t(2 * i)]);
  }
  transform_dcs(blocks.data(), dcs);
  const uint32_t nonzero_dcs = quantize(dcs, steps_[1], dc_levels);
  uint32_t coded = nonzero_dcs;
  for (size_t i = 0; i < size_t(2 * pairs); i++) {
    nonzero[i] = quantize(blocks[i], steps_[i < 16 ? 0 : 2], levels[i]);
    coded |= nonzero[i];
  }
  if (coded == 0) {
    return false;
  }
  constexpr size_t MOST_TOKENS = 25 * 16;
  if (scratch.tokens.size() < scratch.token_count + MOST_TOKENS) {
    scratch.tokens.resize(2 * scratch.tokens.size() + MOST_TOKENS);
  }
  Context& above = above_[size_t(bx)];
  uint32_t* end = scratch.tokens.data() + scratch.token_count;
  end = tokenize(dc_levels, nonzero_dcs, 1, 0, above[8], left_[8], end);
  for (size_t i = 0; i < 16; i++) {
    end = tokenize(levels[i], nonzero[i], 0, 1, above[i % 4], left_[i / 4], end);
  }
  for (size_t i = 16; i < 24; i++) {
    const size_t base = i < 20 ? 4 : 6;
    end = tokenize(levels[i], nonzero[i], 2, 0, above[base + i % 2], left_[base + i / 2 % 2], end);
  }
  scratch.token_count = size_t(end - scratch.tokens.data());
  Coefficients restored{};
  if (nonzero_dcs != 0) {
    restore_dcs(dcs, restored);
  }
  for (int i = 0; i < pairs; i++) {
    const auto [plane, x, y] = place(i);
    const size_t k = size_t(2 * i);
    const uint32_t coded_here = nonzero[k] | nonzero[k + 1];
    uint8_t* to = at(plane, x, y);
    if (plane != 0) {
      if (coded_here > 1) {
        add_pair(&blocks[k], to, 8);
      } else if (coded_here != 0) {
        add_dcs(blocks[k][0], blocks[k + 1][0], to, 8);
      }
    } else if (coded_here != 0) {
      add_pair(&blocks[k], &restored[k], to, 16);
    } else if ((restored[k] | restored[k + 1]) != 0) {
      add_dcs(restored[k], restored[k + 1], to, 16);
    }
  }
  return true;
}

/**
 * Writes the records of the tokens of one 4x4 block (RFC 6386, 13).
 * @param levels in zigzag order
 * @param nonzero a bit for each level that is not 0
 * @param type 0: luma without DC, 1: Y2, 2: chroma
 * @returns the end of what was written to `out`
 */
uint32_t* InterCoder::tokenize(const Coefficients& levels, uint32_t nonzero, uint32_t type,
                               int first, uint8_t& above, uint8_t& left, uint32_t* out) {
  /** Of a level: its token's record without the context, and what it adds to the next record. */
  struct Symbol {
    uint32_t record, next;
  };
  constexpr auto symbol_of = [](int level) {
    const uint32_t size = uint32_t(level < 0 ? -level : level), sign = level < 0;
    uint32_t token = size, extra = sign;
    for (uint32_t c = 0; c < CATEGORIES.size() && size >= CATEGORIES[c].base; c++) {
      token = FIRST_CATEGORY + c;
      extra = (size - CATEGORIES[c].base) << 1 | sign;
    }
    return Symbol{token << 7 | extra << 12, size == 0 ? 1U << 11 : std::min(size, 2U)};
  };
  constexpr int LISTED = 100;  // nearly all levels are smaller
  static constexpr auto SYMBOLS = [symbol_of] {
    std::array<Symbol, 2 * LISTED + 1> list{};
    for (int level = -LISTED; level <= LISTED; level++) {
      list[size_t(level + LISTED)] = symbol_of(level);
    }
    return list;
  }();
  constexpr uint32_t CONTEXTS_OF_TYPE = 24;
  const uint32_t base = type * CONTEXTS_OF_TYPE;
  uint32_t next = uint32_t(above + left);
  above = left = uint8_t(nonzero != 0);
  const int end = std::max(first, 32 - std::countl_zero(nonzero));
  for (int i = first; i < end; i++) {
    const int level = levels[size_t(i)];
    const Symbol symbol =
        std::abs(level) <= LISTED ? SYMBOLS[size_t(level + LISTED)] : symbol_of(level);
    const uint32_t record = base + PLACES[size_t(i)] + next + symbol.record;
    counts_[record % counts_.size()]++;
    *out++ = record;
    next = symbol.next;
  }
  if (end < 16) {
    const uint32_t record = (base + PLACES[size_t(end)] + next) | END << 7;
    counts_[record]++;
    *out++ = record;
  }
  return out;
}

void InterCoder::store_block(int bx, int by, const uint8_t* pixels) {
  // Sizes that the compiler knows: a row is one instruction.
  const auto store = [&]<size_t SIDE>(size_t plane, std::integral_constant<size_t, SIDE>) {
    uint8_t* to = reference(int(plane), bx * int(SIDE), by * int(SIDE));
    for (size_t y = 0; y < SIDE; y++, pixels += SIDE, to += strides_[plane]) {
      std::memcpy(to, pixels, SIDE);
    }
  };
  store(0, std::integral_constant<size_t, 16>{});
  store(1, std::integral_constant<size_t, 8>{});
  store(2, std::integral_constant<size_t, 8>{});
}

/** Filters the edges of the blocks that moved, and extends the borders where they change. */
void InterCoder::filter(std::span<const uint8_t> active, int level) {
  const FilterLimits limits = filter_limits(level);
  bool top = false, bottom = false;
  for (int by = 0; by < rows_; by++) {
    const uint8_t* row = &active[size_t(by * columns_)];
    for (int bx = 0; bx < columns_; bx++) {
      const Block& here = block(bx, by);
      top |= by == 0 && row[bx];
      bottom |= by == rows_ - 1 && row[bx];
      if (level > 0 && here.motion != Motion{}) {
        filter_edges(reference(0, bx * 16, by * 16), strides_[0], bx > 0, by > 0, here.is_coded,
                     limits);
      }
    }
    if (row[0] || row[columns_ - 1]) {
      extend_sides(by);
    }
  }
  extend_ends(top, bottom);
}

/** Extends a row of macroblocks, and the line above, which filtering the row may change. */
void InterCoder::extend_sides(int by) {
  for (int p = 0; p < 3; p++) {
    const int side = p == 0 ? 16 : 8, width = columns_ * side;
    for (int y = std::max(0, by * side - 1); y < (by + 1) * side; y++) {
      uint8_t* row = reference(p, 0, y);
      std::memset(row - BORDER, row[0], BORDER);
      std::memset(row + width, row[width - 1], BORDER);
    }
  }
}

/** Extends the first and the last line of the picture. */
void InterCoder::extend_ends(bool top, bool bottom) {
  for (int p = 0; p < 3; p++) {
    const int height = rows_ * (p == 0 ? 16 : 8);
    const size_t stride = size_t(strides_[size_t(p)]);
    for (int y = 1; y <= BORDER; y++) {
      if (top) {
        std::memcpy(reference(p, -BORDER, -y), reference(p, -BORDER, 0), stride);
      }
      if (bottom) {
        std::memcpy(reference(p, -BORDER, height - 1 + y), reference(p, -BORDER, height - 1),
                    stride);
      }
    }
  }
}

}  // namespace mouthpiece::vp8
