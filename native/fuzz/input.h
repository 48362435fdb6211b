// Numbers out of a fuzzer's input.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mouthpiece::fuzzing {

/** What the input is made of, taken from its front. */
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
  /** Up to `most` bytes. */
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
