// Light by random rays towards lamps and into the room. Amounts were chosen by eye.
#include "light.h"

namespace {

constexpr float kPi = 3.14159265f;

Lamp lampAt(Vec3 centre, float width, float height, Vec3 radiance) {
  const Vec3 forward = normalize(centre), right = normalize(cross({0, 1, 0}, forward)),
             up = cross(forward, right);
  return {centre, right * (width * .5f), up * (height * .5f), radiance};
}

Vec3 keyAt(const Character& c) {
  return {5.0f * c.lightSide, 4.1f, 8.2f};
}

float ggx(float nh, float rough) {
  const float a = sq(rough * rough), d = sq(nh) * (a - 1) + 1;
  return a / (kPi * d * d);
}

/** Smith's masking, in E. Heitz's form, with the denominator of the reflection. */
float visibility(float nl, float nv, float rough) {
  const float a = sq(rough * rough);
  return .5f / std::max(1e-4f, nl * std::sqrt(nv * nv * (1 - a) + a) +
                                   nv * std::sqrt(nl * nl * (1 - a) + a));
}

float specularOf(Vec3 n, Vec3 l, Vec3 view, const Gloss& g) {
  const Vec3 h = normalize(l + view);
  const float nl = clamp01(dot(n, l)), nv = std::max(.05f, dot(n, view)), nh = clamp01(dot(n, h));
  const float fresnel = .028f + .972f * std::pow(1 - clamp01(dot(h, view)), 5.f);
  return g.amount * fresnel * nl *
         (g.share * ggx(nh, g.rough1) * visibility(nl, nv, g.rough1) +
          (1 - g.share) * ggx(nh, g.rough2) * visibility(nl, nv, g.rough2));
}

}  // namespace

Vec3 keyDirectionOf(const Character& character) {
  return normalize(keyAt(character));
}

Studio::Studio(const Head& head, const HairOcclusion& hair) : head_(head), hair_(hair) {
  // A soft box 0.5 m wide, a reflector on the other side, and a strip behind the shoulder.
  const float s = head.character().lightSide;
  lamps_[0] = lampAt(keyAt(head.character()), 4.8f, 4.8f, Vec3{1.f, .935f, .86f} * 20.4f);
  lamps_[1] = lampAt({-7.5f * s, -.5f, 7.f}, 7.f, 8.f, Vec3{.92f, .95f, 1.f} * .65f);
  lamps_[2] = lampAt({-5.f * s, 4.2f, -5.5f}, 2.f, 6.f, Vec3{.97f, .98f, 1.f} * 11.f);
  for (Lamp& lamp : lamps_) {
    lamp.radiance = lamp.radiance * head.character().exposure;
  }
}

bool Studio::isBlocked(Vec3 p, Vec3 direction, float limit) const {
  for (const Eye& eye : head_.eyes()) {
    const Vec3 w = p - eye.centre;
    const float b = dot(w, direction), c = dot(w, w) - sq(eye.radius), root = b * b - c;
    if (c > .012f && root > 0 && b < 0) {
      return true;
    }
  }
  return head_.scene().isBlocked(p, direction, limit);
}

Vec3 Studio::room(Vec3 d) const {
  const float up = .5f + .5f * d.y;
  return mix(Vec3{.088f, .075f, .069f}, Vec3{.205f, .212f, .225f}, up * up) *
         (.75f + .35f * clamp01(d.z));
}

Lighting Studio::light(Vec3 p, Vec3 geometric, Vec3 n, Vec3 fine, Vec3 view, const Gloss& gloss,
                       int samples, Random& random) const {
  Lighting out;
  const Vec3 start = p + geometric * .004f;
  const Vec3 over = p + n * .02f;
  const float through = hair_.light(over), around = hair_.ambient(over);
  // Hair that hangs beside the face stands between it and the lamp behind.
  const float behind = hair_.ambient(over + rimDirection() * .25f);
  for (size_t k = 0; k < lamps_.size(); k++) {
    const Lamp& lamp = lamps_[k];
    const int count = k == 0 ? samples : std::max(1, samples / 2);
    const float area = 4 * length(lamp.right) * length(lamp.up);
    const Vec3 axis = normalize(lamp.centre);
    for (int i = 0; i < count; i++) {
      const float a = (float(i) + random.uniform()) / float(count) * 2 - 1,
                  b = random.uniform() * 2 - 1;
      const Vec3 to = lamp.centre + lamp.right * a + lamp.up * b - start;
      const float far = length(to);
      const Vec3 l = to * (1 / far);
      const float cosine = dot(n, l), facing = dot(axis, l);
      // Skin scatters light past the edge of the shadow: red most.
      const Vec3 wrapped{clamp01((cosine + .14f) / 1.14f), clamp01((cosine + .08f) / 1.08f),
                         clamp01((cosine + .03f) / 1.03f)};
      if (facing <= 0 || wrapped.x <= 0 || dot(geometric, l) < -.25f) {
        continue;
      }
      const Vec3 from = dot(geometric, l) < .02f ? p + geometric * .012f : start;
      if (isBlocked(from, l, far)) {
        continue;
      }
      const float weight = area * facing / (far * far * float(count)) *
                           (k == 0   ? through
                            : k == 1 ? .25f + .75f * around
                                     : sq(around * behind));
      out.diffuse = out.diffuse + lamp.radiance * wrapped * (weight / kPi);
      const float mirrored = std::min(k == 2 ? .016f : .16f, specularOf(fine, l, view, gloss));
      out.specular = out.specular + lamp.radiance * (mirrored * weight);
    }
  }
  // The room: directions by the cosine. What is near reflects skin's colour.
  const Vec3 t = normalize(cross(std::fabs(n.y) < .9f ? Vec3{0, 1, 0} : Vec3{1, 0, 0}, n)),
             s = cross(n, t);
  for (int i = 0; i < samples; i++) {
    const float r2 = (float(i) + random.uniform()) / float(samples), r = std::sqrt(r2),
                a = 2 * kPi * random.uniform();
    const Vec3 d =
        t * (r * std::cos(a)) + s * (r * std::sin(a)) + n * std::sqrt(std::max(0.f, 1 - r2));
    Hit hit;
    Vec3 arriving = room(d) * (.25f + .75f * around);
    hit.t = 2.5f;
    if (dot(d, geometric) <= 0) {
      arriving = arriving * .4f;
    } else if (head_.scene().trace(start, d, hit)) {
      const Character& c = head_.character();
      const Material m = head_.scene().materialOf(hit);
      const Vec3 albedo = m == Material::kSkin     ? c.skin
                          : m == Material::kCloth  ? c.cloth
                          : m == Material::kCloth2 ? c.cloth2
                                                   : Vec3{.05f, .05f, .05f};
      arriving = albedo * Vec3{.37f, .34f, .34f} * smoothstep(0.f, .22f, hit.t);
    }
    out.diffuse = out.diffuse + arriving * (1.f / float(samples));
  }
  const float nv = clamp01(dot(fine, view));
  const Vec3 mirror = fine * (2 * dot(view, fine)) - view;
  out.specular = out.specular + room(mirror) * (.35f * gloss.amount * sq(around) *
                                                (.028f + .5f * std::pow(1 - nv, 5.f)));
  return out;
}
