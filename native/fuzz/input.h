// Reads numbers from a fuzzer's input.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mouthpiece::fuzzing {

/** The input, consumed from its start. Beyond its end there are zeros. */
class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  template <class Number>
  Number take() {
    Number value{};
    const size_t bytes = std::min(left_, sizeof value);
    std::memcpy(&value, at_, bytes);
    at_ += bytes;
    left_ -= bytes;
    return value;
  }
  /** @returns the next bytes, at most `most` */
  std::span<const uint8_t> bytes(size_t most) {
    const std::span<const uint8_t> taken(at_, std::min(most, left_));
    at_ += taken.size();
    left_ -= taken.size();
    return taken;
  }

 private:
  const uint8_t* at_;
  size_t left_;
};

}  // namespace mouthpiece::fuzzing
