// Parses the face asset. The file is untrusted: each offset, size and number is checked before use.
#include "core/face_asset.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace mouthpiece::face {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the asset is little endian and read in place");

constexpr size_t PREFIX = 64, ENTRY = 32, NAME = 16, ALIGNMENT = 64, MAX_SECTIONS = 32,
                 MAX_BYTES = 64u << 20;

void demand(bool condition, const std::string& what) {
  if (!condition) {
    throw std::runtime_error("not a usable face asset: " + what);
  }
}

template <class Number>
Number read(std::span<const uint8_t> bytes, size_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

class Sections {
 public:
  explicit Sections(std::span<const uint8_t> bytes)
      : bytes_(bytes), count_(read<uint32_t>(bytes, 16)) {
    demand(count_ <= MAX_SECTIONS && PREFIX + count_ * ENTRY <= bytes.size(),
           "its table of sections is broken");
    // Unused sections are checked too, because the reader in TypeScript refuses the same files.
    for (size_t index = 0; index < count_; index++) {
      const auto [offset, length] = place(index);
      const bool inside =
          offset % ALIGNMENT == 0 && offset <= bytes_.size() && length <= bytes_.size() - offset;
      demand(inside && length > 0, "a section lies outside the file");
      for (size_t other = 0; other < index; other++) {
        demand(name(other) != name(index), "two sections have one name");
      }
    }
  }

  /** @returns an empty span when there is no section with that name */
  std::span<const uint8_t> find(std::string_view name) const {
    for (size_t index = 0; index < count_; index++) {
      if (this->name(index) != name) {
        continue;
      }
      const auto [offset, length] = place(index);
      return bytes_.subspan(offset, length);
    }
    return {};
  }

  std::span<const uint8_t> need(std::string_view name, size_t length) const {
    const auto found = find(name);
    demand(found.size() == length,
           "section \"" + std::string(name) + "\" is missing or has the wrong length");
    return found;
  }

  float number(std::string_view name, size_t length, size_t index, float low, float high) const {
    const float value = read<float>(need(name, length * sizeof(float)), index * sizeof(float));
    demand(value >= low && value <= high,
           "a number of section \"" + std::string(name) + "\" is out of range");
    return value;
  }

  Patch patch(std::string_view name, int picture_width, int picture_height) const {
    const auto found = find(name);
    if (found.empty()) {
      return {};
    }
    demand(found.size() >= ALIGNMENT, "a patch is cut short");
    Patch patch;
    patch.x = read<uint16_t>(found, 0);
    patch.y = read<uint16_t>(found, 2);
    patch.width = read<uint16_t>(found, 4);
    patch.height = read<uint16_t>(found, 6);
    const bool even = ((patch.x | patch.y | patch.width | patch.height) & 1) == 0;
    demand(even && patch.width > 0 && patch.height > 0 && patch.x + patch.width <= picture_width &&
               patch.y + patch.height <= picture_height,
           "a patch lies outside the picture");
    const size_t pixels = size_t(patch.width) * size_t(patch.height);
    demand(found.size() == ALIGNMENT + pixels * 5 / 2, "a patch has the wrong length");
    patch.luma = found.data() + ALIGNMENT;
    patch.u = patch.luma + pixels;
    patch.v = patch.u + pixels / 4;
    patch.alpha = patch.v + pixels / 4;
    return patch;
  }

 private:
  std::string_view name(size_t index) const {
    const char* text = reinterpret_cast<const char*>(bytes_.data() + PREFIX + index * ENTRY);
    return {text, strnlen(text, NAME)};
  }
  std::pair<size_t, size_t> place(size_t index) const {
    const size_t entry = PREFIX + index * ENTRY;
    return {read<uint32_t>(bytes_, entry + 16), read<uint32_t>(bytes_, entry + 20)};
  }

  std::span<const uint8_t> bytes_;
  size_t count_;
};

}  // namespace

Asset parse_asset(std::span<const uint8_t> bytes) {
  demand(bytes.size() >= PREFIX && bytes.size() <= MAX_BYTES, "wrong size");
  demand(std::memcmp(bytes.data(), "MPFACE", 6) == 0, "it does not begin with MPFACE");
  const unsigned version = read<uint16_t>(bytes, 6);
  demand(version == 1, "version " + std::to_string(version) +
                           ", and this server reads version 1: create the face again");
  demand(read<uint32_t>(bytes, 8) == bytes.size(), "it is cut short");

  Asset asset;
  asset.width = read<uint16_t>(bytes, 12);
  asset.height = read<uint16_t>(bytes, 14);
  const auto possible = [](int size) { return size % 16 == 0 && size >= 128 && size <= 1280; };
  demand(possible(asset.width) && possible(asset.height), "impossible picture size");
  const size_t pixels = size_t(asset.width) * size_t(asset.height);

  const Sections sections(bytes);
  asset.luma = sections.need("neutral", pixels * 3 / 2).data();
  asset.u = asset.luma + pixels;
  asset.v = asset.u + pixels / 4;
  asset.matte = sections.need("matte", pixels).data();
  if (!sections.find("shoulders").empty()) {
    asset.shoulders = sections.need("shoulders", pixels / 16).data();
  }

  // Landmarks may lie outside the picture, but only so far that all derived values stay bounded.
  const float extent = 2 * float(asset.width + asset.height);
  for (size_t point = 0; point < LANDMARKS; point++) {
    for (size_t axis = 0; axis < 3; axis++) {
      asset.landmarks[point][axis] =
          sections.number("landmarks", LANDMARKS * 3, point * 3 + axis, -extent, extent);
    }
  }
  const auto tints = sections.need("tints", 12);
  const auto tint = [&](size_t index) {
    return Yuv{tints[index * 3], tints[index * 3 + 1], tints[index * 3 + 2]};
  };
  asset.tints = {tint(0), tint(1), tint(2), tint(3)};
  // Older files have no limit for the brows.
  const size_t limits = sections.find("limits").size() == 6 * sizeof(float) ? 6 : 7;
  const auto limit = [&](size_t index, float low, float high) {
    return sections.number("limits", limits, index, low, high + 1e-6f);
  };
  asset.limits = {limit(0, 0, 1),
                  limit(1, .3f - 1e-6f, 1.5f),
                  limit(2, 0, .1f),
                  limit(3, 0, .1f),
                  limit(4, 0, .1f),
                  limit(5, 0, 12),
                  limits == 7 ? limit(6, 0, 1) : 1};
  asset.lid_left = sections.patch("lidLeft", asset.width, asset.height);
  asset.lid_right = sections.patch("lidRight", asset.width, asset.height);
  return asset;
}

}  // namespace mouthpiece::face
