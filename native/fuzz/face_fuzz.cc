// Fuzz target: a changed face asset is refused or rendered, without access out of bounds.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "../test/face_fixture.h"
#include "core/face_renderer.h"
#include "input.h"

using namespace mouthpiece::face;
using mouthpiece::fuzzing::Input;

namespace {

/**
 * The input: a count, so many changes of seven bytes (a position in the file and four new bytes),
 * then the articulations and poses of up to MAX_FRAMES frames.
 */
constexpr int MAX_CHANGES = 16, MAX_FRAMES = 3;

/** Reads a record, one byte per number. One of the values stands for not a number. */
template <class Record>
Record numbers(Input& input) {
  float values[Record::SIZE];
  for (float& value : values) {
    const auto byte = input.take<int8_t>();
    value = byte == -128 ? std::numeric_limits<float>::quiet_NaN() : float(byte) / 32;
  }
  Record record;
  std::memcpy(&record, values, sizeof record);
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<uint8_t> whole = [] {
    mouthpiece::testing::Random random(1);
    return mouthpiece::testing::make_asset(random, 0);
  }();
  Input input(data, size);
  // A heap block of exactly this size, so that AddressSanitizer finds an access beyond it.
  std::vector<uint8_t> bytes(whole.begin(), whole.end());
  const int changes = input.take<uint8_t>() % (MAX_CHANGES + 1);
  for (int i = 0; i < changes; i++) {
    const uint32_t low = input.take<uint16_t>();
    const uint32_t place = low | uint32_t(input.take<uint8_t>()) << 16;
    const uint32_t value = input.take<uint32_t>();
    const size_t at = place % (bytes.size() - 4);
    std::memcpy(bytes.data() + at, &value, 4);
  }
  try {
    const Asset asset = parse_asset(bytes);
    const Model model = build_model(asset);
    Renderer renderer(model);
    std::vector<uint8_t> picture(renderer.picture_bytes()), dirty(renderer.macroblocks());
    for (int frame = 0; frame < MAX_FRAMES && !input.empty(); frame++) {
      const auto articulation = numbers<Articulation>(input);
      const auto pose = numbers<Pose>(input);
      const int emotion = input.take<uint8_t>() % EMOTIONS;
      renderer.set_emotion(emotion, float(input.take<int8_t>()) / 100);
      renderer.render(articulation, pose, picture, dirty);
    }
  } catch (const std::runtime_error&) {
    // A corrupt file is refused.
  }
  return 0;
}
