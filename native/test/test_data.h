// Test data: repeatable random numbers, and buffers without spare room.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace mouthpiece::testing {

/** Pseudo-random numbers (Mersenne Twister). The same seed gives the same numbers everywhere. */
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  /** @returns a number from `low` to `high`, both included */
  int between(int low, int high) { return low + int(engine_() % uint32_t(high - low + 1)); }

  /** @returns `count` random bytes */
  std::vector<uint8_t> bytes(size_t count) {
    std::vector<uint8_t> out(count);
    for (auto& byte : out) {
      byte = uint8_t(engine_());
    }
    return out;
  }

 private:
  std::mt19937 engine_;
};

/**
 * @returns a vector of `count` zeros whose heap block has exactly that size, so that
 * AddressSanitizer reports any access beyond the last element
 */
template <class T>
std::vector<T> exact_vector(size_t count) {
  std::vector<T> out(count);
  out.shrink_to_fit();
  return out;
}

}  // namespace mouthpiece::testing
