// Hair as strands.
#pragma once
#include "head.h"

struct Strand {
  std::vector<Vec3> points;  // from the root on
  Vec3 root, tip;            // colours, linear
  float radius;              // at the root, decimetres
  float taper;               // radius at the tip divided by that at the root
  bool onSkin;               // lashes, brows, beard, down
};

/** Grows the head's hair, brows, lashes and beard, in the world's coordinates. */
std::vector<Strand> growHair(const Head& head);
/** Adds brows, lashes and the beard, in the head's coordinates. */
void addFacialHair(const Head& head, std::vector<Strand>& out);
/** Adds the short fine hairs of the hairline, in the head's coordinates. */
void addHairline(const Head& head, std::vector<Strand>& out);
/** Adds fine hairs that leave those that were added before, in the head's coordinates. */
void addFlyaways(const Head& head, std::vector<Strand>& out);
/** Adds hair that grows as coils, in the head's coordinates. */
void addCoils(const Head& head, std::vector<Strand>& out);

/** @returns how far a point of the skin is inside the hairline, decimetres; negative outside */
float insideHairline(const Head& head, Vec3 p);
/** @returns how dense hair grows at a point of the skin, 0 to 1; p in the head's coordinates */
float scalpMask(const Head& head, Vec3 p);
/** @returns how much the roots of hair darken the skin, 0 to 1 */
float scalpShade(const Head& head, Vec3 p);
/** @returns the length of hair at a point by the longest of its style, 0 to 1 */
float hairLength(const Head& head, Vec3 p);
/** Finds a random point of the skull and the forehead. @returns whether it did */
bool pointOnScalp(const Head& head, Random& random, Vec3& point);
/** Finds a random root on the scalp, by the density there. @returns whether it did */
bool findRoot(const Head& head, Random& random, Vec3& root);
/** @returns a vector with a normal distribution in each direction */
inline Vec3 scattered(Random& random) {
  const float x = random.normal(), y = random.normal();
  return {x, y, random.normal()};
}
/** @returns how dense a beard is at a point of the face, 0 to 1 */
float beardMask(const Head& head, Vec3 p);
