// The face asset in memory (format: src/media/face-asset.ts). It is checked once, then read in
// place.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mouthpiece::face {

/** Landmarks of a face: vertices of MediaPipe's FaceMesh topology. */
constexpr int LANDMARKS = 468;

struct Point {
  float x, y;
};

/** A textured layer with alpha at even coordinates of the picture. Planes point into the asset. */
struct Patch {
  int x = 0, y = 0, width = 0, height = 0;
  const uint8_t* luma = nullptr;
  const uint8_t* u = nullptr;
  const uint8_t* v = nullptr;
  const uint8_t* alpha = nullptr;
  explicit operator bool() const { return luma != nullptr; }
};

struct Yuv {
  uint8_t y, u, v;
};

/**
 * A parsed asset. Planes point into the bytes given to `parse_asset`. Numbers are copies, so that a
 * later change of the bytes can only change pixels.
 */
struct Asset {
  int width = 0, height = 0;
  const uint8_t* luma = nullptr;
  const uint8_t* u = nullptr;
  const uint8_t* v = nullptr;
  const uint8_t* matte = nullptr;
  const uint8_t* shoulders = nullptr;  // of cells of 4 x 4 pixels; null in older files
  std::array<std::array<float, 3>, LANDMARKS> landmarks{};
  struct {
    Yuv cavity, gums, tongue, teeth;
  } tints{};
  struct {
    float round, open, yaw, pitch, roll, shift, brow;
  } limits{};
  Patch lid_left, lid_right;

  Point landmark(int index) const {
    return {landmarks[size_t(index)][0], landmarks[size_t(index)][1]};
  }
};

/**
 * @param bytes a whole file; must outlive the returned asset
 * @throws std::runtime_error that names the fault, unless the bytes are a complete asset of version
 * 1
 */
Asset parse_asset(std::span<const uint8_t> bytes);

}  // namespace mouthpiece::face
