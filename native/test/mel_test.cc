// The log-mel front end on extreme input: finite, within its range, zero in silence, and exact
// about the memory it touches.
#include "core/mel.h"

#include <cmath>

#include "check.h"

using namespace mouthpiece;
using mouthpiece::testing::Random;

int main() {
  Random random(3);
  MelFrontEnd front_end;
  constexpr size_t VALUES = size_t(MEL_FRAMES_PER_STEP) * MEL_BANDS;
  for (int round = 0; round < 300; round++) {
    const size_t count =
        round % 10 == 0 ? size_t(random.between(3, MEL_MAX_STEP_SAMPLES)) : size_t(533 + round % 2);
    auto pcm = testing::exactly<int16_t>(count);
    const int kind = random.between(0, 3);
    for (size_t i = 0; i < count; i++) {
      pcm[i] = kind == 0   ? int16_t(random.between(-32768, 32767))
               : kind == 1 ? int16_t(i % 2 ? 32767 : -32768)
               : kind == 2 ? int16_t(-32768)
                           : int16_t(random.between(-1, 1));
    }
    auto out = testing::exactly<float>(VALUES);
    front_end.step(pcm.data(), count, out.data());
    for (const float value : out) {
      CHECK(std::isfinite(value) && value >= 0 && value < 3.5F);
    }
  }
  front_end.reset();
  const auto silence = testing::exactly<int16_t>(534);
  auto out = testing::exactly<float>(VALUES);
  for (int i = 0; i < 30; i++) {
    front_end.step(silence.data(), silence.size(), out.data());
    for (const float value : out) {
      CHECK(value == 0);
    }
  }
  return 0;
}
