// Codes the frames between key frames of a talking head in VP8 (RFC 6386).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/vp8_bool_writer.h"
#include "core/vp8_pixels.h"
#include "core/vp8_prediction.h"
#include "core/vp8_rate_control.h"
#include "core/vp8_tables.h"

namespace mouthpiece::vp8 {

/** Motion vector: from a block's place to its place in the previous picture, quarters of a pixel.
 */
struct Motion {
  int16_t x = 0, y = 0;
  bool operator==(const Motion&) const = default;
};

/** Planes of a picture in another codec's memory. */
struct Planes {
  std::array<const uint8_t*, 3> data{};
  std::array<int, 3> stride{};
};

/** Memory that the coders of a thread share. */
struct Scratch {
  std::vector<uint8_t> pixels;
  std::vector<uint32_t> tokens;
  size_t token_count = 0;
};

/** Level of the loop filter for a quantiser index. */
int filter_level(int quantizer);

/**
 * One stream. Every block is predicted from the previous frame, with a motion vector from the
 * caller or from a search. Not thread-safe.
 */
class InterCoder {
 public:
  /** @param width, height even, in pixels */
  InterCoder(int width, int height, const Predictor& predictor = choose_predictor());

  /** Continues from a key frame that resets the decoder's probabilities to their defaults. */
  void start(const Planes& key_frame);

  /**
   * Codes a frame.
   * @param picture I420 without padding
   * @param active one byte per macroblock: 0 for those that stay as they are in the previous frame.
   * Those that are SHIFTED are predicted and nothing else: their pixels in `picture` are not read
   * @param motion empty, or one per macroblock; else it is searched
   * @throws std::out_of_range when `out` is too small; then only `start` may follow
   * @returns bytes
   */
  size_t code(std::span<const uint8_t> picture, std::span<const uint8_t> active,
              std::span<const Motion> motion, RateControl& rate, Scratch& scratch,
              std::span<uint8_t> out);

  /** The last frame as decoders have it. */
  Planes decoded() const;
  /** Clamps a vector so that the macroblock lies near the picture. */
  Motion within(int bx, int by, Motion motion) const;
  /** Predicts a macroblock from the last frame: BLOCK_BYTES of luma, U and V. */
  void predict(int bx, int by, Motion motion, uint8_t* out) const;

 private:
  struct Block {
    Motion motion;
    bool is_inter = false;   // false outside the picture
    bool is_coded = false;   // has levels that are not 0
    bool has_chroma = true;  // else only luma gets a residual
  };
  /** The neighbours' vectors of a macroblock, and the probabilities of its modes (RFC 6386, 18.3).
   */
  struct Neighbours {
    Motion best, nearest, near;
    std::array<uint8_t, 4> probabilities;
  };
  /** Whether the last blocks had levels: four of luma, two of U, two of V, Y2. */
  using Context = std::array<uint8_t, 9>;
  enum Token : uint8_t { ZERO = 0, FIRST_CATEGORY = 5, END = 11 };
  /** Levels from `base` on, with more bits (RFC 6386, 13.2). */
  struct Category {
    uint32_t base;
    int bits;
    std::array<uint8_t, 11> probabilities;
  };
  static constexpr std::array<Category, 6> CATEGORIES = {
      {{5, 1, {159}},
       {7, 2, {165, 145}},
       {11, 3, {173, 148, 140}},
       {19, 4, {176, 155, 140, 135}},
       {35, 5, {180, 157, 141, 134, 130}},
       {67, 11, {254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129}}}};

  double predict_all(std::span<const uint8_t> picture, std::span<const uint8_t> active,
                     std::span<const Motion> motion, Scratch& scratch);
  void prefetch_below(std::span<const uint8_t> picture, std::span<const uint8_t> active, int bx,
                      int by) const;
  Planes source_of(std::span<const uint8_t> picture, int bx, int by);
  Neighbours neighbours(int bx, int by) const;
  void predict_luma(int bx, int by, Motion motion, uint8_t* out) const;
  void predict_chroma(int bx, int by, Motion motion, uint8_t* out) const;
  Motion choose_motion(int bx, int by, const Motion* hint, const Planes& source,
                       uint8_t* predicted) const;
  void code_residuals(std::span<const uint8_t> picture, std::span<const uint8_t> active,
                      int quantizer, Scratch& scratch);
  bool code_levels(int bx, bool has_chroma, const Planes& source, uint8_t* pixels,
                   Scratch& scratch);
  uint32_t* tokenize(const Coefficients& levels, uint32_t nonzero, uint32_t type, int first,
                     uint8_t& above, uint8_t& left, uint32_t* out);
  void store_block(int bx, int by, const uint8_t* pixels);
  void filter(std::span<const uint8_t> active, int level);
  void extend_sides(int by);
  void extend_ends(bool top, bool bottom);
  size_t write_frame(int quantizer, const Scratch& scratch, std::span<uint8_t> out);
  void update_probabilities(BoolWriter& writer);
  void write_modes(BoolWriter& out) const;
  void write_tokens(BoolWriter& out, const Scratch& scratch) const;
  void put_modes(BoolWriter& out) const;
  void put_tokens(BoolWriter& out, const Scratch& scratch) const;
  void put_modes_lzcnt(BoolWriter& out) const;
  void put_tokens_lzcnt(BoolWriter& out, const Scratch& scratch) const;

  Block& block(int bx, int by) { return blocks_[size_t((by + 1) * (columns_ + 1) + bx + 1)]; }
  const Block& block(int bx, int by) const {
    return blocks_[size_t((by + 1) * (columns_ + 1) + bx + 1)];
  }
  uint8_t* reference(int plane, int x, int y) {
    return planes_[size_t(plane)][0].bytes + LEAD + (y + BORDER) * strides_[size_t(plane)] + x +
           BORDER;
  }
  const uint8_t* reference(int plane, int x, int y) const {
    return planes_[size_t(plane)][0].bytes + LEAD + (y + BORDER) * strides_[size_t(plane)] + x +
           BORDER;
  }

  static constexpr int BORDER = 32;
  /** A line of the cache. Rows of most pictures begin with one: LEAD bytes come before. */
  static constexpr int LINE = 64, LEAD = LINE - BORDER;
  struct alignas(LINE) Line {
    uint8_t bytes[LINE];
  };
  const Predictor& predictor_;
  int width_, height_, columns_, rows_;
  std::array<int, 3> strides_{};
  /** The previous frame as decoders have it, with a border. */
  std::array<std::vector<Line>, 3> planes_;
  std::vector<Block> blocks_;
  CoefficientProbabilities probabilities_{};
  bool has_filter_deltas_ = false;

  // Of the frame that is being coded.
  std::array<Steps, 3> steps_;  // luma, Y2, chroma
  std::vector<Context> above_;
  Context left_{};
  /**
   * Counts of tokens by the lower bits of their records: context, token, and whether it follows a
   * zero, where it cannot be an end of block.
   */
  std::array<uint32_t, 1 << 12> counts_{};
  std::array<uint8_t, BLOCK_BYTES> padded_{};
};

}  // namespace mouthpiece::vp8
