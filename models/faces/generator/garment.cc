// Where garments are cut: necklines, the opening of a jacket, and the leaves that lie on them,
// which are the collar of a shirt, and the collar and the lapels of a jacket. By the place on the
// body, the same on both sides. Decimetres, chosen by eye.
#include "cloth.h"

namespace {

/** The lowest place of the opening of a V neck, and of a shirt whose top button is open. */
constexpr float kShirtOpen = -1.74f;

/** 1 in front, 0 behind the neck. */
float inFront(Vec3 p) {
  return smoothstep(-1.f, .2f, p.z);
}

/** Half the width of a jacket's opening. */
float openingAt(float y) {
  return .03f + .40f * clamp01((y + 2.70f) / 1.40f);
}

/** The seam between a jacket's collar and its lapel. @returns how far a point is above it */
float aboveGorge(float ax, float y) {
  return .94f * (y + 1.56f + .37f * (ax - .42f));
}

float shirtNeckline(Vec3 p) {
  const float ax = std::fabs(p.x), front = inFront(p);
  const float point = std::pow(clamp01(1 - ax / .46f), 1.15f);
  const float open = smoothstep(-.45f, .05f, p.z);
  return -1.17f - .14f * front + (kShirtOpen + 1.31f) * open * point - p.y;
}

float shirtLeaf(Vec3 p) {
  const float ax = std::fabs(p.x);
  // From the neckline obliquely down to the point, and from there over the shoulder.
  const float end = .90f * (ax - .085f - .44f * (-1.47f - p.y));
  const float low = .68f * (p.y - (-1.83f + 1.22f * std::max(0.f, ax - .30f)));
  const float behind = p.y + 1.34f, round = smoothstep(-.20f, -.50f, p.z);
  return std::min(std::min(shirtNeckline(p), mix(end, .3f, round)), mix(low, behind, round));
}

float jacketLeaf(Vec3 p) {
  const float ax = std::fabs(p.x);
  const float inner = .95f * (ax - openingAt(p.y)), gorge = aboveGorge(ax, p.y);
  const float outer = .78f * (.05f + .74f * clamp01((p.y + 2.66f) / .96f) - ax);
  const float lapel = std::min(std::min(inner, outer), -gorge);
  // The end of the collar leaves a notch above the lapel.
  const float edge = p.y < -1.47f ? .60f + .645f * (p.y + 1.625f) : .70f - .15f * (p.y + 1.47f);
  const float round = smoothstep(-.25f, -.55f, p.z);
  const float collar = std::min(mix(std::min(gorge, .85f * (edge - ax)), p.y + 1.35f, round),
                                insideNeckline(Clothes::kBlazer, p));
  return std::max(lapel, collar);
}

}  // namespace

float insideNeckline(Clothes clothes, Vec3 p) {
  // Necklines are lower in front than behind, slightly curved, or a V.
  const float ax = std::fabs(p.x), front = inFront(p);
  const float side = .10f * smoothstep(.35f, .7f, ax) - p.y;
  const float point = clamp01(1 - ax / .52f);
  switch (clothes) {
    case Clothes::kVneck:
      return -1.32f - .22f * front - .45f * front * point + side;
    case Clothes::kOverShirt:
      return -1.29f - .22f * front - .60f * front * point + side;
    case Clothes::kCardigan:
      return -1.26f - .22f * front - .62f * front * point + side;
    case Clothes::kShirt:
      return shirtNeckline(p);
    case Clothes::kBlazer: {
      const float open = p.z > -.5f ? .95f * (ax - openingAt(p.y)) : 9.f;
      return std::min(-1.19f - .10f * front - p.y, mix(9.f, open, smoothstep(-.5f, -.2f, p.z)));
    }
    case Clothes::kTee:
      return -1.385f - .29f * front + .07f * sq(ax / .45f) + side;
    default:
      return -1.40f - .24f * front + .05f * sq(ax / .45f) + side;
  }
}

float insideLeaf(Clothes clothes, Vec3 p) {
  switch (clothes) {
    case Clothes::kShirt:
      return shirtLeaf(p);
    case Clothes::kBlazer:
      return jacketLeaf(p);
    default:
      return -1;
  }
}

float drawnOn(Clothes clothes, bool isLeaf, Vec3 p, float& button) {
  const float ax = std::fabs(p.x);
  button = 0;
  if (p.z < 0) {
    return 0;
  }
  const auto buttons = [&](float from, float apart, float radius) {
    const float at = std::min(0.f, std::round((p.y - from) / apart)) * apart + from;
    return smoothstep(radius, radius - .007f, length(Vec3{p.x, p.y - at, 0}));
  };
  if (isLeaf) {
    return clothes == Clothes::kBlazer ? .5f * gaussian(aboveGorge(ax, p.y), 0, .008f) : 0.f;
  }
  if (clothes == Clothes::kShirt && p.y < kShirtOpen + .02f) {
    // The strip that closes a shirt.
    button = buttons(kShirtOpen - .16f, .38f, .030f);
    return .35f * gaussian(ax, .085f, .006f) + .5f * gaussian(p.x, .11f, .007f);
  }
  if (clothes == Clothes::kCardigan && p.y < -2.08f) {
    button = buttons(-2.20f, .46f, .045f);
    return .75f * gaussian(p.x, .105f, .010f) + .35f * gaussian(p.x, -.105f, .010f);
  }
  return 0;
}
