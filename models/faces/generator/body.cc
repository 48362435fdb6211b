// The pose of the body: arms hang, and shoulders have the width of a person's. The meshes of
// MakeHuman hold the arms away from the body, so that shoulders look inflated in a portrait.
// Positions in decimetres, measured on the meshes.
#include "head.h"

namespace {

/**
 * Turn of the arms, radians: their axis is .56 from the vertical in the meshes. The rest makes the
 * shoulders slope.
 */
constexpr float kArmTurn = .72f;
/** Nothing above this height moves, so that head and neck stay where they are. */
constexpr float kNeck = -1.35f;
/** The armpit of an average body, and the width of the band that bends, on each side of a line
 * from there to the top of the shoulder. */
constexpr float kArmpit = -2.85f, kBand = .42f;
/** Where the width of the shoulders is measured. */
constexpr float kLowest = -2.5f;

/** @returns the largest x between two heights */
float widest(const Quads& skin, float low, float high) {
  float x = 0;
  for (const Vertex& v : skin.vertices) {
    if (v.at.y > low && v.at.y < high) {
      x = std::max(x, v.at.x);
    }
  }
  return x;
}

}  // namespace

void poseBody(float shoulders, Quads& skin) {
  // The point of the shoulder is above the joint and outside it.
  const float tip = widest(skin, -2.05f, -1.5f);
  const Vec3 joint{tip - .46f, -2.1f, 0};
  for (Vertex& v : skin.vertices) {
    const float ax = std::fabs(v.at.x);
    if (v.at.y > kNeck || ax < .5f) {
      continue;
    }
    // A line from the armpit to the shoulder, and straight down from the armpit.
    const float line = joint.x + .20f * smoothstep(kArmpit, -1.7f, v.at.y);
    const float angle = kArmTurn * smoothstep(-kBand, kBand, ax - line);
    const float x = ax - joint.x, y = v.at.y - joint.y, c = std::cos(angle), s = std::sin(angle);
    v.at.x = std::copysign(joint.x + c * x + s * y, v.at.x);
    v.at.y = joint.y - s * x + c * y;
  }
  const float narrower = shoulders / widest(skin, kLowest, kNeck);
  for (Vertex& v : skin.vertices) {
    const float body =
        smoothstep(kNeck, -1.6f, v.at.y) * smoothstep(.40f, 1.25f, std::fabs(v.at.x));
    v.at.x *= mix(1.f, narrower, body);
    v.rest = v.at;
  }
}
