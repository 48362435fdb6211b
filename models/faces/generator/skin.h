// What the colour and the relief of skin have in common.
#pragma once
#include "hair.h"
#include "surface.h"

/** A Gaussian about a point of the face, seen from the front; the same on both sides. */
inline float spot(Vec3 p, float x, float y, float rx, float ry) {
  return std::exp(-sq((std::fabs(p.x) - x) / rx) - sq((p.y - y) / ry));
}

/** Rotates against the noise's lattice, whose layers would be visible as rings. */
inline Vec3 rotated(Vec3 q) {
  return {.64f * q.x + .77f * q.y, -.51f * q.x + .42f * q.y + .75f * q.z,
          .58f * q.x - .48f * q.y + .66f * q.z};
}

/** The same with uneven steps, so that no rows of the lattice can be seen. */
inline Vec3 scrambled(Vec3 p) {
  const Vec3 q = p * 23;
  return rotated(p) + Vec3{noise(q), noise(q + Vec3{0, 31, 0}), noise(q + Vec3{0, 0, 57})} * .018f;
}

/** @returns how near the closest of some scattered points is: 1 at one, 0 away from all */
float scattered(Vec3 p, float radius);

/** The fold of the upper lid. */
struct LidFold {
  /** 1 in the middle of the eye to 0 beyond its corners; how far the fold lies above the lid. */
  float arch, over;
};
/** @param x from the eye's centre, outwards positive */
LidFold lidFoldAt(const Head& head, float x);

/** The surface's height above the mesh, decimetres; p in the head's coordinates. */
struct Relief {
  /** Folds and wrinkles; pores and fine lines. */
  float folds = 0, fine = 0;
};
/** @param lip 0 on skin to 1 on lips */
Relief reliefOf(const Head& head, Vec3 p, float lip);
