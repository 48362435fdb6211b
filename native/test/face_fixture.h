// Synthetic face assets for tests: noise for pictures, plausible landmarks where the code checks
// them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/face_asset.h"
#include "test_data.h"

namespace mouthpiece::testing {

/** Width and height of the synthetic faces, pixels. */
constexpr int FACE_SIZE = 256;

/** Writes a face asset of format version 1 (src/media/face-asset.ts). */
class AssetWriter {
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
  /** @returns the whole file */
  std::vector<uint8_t> finish(int width, int height) const {
    const auto align = [](size_t at) { return (at + 63) / 64 * 64; };
    std::vector<uint8_t> out(align(64 + 32 * names_.size()));
    const auto put = [&](size_t at, uint32_t value, size_t size) {
      std::memcpy(out.data() + at, &value, size);
    };
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

/** @returns a patch section of random pixels at (x, y), of width x height pixels (all even) */
inline std::vector<uint8_t> patch(Random& random, int x, int y, int width, int height) {
  std::vector<uint8_t> out(64);
  const uint16_t place[] = {uint16_t(x), uint16_t(y), uint16_t(width), uint16_t(height)};
  std::memcpy(out.data(), place, sizeof place);
  const auto pixels = random.bytes(size_t(width) * size_t(height) * 5 / 2);
  out.insert(out.end(), pixels.begin(), pixels.end());
  return out;
}

/**
 * @param displacement each landmark is moved by up to this many pixels in x and y
 * @returns a face asset file; optional sections are present at random
 */
inline std::vector<uint8_t> make_asset(Random& random, int displacement) {
  std::vector<float> points(face::LANDMARKS * 3);
  const auto put = [&](int index, float x, float y) {
    points[size_t(index) * 3] = x + float(random.between(-displacement, displacement));
    points[size_t(index) * 3 + 1] = y + float(random.between(-displacement, displacement));
    points[size_t(index) * 3 + 2] = float(random.between(-40, 0));
  };
  for (int i = 0; i < int(face::LANDMARKS); i++) {
    put(i, 128, 140);
  }
  const int upper_inner[] = {78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308},
            lower_inner[] = {78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308};
  const int upper_outer[] = {61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291},
            lower_outer[] = {61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291};
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
  for (const int i : {246, 161, 160, 159, 158, 157, 173}) {
    put(i, float(random.between(96, 112)), 106);
  }
  for (const int i : {466, 388, 387, 386, 385, 384, 398}) {
    put(i, float(random.between(144, 160)), 106);
  }
  for (const int i : {58, 172, 136}) {
    put(i, 80, 170);
  }
  for (const int i : {288, 397, 365}) {
    put(i, 176, 170);
  }
  put(168, 128, 108);
  put(152, 128, 195);
  put(2, 128, 143);

  AssetWriter writer;
  writer.add_floats("landmarks", points);
  writer.add("neutral", random.bytes(FACE_SIZE * FACE_SIZE * 3 / 2));
  std::vector<uint8_t> matte(FACE_SIZE * FACE_SIZE);
  for (int y = 0; y < FACE_SIZE; y++) {
    for (int x = 0; x < FACE_SIZE; x++) {
      matte[size_t(y * FACE_SIZE + x)] = uint8_t(std::clamp(
          255 * (1.5f - std::hypot(float(x - 128) / 60, float(y - 140) / 80)), 0.f, 255.f));
    }
  }
  writer.add("matte", displacement > 0 && random.between(0, 2) == 0
                          ? std::vector<uint8_t>(matte.size(), 255)
                          : matte);
  if (random.between(0, 1)) {
    writer.add("shoulders", random.bytes(FACE_SIZE * FACE_SIZE / 16));
  }
  writer.add("tints", random.bytes(12));
  writer.add_floats("limits", {1, 1, .1f, .1f, .1f, 12});
  if (random.between(0, 1)) {
    writer.add("teethUpper", patch(random, 100, 150, 56, 20));  // of older files
  }
  if (random.between(0, 1)) {
    writer.add("lidLeft", patch(random, 84, 96, 40, 30));
  }
  if (random.between(0, 1)) {
    writer.add("lidRight", patch(random, 0, 0, 2, 2));
  }
  return writer.finish(FACE_SIZE, FACE_SIZE);
}

}  // namespace mouthpiece::testing
