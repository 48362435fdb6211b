// The eye: a ball with veins, an iris behind a bulging cornea, and a film of tears.
#include "shade.h"

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
  // The cornea focuses the key lamp on the side away from it.
  const float away = clamp01(dot(normalize(Vec3{u, v, .001f}), normalize(Vec3{-key.x, -key.y, 0})));
  iris = iris * (.85f + .9f * away * smoothstep(.3f, .75f, r) * smoothstep(1.f, .78f, r));
  iris = iris * (1 - .78f * smoothstep(.74f, 1.02f, ragged));
  return mix(iris, Vec3{.003f, .003f, .003f}, smoothstep(.40f, .35f, r));
}

}  // namespace

Shaded shadeEye(const Head& head, const Studio& studio, size_t side, Vec3 p, Vec3 view, int samples,
                Random& random) {
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
  // Dark skin is exposed longer, and its whites are darker, too.
  albedo = albedo * (std::pow(c.exposure, -1.8f) * (1 - .12f * smoothstep(1.2f, 1.6f, c.exposure)));
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
    albedo = mix(albedo, irisAt(c, u, v, studio.keyDirection()), smoothstep(1.10f, .93f, radius));
  }
  // How far below the upper lid and above the lower one.
  const float below = head.lid(true, x) - y, above = y - head.lid(false, x);
  Vec3 bulged = d;
  if (radius < 1.2f) {
    bulged = normalize(
        mix(d, normalize(d + (d - gaze * dot(d, gaze)) * 1.15f), smoothstep(1.2f, .85f, radius)));
  }
  // The wet margin of the lower lid lies on the ball: there is no dark gap between them.
  const float rim = std::max(smoothstep(.009f, .001f, above),
                             .8f * smoothstep(.016f, .004f, head.outerCorner() - x));
  albedo = mix(albedo, mix(c.skin, Vec3{.46f, .25f, .22f}, .6f), .85f * rim);
  Shaded out;
  out.albedo = albedo;
  const Lighting light = studio.light(p, d, d, bulged, view, {.9f, .9f, 1, 0}, samples, random);
  // Light spreads inside the eye, so shadows on it are soft. The lid and its lashes darken the top.
  const float under =
      smoothstep(-.012f, .090f, below) * mix(.5f, 1.f, smoothstep(-.005f, .042f, above));
  const float corners = smoothstep(.045f, .0f, x - head.innerCorner()) +
                        .7f * smoothstep(.05f, .0f, head.outerCorner() - x);
  out.diffuse = light.diffuse * (mix(.17f, .86f, under) * (1 - .45f * clamp01(corners)));
  // Margins of dark lids are darker, and so are their tears.
  const float pale = mix(.45f, 1.f, smoothstep(.05f, .26f, c.skin.y));
  const Vec3 least = Vec3{.44f, .40f, .39f} * (pale * rim * smoothstep(.0f, .03f, below));
  out.diffuse = {std::max(out.diffuse.x, least.x), std::max(out.diffuse.y, least.y),
                 std::max(out.diffuse.z, least.z)};
  // Reflections of the lamps.
  const Vec3 mirror = bulged * (2 * dot(view, bulged)) - view;
  const float fresnel = .030f + .97f * std::pow(1 - clamp01(dot(bulged, view)), 5.f);
  const bool isCornea = radius < 1.15f;
  for (const Lamp& lamp : studio.lamps()) {
    const Vec3 axis = normalize(lamp.centre);
    const float along = dot(mirror, axis);
    if (along <= 0) {
      continue;
    }
    const Vec3 on = mirror * (dot(lamp.centre - p, axis) / along) - (lamp.centre - p);
    const float a = std::fabs(dot(on, lamp.right)) / dot(lamp.right, lamp.right),
                b = std::fabs(dot(on, lamp.up)) / dot(lamp.up, lamp.up);
    const float inside = smoothstep(1.08f, .92f, a) * smoothstep(1.08f, .92f, b);
    if (inside > 0 && !studio.isBlocked(p + d * .006f, mirror, 6)) {
      out.added = out.added + lamp.radiance * (inside * fresnel * (isCornea ? 2.0f : .25f));
    }
  }
  out.added = out.added + studio.room(mirror) * (fresnel * .35f * under);
  // Tears stand along the lower lid.
  out.added = out.added + Vec3{.8f, .82f, .85f} *
                              (.13f * sq(pale) * gaussian(above, .003f, .0035f) *
                               (.6f + .4f * noise({p.x * 40, 1, 1})) * length(light.diffuse));
  return out;
}
