// Clothes: necklines, collars, folds and threads. Positions in decimetres.
#pragma once
#include "head.h"

/** @returns which garment a layer is */
inline Clothes garmentOf(const Character& c, Material layer) {
  return layer == Material::kCloth2 ? c.under : c.clothes;
}
/** @returns how far a point of the body is below a garment's neckline; negative above it */
float insideNeckline(Clothes clothes, Vec3 p);
/** @returns how far a point is inside the part that is folded over: a collar, a lapel */
float insideLeaf(Clothes clothes, Vec3 p);
/** @returns how dark seams and edges are there, 0 to 1 @param button 1 on a button */
float drawnOn(Clothes clothes, bool isLeaf, Vec3 p, float& button);
/** Adds the collar or hem of a garment. @param garment its surface, before it is cut */
void addCollar(const Quads& garment, const Head& head, Material layer, Mesh& out);

/** @returns how far folds move a garment outwards at a point of the body, decimetres */
float foldsAt(const Head& head, Vec3 p);
/** @returns the height of seams, puckers and small wrinkles at a point of the body, decimetres */
float reliefAt(const Head& head, Vec3 p);
/** Threads at a point: brightness about 0, and how they tilt the normal in x and y. */
struct Thread {
  float shade, x, y;
};
Thread threadAt(const Head& head, Clothes clothes, Vec3 p, bool isRib);
