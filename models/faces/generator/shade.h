// Light and surfaces: from a point that a ray met to the colour that the camera sees (linear RGB).
#pragma once
#include "hair.h"

struct Lights {
  V3 key, fill, rim;
};
extern const Lights kLights;

V3 backdrop(const Character& c, float u, float v);

class Shader {
 public:
  Shader(const Head& head, const HairShade& hair) : head_(head), hair_(hair) {}
  V3 surface(V3 p, V3 view, Material material) const;
  V3 strand(V3 p, V3 tangent, V3 view, V3 colour, bool onSkin) const;

 private:
  V3 skin(V3 p, V3 view) const;
  V3 eye(V3 p, V3 view) const;
  V3 cloth(V3 p, V3 view, V3 albedo) const;
  float shadow(V3 p, V3 toLight, float sharpness) const;
  float occlusion(V3 p, V3 n) const;

  const Head& head_;
  const HairShade& hair_;
};

/** Filmic tone curve, then sRGB; 0..1. */
V3 develop(V3 linear);
