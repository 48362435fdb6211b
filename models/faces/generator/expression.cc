// What muscles do to a face at rest: brows that are not drawn up in worry, and a closed smile,
// which moves corners, cheeks and the skin below the eyes. The line between the lips is in head.cc,
// the lids in fit.cc. Decimetres.
#include "head.h"

namespace {

/** The two halves of a face never do the same. */
float shareOf(const Expression& e, bool isRight) {
  return 1 + (isRight ? e.uneven : -e.uneven);
}

/** The corners of a smile go out, up and back; what is above them gathers, and comes forward. */
Vec3 smiled(Vec3 p, Vec3 eye, Vec3 corner, float amount) {
  const float ax = std::fabs(p.x), front = smoothstep(.10f, .40f, p.z);
  const float near = amount * front * gaussian(ax, corner.x, .12f) * gaussian(p.y, corner.y, .12f);
  // Past the fold from the nose, the cheek.
  const float fold =
      amount * front * gaussian(ax, corner.x + .10f, .085f) * gaussian(p.y, corner.y + .17f, .12f);
  // The muscle round the eye makes a roll below the lashes.
  const float roll =
      amount * front * gaussian(ax, eye.x, .13f) * gaussian(p.y, eye.y - .10f, .034f);
  return p + Vec3{std::copysign(.015f * near + .012f * fold, p.x), .009f * near + .014f * fold,
                  -.008f * near + .012f * fold + .004f * roll};
}

}  // namespace

void relax(const Expression& expression, Vec3 eye, Quads& skin) {
  Vec3 low{9, 9, 9}, high{-9, -9, -9};
  for (const Vertex& v : skin.vertices) {
    if (v.masks[0] > .5f && v.at.z > .3f) {
      low = {std::min(low.x, v.at.x), std::min(low.y, v.at.y), 0};
      high = {std::max(high.x, v.at.x), std::max(high.y, v.at.y), 0};
    }
  }
  const Vec3 corner{.5f * (high.x - low.x), .5f * (high.y + low.y), 0};
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
    p = smiled(p, eye, corner, expression.smile * shareOf(expression, isRight));
    v.at = v.rest = p;
  }
}
