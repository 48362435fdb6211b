// The eye: a ball with veins, and an iris behind a bulging cornea.
#include "surface.h"

namespace {

/** Colour of the iris. @param u, v from its centre, 1 at its edge */
Vec3 irisAt(const Character& c, float u, float v, Vec3 key) {
  const float r = std::sqrt(u * u + v * v), a = std::atan2(v, u);
  const float fibres = .45f * noise({std::cos(a) * 13, std::sin(a) * 13, r * 2.2f}) +
                       .35f * noise({std::cos(a) * 34, std::sin(a) * 34, r * 4}) +
                       .20f * noise({std::cos(a) * 70, std::sin(a) * 70, r * 9});
  const float ragged = r + .10f * (noise({std::cos(a) * 9, std::sin(a) * 9, 4}) - .5f);
  Vec3 iris = c.iris * (.05f + 2.1f * fibres) * mix(1.05f, .75f, r);
  iris = iris + Vec3{c.iris.x * 1.1f + .018f, c.iris.y * .85f + .006f, c.iris.z * .45f} *
                    (.6f * gaussian(ragged, .47f, .09f));
  // The cornea focuses the light on the side away from it.
  const float away = clamp01(dot(normalize(Vec3{u, v, .001f}), normalize(Vec3{-key.x, -key.y, 0})));
  iris = iris * (.85f + .9f * away * smoothstep(.3f, .75f, r) * smoothstep(1.f, .78f, r));
  iris = iris * (1 - .78f * smoothstep(.74f, 1.02f, ragged));
  return mix(iris, Vec3{.003f, .003f, .003f}, smoothstep(.40f, .35f, r));
}

}  // namespace

Surface eyeAt(const Head& head, size_t side, Vec3 p, Vec3 view) {
  const Character& c = head.character();
  const Eye& eye = head.eyes()[side];
  const Vec3 d = normalize(p - eye.centre);
  // The eyes look into the camera, and converge slightly.
  const Vec3 gaze =
      normalize(normalize(kCamera - eye.centre) + Vec3{side == 1 ? .03f : -.03f, 0, 0});
  const Vec3 gx = normalize(cross({0, 1, 0}, gaze)), gy = cross(gaze, gx);
  const float irisRadius = head.irisRadius() / eye.radius;
  float u = dot(d, gx) / irisRadius, v = dot(d, gy) / irisRadius;
  const float radius = std::sqrt(u * u + v * v) * (dot(d, gaze) > 0 ? 1.f : 9.f);
  const float corner = clamp01(std::fabs(dot(d, gx)) - .20f);
  Vec3 albedo = mix(Vec3{.36f, .335f, .32f}, Vec3{.37f, .25f, .22f}, clamp01(corner * 1.5f));
  albedo = albedo * (1.2f * c.whites);
  const float vein = std::fabs(noise({d.x * 22 + 3 * noise(d * 8), d.y * 28, d.z * 12}) - .5f);
  albedo = mix(albedo, Vec3{.58f, .22f, .19f},
               smoothstep(.035f, .0f, vein) * clamp01(corner * 2.2f) * .45f);
  albedo = mix(albedo, albedo * Vec3{.97f, .93f, .82f}, .7f * c.age);
  // From the eye's centre, in the head's coordinates, outwards positive.
  const Vec3 origin = head.eyesAtRest()[side].centre;
  const auto component = [&](Vec3 axis) {
    return dot(p - eye.centre, normalize(head.turned(origin + axis * .1f) - eye.centre));
  };
  const float x = component({side == 1 ? 1.f : -1.f, 0, 0}), y = component({0, 1, 0});
  // The caruncle fills the inner corner.
  const float across = x - head.innerCorner();
  const float caruncle = smoothstep(.040f, .022f, across + .006f * noise(p * 90));
  albedo = mix(albedo, Vec3{.50f, .20f, .17f} * (.7f + .6f * noise(p * 120)), caruncle);
  if (radius < 1.15f) {
    const Vec3 inward = normalize(view * -1.f + d * .35f);
    const float depth = .10f * std::sqrt(std::max(0.f, 1 - sq(std::min(1.f, radius))));
    u += dot(inward, gx) * depth * .6f;
    v += dot(inward, gy) * depth * .6f;
    albedo = mix(albedo, irisAt(c, u, v, normalize(Vec3{.5f * c.lightSide, .4f, .8f})),
                 smoothstep(1.10f, .93f, radius));
  }
  // How far above the lower lid.
  const float above = y - head.lid(false, x);
  // The wet margin of the lower lid lies on the ball: there is no dark gap between them.
  const float rim = std::max(smoothstep(.009f, .001f, above),
                             .8f * smoothstep(.016f, .004f, head.outerCorner() - x));
  albedo = mix(albedo, mix(c.skin, Vec3{.46f, .25f, .22f}, .35f), .75f * rim);
  Surface out;
  out.albedo = albedo;
  out.normal = d;
  // Dark skin is exposed longer, and with it what the cornea reflects.
  out.specular = mix(.18f, .45f, smoothstep(.12f, .28f, c.whites));
  out.roughness = .04f;
  return out;
}
