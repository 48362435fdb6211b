// Where hair grows on the head. Distances in decimetres; amounts were chosen by eye.
#include "hair.h"

namespace {

/** A line through points of rising x, flat before and after. */
template <size_t N>
float lineThrough(const float (&x)[N], const float (&y)[N], float at) {
  for (size_t i = 1; i < N; i++) {
    if (at < x[i]) {
      return mix(y[i - 1], y[i], smoothstep(x[i - 1], x[i], at));
    }
  }
  return y[N - 1];
}

}  // namespace

float insideHairline(const Head& head, Vec3 p) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  const float ax = std::fabs(p.x);
  const bool isSoft = hangs(c.hair) || c.hair == Hair::kCurls;
  const Vec3 q = p + Vec3{float(c.seed), 0, 0};
  const float uneven =
      .060f * (noise(q * 5) - .5f) + .050f * (noise(q * 13) - .5f) + .03f * (noise(q * 37) - .5f);
  // Over the forehead: a slight peak, bays beside it, then down to the temples.
  const float bays = isSoft ? .015f : c.hair == Hair::kCrop ? .11f : .055f + .04f * c.age;
  const float front = .07f + .60f * (m.crown - .07f) + c.hairline +
                      bays * gaussian(ax, .36f, .13f) - .22f * smoothstep(.40f, .66f, ax) +
                      .015f * gaussian(ax, 0, .09f) + uneven;
  const float above = p.z > -.1f ? p.y - front : -1.f;
  // At the side: behind a line that runs from the temple, with a blunt point, to the sideburn.
  const float up = p.y - m.earTop;
  constexpr float kUp[] = {-.30f, -.10f, .06f, .17f, .27f, .40f, .60f},
                  kForward[] = {.035f, .085f, .115f, .20f, .245f, .25f, .46f};
  const float forward = m.earFront + lineThrough(kUp, kForward, up) + (isSoft ? .03f : 0.f);
  float side = forward + 1.1f * uneven - p.z;
  // Down to the middle of the ear, lower where a beard begins; behind the ear to the nape.
  const float low = p.z > m.earFront - .20f ? m.earTop - (c.beard > .2f ? .24f : .17f) : -.46f;
  side = std::min(side, p.y - low - uneven);
  if (ax < .3f && p.z > 0) {
    side = -1;
  }
  return std::max(above, side);
}

float scalpMask(const Head& head, Vec3 p) {
  const float inside = insideHairline(head, p) + .08f * (noise(p * 47) - .5f);
  const Character& c = head.character();
  // Some styles show how hair gets denser over the forehead.
  const bool isGradual = (c.hair == Hair::kCrop || c.hair == Hair::kLong) && p.z > .2f;
  return smoothstep(-.035f, isGradual ? .23f : .14f, inside) *
         mix(.35f, 1.f, smoothstep(.0f, isGradual ? .23f : .16f, inside));
}

float scalpShade(const Head& head, Vec3 p) {
  if (head.isOnEar(p)) {
    return 0;
  }
  const float mask = scalpMask(head, p);
  return mask * mask * mix(.55f, 1.f, smoothstep(-.05f, .35f, p.y - head.landmarks().earTop));
}

float hairLength(const Head& head, Vec3 p) {
  const Character& c = head.character();
  // Above the ear, with an uneven border.
  const float up = p.y - head.landmarks().earTop + .05f * (noise(p * 8) - .5f);
  switch (c.hair) {
    case Hair::kCrop:
      // It fades out at the sides.
      return mix(.12f, 1.f, smoothstep(.12f, .66f, up));
    case Hair::kAfro:
      return mix(mix(.07f, .26f, smoothstep(-.10f, .30f, up)), 1.f, smoothstep(.26f, .95f, up));
    case Hair::kCurls:
      return mix(1.f, .68f, smoothstep(.35f, .85f, up));
    default:
      return 1;
  }
}

bool pointOnScalp(const Head& head, Random& random, Vec3& point) {
  constexpr Vec3 kCentre{0, .22f, -.10f};
  const float z = random.between(-.75f, 1.f), a = random.between(0, 6.2831853f);
  const float s = std::sqrt(std::max(0.f, 1 - z * z));
  const Vec3 dir{s * std::cos(a), z, s * std::sin(a)};
  float t = 1.6f;
  for (int i = 0; i < 24; i++) {
    point = kCentre + dir * t;
    const float d = head.distance(point);
    t -= d;
    if (std::fabs(d) < .001f) {
      return true;
    }
  }
  return std::fabs(head.distance(point)) < .01f;
}

bool findRoot(const Head& head, Random& random, Vec3& root) {
  for (int tries = 0; tries < 400; tries++) {
    Vec3 p;
    if (!pointOnScalp(head, random, p) || head.isOnEar(p) ||
        random.uniform() > scalpMask(head, p)) {
      continue;
    }
    root = p - head.away(p) * .006f;
    return true;
  }
  return false;
}
