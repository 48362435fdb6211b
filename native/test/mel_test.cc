// The log-mel front end on extreme input: values are finite and in range, silence gives zeros, and
// no access is out of bounds.
#include "core/mel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "test_data.h"

using namespace mouthpiece;
using mouthpiece::testing::exact_vector;
using mouthpiece::testing::Random;

namespace {

constexpr size_t VALUES = size_t(MEL_FRAMES_PER_STEP) * MEL_BANDS;

/** Fills `pcm` with one of four extremes: noise, full-scale square wave, constant, faint noise. */
void fill_extreme(Random& random, std::vector<int16_t>& pcm) {
  const int kind = random.between(0, 3);
  for (size_t i = 0; i < pcm.size(); i++) {
    pcm[i] = kind == 0   ? int16_t(random.between(-32768, 32767))
             : kind == 1 ? int16_t(i % 2 ? 32767 : -32768)
             : kind == 2 ? int16_t(-32768)
                         : int16_t(random.between(-1, 1));
  }
}

}  // namespace

TEST_CASE("features of extreme input are finite and in range, those of silence are zero") {
  Random random(3);
  MelFrontEnd front_end;
  for (int round = 0; round < 300; round++) {
    const size_t count =
        round % 10 == 0 ? size_t(random.between(3, MEL_MAX_STEP_SAMPLES)) : size_t(533 + round % 2);
    auto pcm = exact_vector<int16_t>(count);
    fill_extreme(random, pcm);
    auto out = exact_vector<float>(VALUES);
    front_end.step(pcm.data(), count, out.data());
    for (const float value : out) {
      REQUIRE(std::isfinite(value));
      REQUIRE(value >= 0);
      REQUIRE(value < 3.5F);
    }
  }

  front_end.reset();
  const auto silence = exact_vector<int16_t>(534);
  auto out = exact_vector<float>(VALUES);
  for (int i = 0; i < 30; i++) {
    front_end.step(silence.data(), silence.size(), out.data());
    for (const float value : out) {
      REQUIRE(value == 0);
    }
  }
}
