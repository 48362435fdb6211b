// Hair as strands, and how they shadow the head.
#pragma once
#include <array>
#include <vector>

#include "head.h"

struct Strand {
  std::vector<Vec3> points;  // from the root on, in world coordinates
  Vec3 root, tip;            // colours, linear
  float radius;              // at the root, world units
  float taper;               // radius at the tip divided by that at the root
  bool onSkin;  // lashes, brows, beard: close to the skin, so the depth test has a tolerance
};

/** Grows the head's hair, brows, lashes and beard. */
std::vector<Strand> growHair(const Head& head);
/** Adds brows, lashes and the beard. */
void addFacialHair(const Head& head, std::vector<Strand>& out);
/** @returns 0 outside the scalp to 1 inside the hairline; p in the head's coordinates */
float scalpMask(const Character& c, Vec3 p);

/** How much light reaches a point through the hair. */
class HairOcclusion {
 public:
  HairOcclusion(const std::vector<Strand>& strands, Vec3 toLight);
  /** @returns 1 without hair in the way, towards 0 below hair */
  float light(Vec3 p) const { return sample(light_, p); }
  /** The same for ambient light. */
  float ambient(Vec3 p) const { return sample(ambient_, p); }

 private:
  static constexpr int kSize = 112;
  float sample(const std::vector<float>& grid, Vec3 p) const;
  std::vector<float> light_, ambient_;
};
