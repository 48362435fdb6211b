// Hair as strands, and how they shadow the head.
#pragma once
#include "head.h"

struct Strand {
  std::vector<Vec3> points;  // from the root on
  Vec3 root, tip;            // colours, linear
  float radius;              // at the root, decimetres
  float taper;               // radius at the tip divided by that at the root
  float gloss = 1;           // of its highlights
  bool onSkin;  // lashes, brows, beard: close to the skin, so the depth test has a tolerance
};

/** Grows the head's hair, brows, lashes and beard, in the world's coordinates. */
std::vector<Strand> growHair(const Head& head);
/** Adds brows, lashes and the beard, in the head's coordinates. */
void addFacialHair(const Head& head, std::vector<Strand>& out);
/** @returns 0 outside the scalp to 1 inside the hairline; p in the head's coordinates */
float scalpMask(const Character& c, Vec3 p);
/** @returns how dense a beard is at a point of the face, 0 to 1 */
float beardMask(const Head& head, Vec3 p);

/** How much light reaches a point through the hair. */
class HairOcclusion {
 public:
  HairOcclusion(const std::vector<Strand>& strands, Vec3 toLight);
  /** @returns 1 without hair in the way, towards 0 below hair */
  float light(Vec3 p) const { return sample(light_, p); }
  /** The same for ambient light. */
  float ambient(Vec3 p) const { return sample(ambient_, p); }

 private:
  static constexpr int kSize = 144;
  float sample(const std::vector<float>& grid, Vec3 p) const;
  std::vector<float> light_, ambient_;
};
