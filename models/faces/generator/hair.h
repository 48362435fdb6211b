// Hair as strands: grown on the head, lit through a grid of its own density, drawn as soft lines.
#pragma once
#include <array>
#include <vector>

#include "head.h"

struct Strand {
  std::vector<Vec3> points;  // root first, in the picture's space
  Vec3 root, tip;            // colours, linear
  float radius;              // at the root, units of the head
  float taper;               // radius at the tip over that at the root
  bool
      onSkin;  // lashes, brows, beard: nearly in the skin, so depth is compared with some tolerance
};

std::vector<Strand> growHair(const Head& head);
/** 0 off the scalp .. 1 well inside the hairline; p in the head's space. */
float scalpMask(const Character& c, Vec3 p);

/** How much light reaches a point through the hair. */
class HairOcclusion {
 public:
  HairOcclusion(const std::vector<Strand>& strands, Vec3 toLight);
  /** 1 in the open, towards 0 under hair. */
  float light(Vec3 p) const { return sample(light_, p); }
  /** The same for light from all round. */
  float ambient(Vec3 p) const { return sample(ambient_, p); }

 private:
  static constexpr int kSize = 112;
  float sample(const std::vector<float>& grid, Vec3 p) const;
  std::vector<float> light_, ambient_;
};
