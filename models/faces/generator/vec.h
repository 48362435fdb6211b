// Vectors, noise and random numbers for the portrait generator.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

struct Vec3 {
  float x, y, z;
};

inline Vec3 operator+(Vec3 a, Vec3 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
inline Vec3 operator-(Vec3 a, Vec3 b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
inline Vec3 operator-(Vec3 a) {
  return {-a.x, -a.y, -a.z};
}
inline Vec3 operator*(Vec3 a, float s) {
  return {a.x * s, a.y * s, a.z * s};
}
inline Vec3 operator*(Vec3 a, Vec3 b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z};
}
inline float dot(Vec3 a, Vec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
inline Vec3 cross(Vec3 a, Vec3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline float length(Vec3 a) {
  return std::sqrt(dot(a, a));
}
inline Vec3 normalize(Vec3 a) {
  return a * (1.f / std::max(1e-9f, length(a)));
}
inline float clamp01(float x) {
  return std::min(std::max(x, 0.f), 1.f);
}
inline float clampTo(float x, float lo, float hi) {
  return std::min(std::max(x, lo), hi);
}
inline float mix(float a, float b, float t) {
  return a + (b - a) * t;
}
inline Vec3 mix(Vec3 a, Vec3 b, float t) {
  return a + (b - a) * t;
}
inline float smoothstep(float from, float to, float x) {
  float t = clamp01((x - from) / (to - from));
  return t * t * (3 - 2 * t);
}
inline float sq(float x) {
  return x * x;
}
/** A Gaussian of height 1 and width `w`, centred on `c`. */
inline float gaussian(float x, float c, float w) {
  return std::exp(-sq((x - c) / w));
}

inline float hash(int x, int y, int z) {
  uint32_t n = uint32_t(x) * 374761393u + uint32_t(y) * 668265263u + uint32_t(z) * 2147483647u;
  n = (n ^ (n >> 13)) * 1274126177u;
  return float((n ^ (n >> 16)) & 0xffffff) / 16777215.f;
}

/** Value noise, 0..1. */
inline float noise(Vec3 p) {
  const int X = int(std::floor(p.x)), Y = int(std::floor(p.y)), Z = int(std::floor(p.z));
  float x = p.x - X, y = p.y - Y, z = p.z - Z;
  x = x * x * (3 - 2 * x);
  y = y * y * (3 - 2 * y);
  z = z * z * (3 - 2 * z);
  const auto row = [&](int b, int c) {
    return mix(hash(X, Y + b, Z + c), hash(X + 1, Y + b, Z + c), x);
  };
  return mix(mix(row(0, 0), row(1, 0), y), mix(row(0, 1), row(1, 1), y), z);
}

/** Three octaves, about 0..0.9. */
inline float fbm(Vec3 p) {
  return .5f * noise(p) + .25f * noise(p * 2.03f) + .125f * noise(p * 4.1f);
}

/** xorshift32 (G. Marsaglia 2003). The same seed gives the same hair every time. */
struct Random {
  uint32_t state;
  explicit Random(uint32_t seed) : state(seed * 2654435761u | 1u) {
    for (int i = 0; i < 8; i++) {
      next();
    }
  }
  uint32_t next() {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
  }
  float uniform() { return float(next() >> 8) / 16777216.f; }
  float between(float a, float b) { return a + (b - a) * uniform(); }
  float normal() { return (uniform() + uniform() + uniform() + uniform() - 2.f) * 1.73f; }
};
