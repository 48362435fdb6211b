// What a path tracer needs to know of the points that the camera sees.
#pragma once
#include "head.h"

/** Where the camera is: 1.7 m away, as for a portrait with a long lens. */
inline constexpr Vec3 kCamera{0, .10f, 17.f};

/** A point of a surface: linear RGB, a unit vector in the world's coordinates. */
struct Surface {
  Vec3 albedo{0, 0, 0}, normal{0, 0, 1};
  /** Reflectance by that of a refractive index of 1.5 (1), and roughness, 0 to 1. */
  float specular = 0, roughness = 1;
};

Surface skinAt(const Head& head, const Vertex& at);
/** @param view from the point towards the camera */
Surface eyeAt(const Head& head, size_t side, Vec3 p, Vec3 view);
Surface clothAt(const Head& head, const Vertex& at, Material material, Vec3 view);
