// The little that the core's tests need: checks that say where they failed, and repeatable
// randomness.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <vector>

#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                      \
    }                                                                                    \
  } while (0)

#define CHECK_THROWS(Type, statement)                                                              \
  do {                                                                                             \
    bool thrown = false;                                                                           \
    try {                                                                                          \
      statement;                                                                                   \
    } catch (const Type&) {                                                                        \
      thrown = true;                                                                               \
    }                                                                                              \
    if (!thrown) {                                                                                 \
      std::fprintf(stderr, "%s:%d: %s did not throw %s\n", __FILE__, __LINE__, #statement, #Type); \
      std::exit(1);                                                                                \
    }                                                                                              \
  } while (0)

namespace mouthpiece::testing {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  /** A number in low..high. */
  int between(int low, int high) { return low + int(engine_() % uint32_t(high - low + 1)); }
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

/** A heap block of exactly `count` elements: unlike a vector's spare room, one step outside is a
 * finding. */
template <class T>
std::vector<T> exactly(size_t count) {
  std::vector<T> out(count);
  out.shrink_to_fit();
  return out;
}

}  // namespace mouthpiece::testing
