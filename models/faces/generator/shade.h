// Shading: from a point on a surface to the colour that the camera sees, in linear RGB.
#pragma once
#include "hair.h"

struct Lights {
  Vec3 key, fill, rim;
};
/** Directions to the lights, unit vectors. */
extern const Lights kLights;

Vec3 backdrop(const Character& c, float u, float v);

class Shader {
 public:
  Shader(const Head& head, const HairOcclusion& hair) : head_(head), hair_(hair) {}
  Vec3 surface(Vec3 p, Vec3 view, Material material) const;
  Vec3 strand(Vec3 p, Vec3 tangent, Vec3 view, Vec3 colour, bool onSkin) const;

 private:
  Vec3 skin(Vec3 p, Vec3 view) const;
  Vec3 eye(Vec3 p, Vec3 view) const;
  Vec3 cloth(Vec3 p, Vec3 view, Vec3 albedo) const;
  float shadow(Vec3 p, Vec3 toLight, float sharpness) const;
  float occlusion(Vec3 p, Vec3 n) const;

  const Head& head_;
  const HairOcclusion& hair_;
};

/** Filmic tone curve, then sRGB. @returns 0 to 1 */
Vec3 toneMap(Vec3 linear);
