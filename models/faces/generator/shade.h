// Shading: what a camera ray sees of a surface, in linear RGB.
#pragma once
#include "light.h"

/** Where the camera is: 1.7 m away, as for a portrait with a long lens. */
inline constexpr Vec3 kCamera{0, .10f, 17.f};

/** Diffuse light is kept apart: under skin it spreads before it takes the skin's colour. */
struct Shaded {
  Vec3 diffuse{0, 0, 0}, albedo{0, 0, 0}, added{0, 0, 0};
  bool isSkin = false;
};

Shaded shadeSkin(const Head& head, const Studio& studio, const Vertex& at, Vec3 view, int samples,
                 Random& random);
Shaded shadeEye(const Head& head, const Studio& studio, size_t side, Vec3 p, Vec3 view, int samples,
                Random& random);
Shaded shadeCloth(const Head& head, const Studio& studio, const Vertex& at, Material material,
                  Vec3 view, int samples, Random& random);
Vec3 shadeStrand(const Studio& studio, const HairOcclusion& hair, Vec3 p, Vec3 tangent, Vec3 view,
                 Vec3 colour, float gloss, bool onSkin);
