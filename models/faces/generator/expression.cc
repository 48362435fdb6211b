// What muscles do to a face at rest: brows that are not drawn up in worry, and cheeks that a trace
// of a smile has raised. The mouth's corners are in head.cc, the lids in fit.cc. Decimetres.
#include "head.h"

namespace {

/** The two halves of a face never do the same. */
float shareOf(const Expression& e, bool isRight) {
  return 1 + (isRight ? e.uneven : -e.uneven);
}

}  // namespace

void relax(const Expression& expression, Vec3 eye, Quads& skin) {
  for (Vertex& v : skin.vertices) {
    Vec3 p = v.at;
    const float ax = std::fabs(p.x), front = smoothstep(.10f, .40f, p.z);
    const bool isRight = p.x > 0;
    const float brow = gaussian(p.y, eye.y + .17f, .11f) * front;
    // The inner end of the brow sinks most. The tail keeps its height.
    p.y -= expression.calm * shareOf(expression, isRight) * smoothstep(.46f, .08f, ax) * brow;
    // The apple of the cheek rises and comes forward. So does the fold beside the mouth, less.
    const float cheek = expression.cheeks * shareOf(expression, isRight) * front *
                        gaussian(ax, .36f, .17f) * gaussian(p.y, eye.y - .25f, .13f);
    p = p + Vec3{std::copysign(.35f * cheek, p.x), .8f * cheek, .9f * cheek};
    v.at = v.rest = p;
  }
}
