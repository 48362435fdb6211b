// Single fine hairs that leave the others anywhere on their way, and soften the outline of hair.
// Distances in decimetres; amounts were chosen by eye.
#include "hair.h"

namespace {

constexpr int kPoints = 12;

/** @returns how long the longest are */
float longestOf(const Character& c) {
  switch (c.hair) {
    case Hair::kLong:
      return .62f;
    case Hair::kBob:
    case Hair::kPartedBob:
      return .48f;
    case Hair::kCurls:
      return .40f;
    case Hair::kCrop:
      return .06f;
    default:
      return .12f;
  }
}

/** @returns whether a hair would be seen before the face */
bool crossesFace(const std::vector<Vec3>& points) {
  return std::any_of(points.begin(), points.end(), [](Vec3 p) {
    return p.z > .05f && p.y < .52f && p.y > -1.f && std::fabs(p.x) < .50f;
  });
}

}  // namespace

void addFlyaways(const Head& head, std::vector<Strand>& out) {
  const Character& c = head.character();
  const size_t grown = out.size();
  const bool isCurled = c.hair == Hair::kCurls || c.hair == Hair::kAfro;
  const float longest = longestOf(c), bent = isCurled ? .75f : .22f;
  Random random(c.seed * 13 + 5);
  for (int i = 0; i < 9000 && grown > 0; i++) {
    const Strand& from = out[size_t(random.uniform() * float(grown - 1))];
    if (from.onSkin || from.points.size() < 4) {
      continue;
    }
    const size_t at = 1 + size_t(random.uniform() * float(from.points.size() - 2));
    Vec3 p = from.points[at];
    const Vec3 along = normalize(p - from.points[at - 1]),
               away = normalize(p - Vec3{0, std::min(p.y, .15f), -.15f});
    Vec3 dir = normalize(along + away * random.between(.05f, .75f) + scattered(random) * .22f);
    // Most are short; each bends one way, and falls a little.
    const float length = longest * mix(.15f, 1.f, sq(random.uniform()));
    const Vec3 bend = scattered(random) * bent;
    Strand s;
    for (int k = 0; k < kPoints; k++) {
      s.points.push_back(p);
      p = p + dir * (length / kPoints);
      dir = normalize(dir + (bend + Vec3{0, -.9f * length, 0}) * (1.f / kPoints) +
                      scattered(random) * (.12f * bent));
    }
    if (crossesFace(s.points)) {
      continue;
    }
    s.root = from.root, s.tip = from.tip;
    s.radius = .0006f * random.between(.5f, 1.1f);
    s.taper = .15f;
    s.onSkin = false;
    out.push_back(std::move(s));
  }
}
