// Face rendering under sanitizers: the two warps agree, and no asset, however broken, and no input, however wild, does harm.
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "check.h"
#include "core/face_renderer.h"

using namespace mouthpiece::face;
using mouthpiece::testing::Random;

namespace {

constexpr int SIZE = 256;

/** Writes sections one after the other, as src/media/face-asset.ts lays them out. */
class Writer {
 public:
  void add(const char* name, const std::vector<uint8_t>& content) {
    names_.push_back(name);
    contents_.push_back(content);
  }
  void add_floats(const char* name, const std::vector<float>& values) {
    std::vector<uint8_t> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    add(name, bytes);
  }
  std::vector<uint8_t> finish(int width, int height) const {
    const auto align = [](size_t at) { return (at + 63) / 64 * 64; };
    std::vector<uint8_t> out(align(64 + 32 * names_.size()));
    const auto put = [&](size_t at, uint32_t value, size_t size) { std::memcpy(out.data() + at, &value, size); };
    for (size_t i = 0; i < names_.size(); i++) {
      const size_t at = out.size(), entry = 64 + 32 * i;
      std::memcpy(out.data() + entry, names_[i].data(), names_[i].size());
      put(entry + 16, uint32_t(at), 4);
      put(entry + 20, uint32_t(contents_[i].size()), 4);
      out.insert(out.end(), contents_[i].begin(), contents_[i].end());
      out.resize(align(out.size()));
    }
    std::memcpy(out.data(), "MPFACE", 6);
    put(6, 1, 2);
    put(8, uint32_t(out.size()), 4);
    put(12, uint32_t(width), 2);
    put(14, uint32_t(height), 2);
    put(16, uint32_t(names_.size()), 4);
    out.shrink_to_fit();
    return out;
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<uint8_t>> contents_;
};

std::vector<uint8_t> patch(Random& random, int x, int y, int width, int height) {
  std::vector<uint8_t> out(64);
  const uint16_t place[] = {uint16_t(x), uint16_t(y), uint16_t(width), uint16_t(height)};
  std::memcpy(out.data(), place, sizeof place);
  const auto pixels = random.bytes(size_t(width) * size_t(height) * 5 / 2);
  out.insert(out.end(), pixels.begin(), pixels.end());
  return out;
}

/** A face of noise whose landmarks are plausible where they matter; `wild` moves each by up to that many pixels. */
std::vector<uint8_t> make_asset(Random& random, int wild) {
  std::vector<float> points(LANDMARKS * 3);
  const auto put = [&](int index, float x, float y) {
    points[size_t(index) * 3] = x + float(random.between(-wild, wild));
    points[size_t(index) * 3 + 1] = y + float(random.between(-wild, wild));
    points[size_t(index) * 3 + 2] = float(random.between(-40, 0));
  };
  for (int i = 0; i < int(LANDMARKS); i++) put(i, 128, 140);
  const int upper_inner[] = {78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308}, lower_inner[] = {78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308};
  const int upper_outer[] = {61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291}, lower_outer[] = {61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291};
  for (int i = 0; i < 11; i++) {
    const float t = float(i) / 5 - 1, bend = 1 - t * t;
    put(upper_inner[i], 128 + 20 * t, 160);
    put(lower_inner[i], 128 + 20 * t, 160);
    put(upper_outer[i], 128 + 22 * t, 160 - 6 * bend);
    put(lower_outer[i], 128 + 22 * t, 160 + 7 * bend);
  }
  put(33, 94, 110);
  put(133, 114, 110);
  put(362, 142, 110);
  put(263, 162, 110);
  for (const int i : {246, 161, 160, 159, 158, 157, 173}) put(i, float(random.between(96, 112)), 106);
  for (const int i : {466, 388, 387, 386, 385, 384, 398}) put(i, float(random.between(144, 160)), 106);
  for (const int i : {58, 172, 136}) put(i, 80, 170);
  for (const int i : {288, 397, 365}) put(i, 176, 170);
  put(168, 128, 108);
  put(152, 128, 195);
  put(2, 128, 143);

  Writer writer;
  writer.add_floats("landmarks", points);
  writer.add("neutral", random.bytes(SIZE * SIZE * 3 / 2));
  std::vector<uint8_t> matte(SIZE * SIZE);
  for (int y = 0; y < SIZE; y++) {
    for (int x = 0; x < SIZE; x++) matte[size_t(y * SIZE + x)] = uint8_t(std::clamp(255 * (1.5f - std::hypot(float(x - 128) / 60, float(y - 140) / 80)), 0.f, 255.f));
  }
  writer.add("matte", wild > 0 && random.between(0, 2) == 0 ? std::vector<uint8_t>(matte.size(), 255) : matte);
  writer.add("tints", random.bytes(12));
  writer.add_floats("limits", {1, 1, .1f, .1f, .1f, 12});
  if (random.between(0, 1)) writer.add("teethUpper", patch(random, 100, 150, 56, 20));
  if (random.between(0, 1)) writer.add("lidLeft", patch(random, 84, 96, 40, 30));
  if (random.between(0, 1)) writer.add("lidRight", patch(random, 0, 0, 2, 2));
  return writer.finish(SIZE, SIZE);
}

float wild_number(Random& random) {
  switch (random.between(0, 12)) {
    case 0: return std::numeric_limits<float>::quiet_NaN();
    case 1: return std::numeric_limits<float>::infinity();
    case 2: return -1e30f;
    default: return float(random.between(-1500, 1500)) / 1000;
  }
}

template <class Record>
Record wild_record(Random& random) {
  Record record;
  float values[Record::SIZE];
  for (float& value : values) value = wild_number(random);
  std::memcpy(&record, values, sizeof record);
  return record;
}

void draw_wildly(Random& random, const Model& model, int frames) {
  Renderer renderer(model), portable(model, WARP_PORTABLE);
  auto picture = mouthpiece::testing::exactly<uint8_t>(renderer.picture_bytes()), other = picture;
  auto dirty = mouthpiece::testing::exactly<uint8_t>(renderer.macroblocks()), other_dirty = dirty;
  for (int frame = 0; frame < frames; frame++) {
    const auto articulation = wild_record<Articulation>(random);
    const auto pose = wild_record<Pose>(random);
    const int emotion = random.between(0, EMOTIONS - 1);
    renderer.set_emotion(emotion, 1);
    portable.set_emotion(emotion, 1);
    renderer.render(articulation, pose, picture, dirty);
    portable.render(articulation, pose, other, other_dirty);
    CHECK(picture == other);
    CHECK(dirty == other_dirty);
  }
}

/** Random displacement fields from gentle to violent, everywhere in planes of awkward size. */
void compare_warps(Random& random) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) return;
  for (int round = 0; round < 40; round++) {
    const int width = 32 + 16 * random.between(0, 5), height = 32 + 16 * random.between(0, 5), columns = width / NODE_STEP + 1, rows = height / NODE_STEP + 1;
    const auto bytes = random.bytes(size_t(width) * size_t(height));
    auto pixels = mouthpiece::testing::exactly<uint8_t>(bytes.size());
    pixels = bytes;
    const size_t nodes = size_t(columns) * size_t(rows);
    std::vector<int16_t> x(nodes + 8), y(nodes + 8);
    const int strength = 1 << random.between(0, 12), wobble = 1 << random.between(0, 12), bias = random.between(-1000, 1000);
    for (size_t k = 0; k < nodes; k++) {
      x[k] = int16_t(std::clamp(bias + random.between(-strength, strength), -MAX_SHIFT * SUBPIXEL, MAX_SHIFT * SUBPIXEL));
      y[k] = int16_t(std::clamp(bias / 2 + random.between(-wobble, wobble), -MAX_SHIFT * SUBPIXEL, MAX_SHIFT * SUBPIXEL));
    }
    auto sharp = mouthpiece::testing::exactly<uint8_t>(pixels.size());
    for (auto& pixel : sharp) pixel = uint8_t(random.between(0, 255));
    const LumaPlane luma{{pixels.data(), width, width, height}, sharp.data()};
    const Plane u{pixels.data(), width / 2, width / 2, height / 2}, v{pixels.data() + width * height / 4, width / 2, width / 2, height / 2};
    uint8_t a[TILE_WIDTH * NODE_STEP * 2], b[sizeof a];
    for (int ty = 0; ty < height; ty += NODE_STEP) {
      for (int tx = 0; tx < width; tx += TILE_WIDTH) {
        const size_t k = size_t(ty / NODE_STEP) * size_t(columns) + size_t(tx / NODE_STEP);
        const Nodes at{x.data() + k, y.data() + k, columns};
        WARP_PORTABLE.luma(luma, at, tx, ty, a, TILE_WIDTH);
        WARP_AVX2.luma(luma, at, tx, ty, b, TILE_WIDTH);
        CHECK(std::memcmp(a, b, TILE_WIDTH * NODE_STEP) == 0);
        if (ty % (2 * NODE_STEP) != 0) continue;
        WARP_PORTABLE.chroma(u, v, at, tx / 2, ty / 2, a, a + 64, TILE_WIDTH / 2);
        WARP_AVX2.chroma(u, v, at, tx / 2, ty / 2, b, b + 64, TILE_WIDTH / 2);
        CHECK(std::memcmp(a, b, 32) == 0 && std::memcmp(a + 64, b + 64, 32) == 0);
      }
    }
  }
#else
  (void)random;
#endif
}

void refuse_broken(Random& random) {
  const auto good = make_asset(random, 0);
  build_model(parse_asset(good));
  int accepted = 0;
  for (int round = 0; round < 120; round++) {
    auto bytes = good;
    if (round % 4 == 0) bytes.resize(size_t(random.between(0, int(bytes.size()) - 1)));
    // The prefix, the section table, and the numbers of the first section, which are the landmarks.
    for (int flips = random.between(0, 4); flips > 0 && !bytes.empty(); flips--) bytes[size_t(random.between(0, int(std::min<size_t>(bytes.size(), 6200)) - 1))] = uint8_t(random.between(0, 255));
    bytes.shrink_to_fit();
    try {
      const Model model = build_model(parse_asset(bytes));
      accepted++;
      draw_wildly(random, model, 2);
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()).find("not a usable face asset: ") == 0);
    }
  }
  CHECK(accepted > 0);
  CHECK_THROWS(std::runtime_error, parse_asset({}));
}

}  // namespace

int main() {
  Random random(4711);
  compare_warps(random);
  for (int round = 0; round < 4; round++) {
    const auto bytes = make_asset(random, 0);
    draw_wildly(random, build_model(parse_asset(bytes)), 12);
  }
  int drawn = 0;
  for (int round = 0; round < 40; round++) {
    const auto bytes = make_asset(random, 1 << random.between(0, 9));
    try {
      const Model model = build_model(parse_asset(bytes));
      drawn++;
      draw_wildly(random, model, 3);
    } catch (const std::runtime_error&) {
      // Landmarks that make no face may be refused.
    }
  }
  CHECK(drawn > 3);
  refuse_broken(random);
  return 0;
}
