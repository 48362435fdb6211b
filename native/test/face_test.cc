// Face rendering: both tile warps give the same pixels, and no asset and no input makes the
// renderer read or write out of bounds.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/face_renderer.h"
#include "face_fixture.h"
#include "test_data.h"

using namespace mouthpiece::face;
using mouthpiece::testing::exact_vector;
using mouthpiece::testing::make_asset;
using mouthpiece::testing::Random;

namespace {

/** Mostly a number from -1.5 to 1.5; sometimes not a number, infinite or huge. */
float extreme_number(Random& random) {
  switch (random.between(0, 12)) {
    case 0:
      return std::numeric_limits<float>::quiet_NaN();
    case 1:
      return std::numeric_limits<float>::infinity();
    case 2:
      return -1e30f;
    default:
      return float(random.between(-1500, 1500)) / 1000;
  }
}

template <class Record>
Record extreme_record(Random& random) {
  Record record;
  float values[Record::SIZE];
  for (float& value : values) {
    value = extreme_number(random);
  }
  std::memcpy(&record, values, sizeof record);
  return record;
}

/** Renders extreme input with the fastest and with the portable code, and compares the pictures. */
void render_extremes(Random& random, const Model& model, int frames) {
  Renderer renderer(model), portable(model, WARP_PORTABLE, draw_eye_portable);
  auto picture = exact_vector<uint8_t>(renderer.picture_bytes()), other = picture;
  auto dirty = exact_vector<uint8_t>(renderer.macroblocks()), other_dirty = dirty;
  auto motion = exact_vector<int16_t>(2 * renderer.macroblocks());
  for (int frame = 0; frame < frames; frame++) {
    const auto articulation = extreme_record<Articulation>(random);
    const auto pose = extreme_record<Pose>(random);
    const int emotion = random.between(0, EMOTIONS - 1);
    renderer.set_emotion(emotion, 1);
    portable.set_emotion(emotion, 1);
    const bool may_shift = random.between(0, 1) == 1;
    renderer.render(articulation, pose, picture, dirty, motion, may_shift);
    portable.render(articulation, pose, other, other_dirty, motion, may_shift);
    REQUIRE(picture == other);
    REQUIRE(dirty == other_dirty);
  }
}

}  // namespace

#if defined(__x86_64__)
// Displacement fields from weak to strong, at all places of planes of many sizes.
TEST_CASE("the AVX2 warp gives the same pixels as the portable one") {
  if (!__builtin_cpu_supports("avx2")) {
    MESSAGE("this processor has no AVX2");
    return;
  }
  Random random(4711);
  for (int round = 0; round < 40; round++) {
    const int width = 32 + 16 * random.between(0, 5), height = 32 + 16 * random.between(0, 5),
              columns = width / NODE_STEP + 1, rows = height / NODE_STEP + 1;
    const auto bytes = random.bytes(size_t(width) * size_t(height));
    auto pixels = exact_vector<uint8_t>(bytes.size());
    pixels = bytes;
    const size_t nodes = size_t(columns) * size_t(rows);
    std::vector<int16_t> x(nodes + 8), y(nodes + 8);
    const int strength = 1 << random.between(0, 12), wobble = 1 << random.between(0, 12),
              bias = random.between(-1000, 1000);
    for (size_t k = 0; k < nodes; k++) {
      x[k] = int16_t(std::clamp(bias + random.between(-strength, strength), -MAX_SHIFT * SUBPIXEL,
                                MAX_SHIFT * SUBPIXEL));
      y[k] = int16_t(std::clamp(bias / 2 + random.between(-wobble, wobble), -MAX_SHIFT * SUBPIXEL,
                                MAX_SHIFT * SUBPIXEL));
    }
    auto sharp = exact_vector<uint8_t>(pixels.size());
    for (auto& pixel : sharp) {
      pixel = uint8_t(random.between(0, 255));
    }
    const LumaPlane luma{{pixels.data(), width, width, height}, sharp.data()};
    const Plane u{pixels.data(), width / 2, width / 2, height / 2},
        v{pixels.data() + width * height / 4, width / 2, width / 2, height / 2};
    uint8_t a[TILE_WIDTH * NODE_STEP * 2], b[sizeof a];
    for (int ty = 0; ty < height; ty += NODE_STEP) {
      for (int tx = 0; tx < width; tx += TILE_WIDTH) {
        const size_t k = size_t(ty / NODE_STEP) * size_t(columns) + size_t(tx / NODE_STEP);
        const Nodes at{x.data() + k, y.data() + k, columns};
        WARP_PORTABLE.luma(luma, at, tx, ty, a, TILE_WIDTH);
        WARP_AVX2.luma(luma, at, tx, ty, b, TILE_WIDTH);
        REQUIRE(std::memcmp(a, b, TILE_WIDTH * NODE_STEP) == 0);
        if (ty % (2 * NODE_STEP) != 0) {
          continue;
        }
        WARP_PORTABLE.chroma(u, v, at, tx / 2, ty / 2, a, a + 64, TILE_WIDTH / 2);
        WARP_AVX2.chroma(u, v, at, tx / 2, ty / 2, b, b + 64, TILE_WIDTH / 2);
        REQUIRE(std::memcmp(a, b, 32) == 0);
        REQUIRE(std::memcmp(a + 64, b + 64, 32) == 0);
      }
    }
  }
}
#endif

TEST_CASE("corrupt assets are refused or rendered") {
  Random random(4711);
  const auto good = make_asset(random, 0);
  build_model(parse_asset(good));
  int accepted = 0;
  for (int round = 0; round < 120; round++) {
    auto bytes = good;
    if (round % 4 == 0) {
      bytes.resize(size_t(random.between(0, int(bytes.size()) - 1)));
    }
    // The prefix, the section table, and the numbers of the first section, which are the landmarks.
    for (int flips = random.between(0, 4); flips > 0 && !bytes.empty(); flips--) {
      bytes[size_t(random.between(0, int(std::min<size_t>(bytes.size(), 6200)) - 1))] =
          uint8_t(random.between(0, 255));
    }
    bytes.shrink_to_fit();
    try {
      const Model model = build_model(parse_asset(bytes));
      accepted++;
      render_extremes(random, model, 2);
    } catch (const std::runtime_error& error) {
      REQUIRE(std::string(error.what()).find("not a usable face asset: ") == 0);
    }
  }
  REQUIRE(accepted > 0);
  REQUIRE_THROWS_AS(parse_asset({}), std::runtime_error);
}

TEST_CASE("extreme articulations and poses are rendered") {
  Random random(4711);
  for (int round = 0; round < 4; round++) {
    const auto bytes = make_asset(random, 0);
    render_extremes(random, build_model(parse_asset(bytes)), 12);
  }
}

TEST_CASE("faces with displaced landmarks are refused or rendered") {
  Random random(4711);
  int rendered = 0;
  for (int round = 0; round < 40; round++) {
    const auto bytes = make_asset(random, 1 << random.between(0, 9));
    try {
      const Model model = build_model(parse_asset(bytes));
      rendered++;
      render_extremes(random, model, 3);
    } catch (const std::runtime_error&) {
      // The landmarks do not form a face.
    }
  }
  REQUIRE(rendered > 3);
}
