// What the head wears: clothes and glasses, as signed distances. Sizes were chosen by eye.
#include "head.h"

float Head::glasses(Vec3 p) const {
  if (!c_.glasses) {
    return 9;
  }
  const Vec3 q{std::fabs(p.x), p.y, p.z};
  const float z = .760f - .10f * sq(q.x / .5f);
  const Vec3 w{q.x - .292f, q.y - .045f, q.z - z};
  const float rx = .205f, ry = .165f;
  // A rounded rectangle in the plane of the face, with a small round cross-section.
  const float e =
      std::pow(std::pow(std::fabs(w.x / rx), 3.2f) + std::pow(std::fabs(w.y / ry), 3.2f), 1 / 3.2f);
  const float ring = (e - 1) * .5f * (rx + ry) * .95f;
  float d = std::sqrt(sq(ring) + sq(w.z)) - .0115f;
  d = std::min(d, capsule(q, {0, .085f, .792f}, {.095f, .075f, .758f}, .0100f, .0100f));
  d = std::min(d, capsule(q, {.490f, .105f, .665f}, {.725f, .095f, -.05f}, .0105f, .0105f));
  return d;
}

float Head::torso(Vec3 p, Material* material) const {
  p.y -= kShoulderLift;
  const Vec3 q{std::fabs(p.x), p.y, p.z};
  const float w = .92f + .08f * c_.neckWidth;
  float d = ellipsoid(p, {0, -2.42f, -.34f}, {1.32f * w, .82f, .62f});
  d = smin(d, capsule(q, {.30f, -1.66f, -.34f}, {1.12f * w, -2.02f, -.38f}, .22f, .27f), .34f);
  if (c_.clothes == Clothes::kTurtleneck) {
    const float collar = std::max(capsule(p, {0, -1.05f, -.205f}, {0, -1.62f, -.29f},
                                          .415f * c_.neckWidth, .47f * c_.neckWidth),
                                  p.y + 1.10f);
    d = smin(d, smax(collar, p.y + 1.12f - .02f * p.z, .05f), .10f);
    d += .006f * std::sin(std::atan2(p.x, p.z + .25f) * 60) * smoothstep(-1.75f, -1.55f, p.y);
  } else if (c_.clothes == Clothes::kCrew) {
    // A round neckline with a ribbed band.
    const float opening = ellipsoid(p, {0, -1.475f, -.06f}, {.415f * c_.neckWidth, .25f, .46f});
    const float band = std::sqrt(sq(d) + sq(opening - .02f)) - .030f;
    d = smax(d, -opening, .02f);
    d = smin(d, band + .0025f * std::sin(std::atan2(p.x, p.z + .2f) * 120), .012f);
  } else {
    // A jacket with lapels over a blouse.
    const float edge = q.x - (.10f + .52f * (p.y + 1.95f));
    const float coat = smax(d - .045f, -(edge + .10f) * .8f, .04f);
    const float lapel = std::max(std::fabs(edge + .02f) - .105f, std::max(d - .075f, p.y + 1.50f));
    const float jacket = smin(coat, lapel, .02f);
    d = smax(d, -ellipsoid(p, {0, -1.44f, .05f}, {.30f, .34f, .42f}), .04f);
    if (d <= jacket) {
      if (material) {
        *material = Material::kCloth2;
      }
      return d;
    }
    d = jacket;
  }
  if (material) {
    *material = Material::kCloth;
  }
  return d;
}
