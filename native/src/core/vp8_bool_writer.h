// The arithmetic coder of VP8 (RFC 6386, section 7).
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace mouthpiece::vp8 {

/** Writes into a buffer of the caller. */
class BoolWriter {
 public:
  explicit BoolWriter(std::span<uint8_t> out) : out_(out) {}

  /** @param probability of a zero, in 1/256 */
  void put(bool bit, uint8_t probability) {
    const uint32_t split = 1 + (((range_ - 1) * probability) >> 8);
    if (bit) {
      low_ += split;
      range_ -= split;
    } else {
      range_ = split;
    }
    const int shift = std::countl_zero(range_) - 24;
    range_ <<= shift;
    low_ <<= shift;
    shifted_ += shift;
    if (shifted_ >= 32) {
      emit(4);
    }
  }
  void put_bits(uint32_t value, int count) {
    while (--count >= 0) {
      put((value >> count & 1) != 0, 128);
    }
  }
  void put_flag(bool bit) { put(bit, 128); }

  /** Writes what is left. @returns bytes written in all */
  size_t finish() {
    // A reader looks some bits ahead.
    put_bits(0, 16);
    const int bytes = (shifted_ + 7) / 8;
    low_ <<= 8 * bytes - shifted_;
    shifted_ = 8 * bytes;
    emit(bytes);
    return size_;
  }

 private:
  /** Writes the upper bytes of `low_`, of which there are `shifted_` / 8 and one. */
  void emit(int bytes) {
    if (size_ + size_t(bytes) > out_.size()) {
      throw std::out_of_range("the coded frame does not fit");
    }
    if (bytes == 0) {
      return;
    }
    const int kept = shifted_ - 8 * bytes + 8;
    const uint64_t done = low_ >> kept;
    if ((done >> (8 * bytes)) != 0) {
      size_t i = size_;
      while (i > 0 && ++out_[--i] == 0) {
      }
    }
    for (int i = bytes - 1; i >= 0; i--) {
      out_[size_++] = uint8_t(done >> (8 * i));
    }
    low_ &= (uint64_t(1) << kept) - 1;
    shifted_ -= 8 * bytes;
  }

  std::span<uint8_t> out_;
  size_t size_ = 0;
  /** Bits not written yet: `shifted_` and eight more. */
  uint64_t low_ = 0;
  uint32_t range_ = 255;
  int shifted_ = 0;
};

}  // namespace mouthpiece::vp8
