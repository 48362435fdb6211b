// Studio light: a large soft key light from the upper left, a cool fill light from the right, a rim
// light from behind, and ambient light. Amounts were chosen by eye.
#include "shade.h"

const Lights kLights{normalize({-.62f, .62f, .80f}), normalize({.85f, .12f, .62f}),
                     normalize({.62f, .45f, -.75f})};

namespace {

constexpr Vec3 kKey{1.62f, 1.52f, 1.40f}, kFill{.32f, .36f, .42f}, kRim{.95f, .98f, 1.05f};

/** @returns ambient light: brighter from above and from the front */
Vec3 ambient(Vec3 n) {
  return Vec3{.31f, .32f, .345f} * (.72f + .28f * n.y) +
         Vec3{.10f, .07f, .055f} * std::max(0.f, -n.y);
}

/**
 * @returns what a mirror reflects: two soft boxes and a bright ceiling. `width` is the roughness.
 */
Vec3 reflection(Vec3 r, float soft) {
  const auto box = [&](Vec3 centre, float half, float halfTall) {
    const Vec3 right = normalize(cross({0, 1, 0}, centre)), up = cross(centre, right);
    const float depth = dot(r, centre);
    if (depth <= 0) {
      return 0.f;
    }
    const float u = dot(r, right) / depth, v = dot(r, up) / depth;
    return smoothstep(half + soft, half - soft, std::fabs(u)) *
           smoothstep(halfTall + soft, halfTall - soft, std::fabs(v));
  };
  Vec3 c = Vec3{.20f, .21f, .23f} * (.6f + .4f * r.y);
  c = c + Vec3{7.f, 6.8f, 6.4f} * box(kLights.key, .26f, .34f);
  c = c + Vec3{1.1f, 1.2f, 1.35f} * box(kLights.fill, .16f, .42f);
  return c;
}

float ggx(float nh, float rough) {
  const float a = sq(rough * rough), d = sq(nh) * (a - 1) + 1;
  return a / (3.14159f * d * d);
}

}  // namespace

Vec3 backdrop(const Character& c, float u, float v) {
  const float glow = std::exp(-(sq(u * .75f + .12f) + sq(v * .8f - .05f)) * 1.25f);
  Vec3 col = mix(c.backdropDark, c.backdropLight, glow * .85f);
  // A few lights far behind, out of focus.
  for (int i = 0; i < 9; i++) {
    const float x = hash(i, 3, int(c.seed)) * 2.6f - 1.3f, y = hash(i, 7, int(c.seed)) * 2.2f - .9f,
                r = .10f + .14f * hash(i, 11, int(c.seed));
    const float d = std::sqrt(sq(u - x) + sq(v - y));
    col =
        col + mix(c.backdropLight, Vec3{1, .9f, .75f}, .35f) * (.055f * smoothstep(r, r * .55f, d));
  }
  return col;
}

float Shader::shadow(Vec3 p, Vec3 l, float sharpness) const {
  float t = .02f, r = 1;
  for (int i = 0; i < 26 && t < 2.6f; i++) {
    const float d = head_.distance(p + l * t);
    r = std::min(r, .5f + .5f * sharpness * d / t);
    if (r < 0) {
      return 0;
    }
    t += clampTo(d * .9f, .018f, .22f);
  }
  r = clamp01(r);
  return r * r * (3 - 2 * r);
}

float Shader::occlusion(Vec3 p, Vec3 n) const {
  float o = 0, s = 1;
  for (int i = 1; i <= 5; i++) {
    const float h = .012f + .045f * float(i * i) * .35f;
    o += (h - head_.distance(p + n * h)) * s / h * .22f;
    s *= .80f;
  }
  return clamp01(1 - o);
}

Vec3 Shader::surface(Vec3 p, Vec3 view, Material material) const {
  const Character& c = head_.character();
  switch (material) {
    case Material::kSkin:
      return skin(p, view);
    case Material::kEye:
      return eye(p, view);
    case Material::kCloth:
      return cloth(p, view, c.cloth);
    case Material::kCloth2:
      return cloth(p, view, c.cloth2);
    case Material::kGlasses: {
      const Vec3 n = head_.normal(p, .002f), r = view * -1.f + n * (2 * dot(view, n));
      return Vec3{.035f, .028f, .026f} * (ambient(n) + kKey * clamp01(dot(n, kLights.key))) +
             reflection(r, .12f) * (.05f + .3f * std::pow(1 - clamp01(dot(n, view)), 5.f));
    }
  }
  return {};
}

Vec3 Shader::skin(Vec3 world, Vec3 view) const {
  const Character& c = head_.character();
  const Vec3 p = head_.toHead(world);
  const float ax = std::fabs(p.x);
  const bool front = p.z > .2f;

  // Colour: variation of melanin, blood below thin skin, lips, freckles, age spots.
  Vec3 albedo = c.skin * (.90f + .20f * fbm(p * 7)) * (.95f + .10f * noise(p * 31));
  const Vec3 red = mix(Vec3{1, 1, 1}, Vec3{1.10f, .80f, .76f}, c.blush);
  const float cheek =
      .85f * std::exp(-(sq(ax - .36f) / .030f + sq(p.y + .19f) / .026f)) * (front ? 1.f : 0.f);
  const float noseTip =
      .6f * std::exp(-(sq(p.x) / .012f + sq(p.y + .24f) / .008f)) * smoothstep(.6f, .8f, p.z);
  const float ears =
      smoothstep(.66f, .74f, ax) * smoothstep(-.3f, -.2f, p.y) * smoothstep(.3f, .25f, p.y) * .8f;
  const float chin = .35f * std::exp(-(sq(p.x) / .02f + sq(p.y + .80f) / .01f));
  albedo = mix(albedo, albedo * red, clamp01(cheek + noseTip + ears + chin));
  if (front) {
    // Lids and the skin below the eyes are thin and bluish red.
    const Vec3 w = p - head_.eyeCentre(p.x > 0);
    const float socket = std::exp(-(sq(w.x / .20f) + sq((w.y + .01f) / .12f)));
    albedo = mix(albedo, albedo * Vec3{.88f, .76f, .78f}, socket * (.40f + .35f * c.age));
    const float x = p.x > 0 ? w.x : -w.x;
    if (c.makeup > 0 && std::fabs(x) < .2f) {
      const float above = w.y - head_.upperLid(x);
      albedo = mix(albedo, albedo * Vec3{.62f, .50f, .48f},
                   c.makeup * smoothstep(.0f, .02f, above) * smoothstep(.11f, .03f, above) *
                       smoothstep(.19f, .12f, std::fabs(x)) * .8f);
    }
    if (length(w) < .24f) {
      // Lid margins are wet and pink. The lash line is dark with the lashes' roots.
      const float at = length(w) - head_.eyeRadius();
      albedo = mix(albedo, c.skin * Vec3{.95f, .66f, .66f}, smoothstep(.022f, .008f, at) * .6f);
      const float line =
          gaussian(w.y, head_.upperLid(x) + .006f, .0085f) * smoothstep(.165f, .14f, std::fabs(x));
      albedo =
          mix(albedo, Vec3{.03f, .018f, .014f},
              line * (.40f + .3f * std::min(1.f, c.lashes - .4f)) * smoothstep(-.14f, -.08f, x));
    }
    if (c.freckles > 0) {
      const float spot = smoothstep(.70f, .80f, noise(p * 78)) *
                         smoothstep(.40f, .6f, noise(p * 19 + Vec3{5, 1, 2}));
      albedo = mix(albedo, albedo * Vec3{.70f, .55f, .45f},
                   c.freckles * spot * std::exp(-(sq(p.x / .42f) + sq((p.y + .10f) / .17f))));
    }
    if (c.beard > 0) {
      const float cheekLine = -.33f + .62f * sq(std::max(0.f, ax - .16f)) * 1.4f;
      float m = smoothstep(cheekLine + .05f, cheekLine - .10f, p.y) * smoothstep(-1.05f, -.9f, p.y);
      m = std::max(m, smoothstep(-.33f, -.38f, p.y) * smoothstep(.30f, .17f, ax));
      albedo = mix(albedo, albedo * Vec3{.74f, .74f, .78f}, m * std::min(.75f, c.beard + .15f));
    }
  }
  if (c.age > .3f) {
    albedo = mix(albedo, albedo * Vec3{.78f, .66f, .58f},
                 c.age * .34f * smoothstep(.64f, .78f, noise(p * 15)) *
                     smoothstep(.45f, .7f, noise(p * 41)));
  }
  // The scalp is darkened by roots that are too fine to draw.
  if (p.y > -.6f) {
    albedo = mix(albedo, c.hairRoot * 1.6f + c.skin * .18f, .80f * scalpMask(c, p));
  }
  const float lip = head_.lipMask(p);
  const Vec3 lipColour =
      c.lips * (.86f + .28f * noise({p.x * 95, p.y * 14, 2})) * (.9f + .2f * fbm(p * 20));
  albedo = mix(albedo, lipColour, lip * .92f);
  if (front) {
    albedo = albedo *
             (1 - .72f * gaussian(head_.seamOffset(p), 0, .0065f) *
                      smoothstep(1.06f, .80f, ax / (.235f * c.mouthWidth)));  // between the lips
  }

  // Bump map: pores; on the lips finer vertical furrows.
  Vec3 n = head_.normal(world, .0022f);
  const auto bump = [&](Vec3 q) {
    // Rotated against the noise's lattice, whose layers would be visible as rings.
    const Vec3 k{.64f * q.x + .77f * q.y, -.51f * q.x + .42f * q.y + .75f * q.z,
                 .58f * q.x - .48f * q.y + .66f * q.z};
    const float pores = (noise(k * 120) - .5f) * .0011f + (noise(k * 62) - .5f) * .0009f +
                        (c.age * .0012f) * (noise({q.x * 40, q.y * 90, q.z * 40}) - .5f);
    const float furrows = (noise({q.x * 120, q.y * 12, 5}) - .5f) * .0026f;
    return mix(pores, furrows, lip);
  };
  const float b0 = bump(p), e = .003f;
  const Vec3 g = Vec3{bump(p + Vec3{e, 0, 0}) - b0, bump(p + Vec3{0, e, 0}) - b0,
                      bump(p + Vec3{0, 0, e}) - b0} *
                 (1 / e);
  const Vec3 fine = normalize(n - (g - n * dot(g, n)));

  // Subsurface scattering: light of longer wavelengths travels further, so that red sees a smoother
  // surface (W.-C. Ma et al. 2007). At thin folds the smooth normal is that of another surface and
  // is given less weight.
  const auto smoother = [&](float reach, float own) {
    const Vec3 wide = head_.normal(world, reach);
    return normalize(mix(n, wide, (1 - own) * smoothstep(.62f, .95f, dot(wide, n))));
  };
  const Vec3 nr = smoother(.024f, .48f), ng = smoother(.012f, .58f);
  const float hairLight = hair_.light(world + n * .03f),
              hairAmbient = hair_.ambient(world + n * .03f);
  const float sh = shadow(world + n * .012f, kLights.key, 5.5f) * hairLight,
              ao = occlusion(world, n) * (.25f + .75f * hairAmbient);
  const auto wrap = [](float d, float w) {
    return clamp01((d + w) / ((1 + w) * (1 + w))) * (1 + w * .5f);
  };
  const auto lit = [&](Vec3 l, float s) {
    // The edge of a shadow is redder.
    return Vec3{wrap(dot(nr, l), .30f) * std::pow(s, .88f),
                wrap(dot(ng, l), .17f) * std::pow(s, .96f), wrap(dot(n, l), .12f) * s};
  };
  Vec3 light = kKey * lit(kLights.key, sh);
  light = light + kFill * lit(kLights.fill, .35f + .65f * ao);
  light = light + kRim * lit(kLights.rim, ao * .8f) * .7f;
  const float open = std::max(.02f, ao);
  light = light + ambient(mix(nr, n, .5f)) * Vec3{std::pow(open, .80f), std::pow(open, .95f), open};
  // Ears and nostrils transmit light from behind.
  light = light + Vec3{.55f, .14f, .07f} * (ears * .35f);
  Vec3 col = albedo * light;

  // Specular reflection in two lobes. Nose, forehead and lips reflect more.
  const float oily =
      c.gloss *
      (.75f + .5f * noseTip + .35f * gaussian(p.y, .5f, .25f) * gaussian(p.x, 0, .3f) + .9f * lip);
  const Vec3 h = normalize(kLights.key + view);
  const float nh = clamp01(dot(fine, h)), nl = clamp01(dot(fine, kLights.key));
  const float fresnel = .028f + .972f * std::pow(1 - clamp01(dot(h, view)), 5.f);
  const float lobes = mix(.60f * ggx(nh, .52f) + .40f * ggx(nh, .34f), ggx(nh, .30f), lip);
  col = col + kKey * (lobes * fresnel * nl * sh * oily * .55f);
  const Vec3 h2 = normalize(kLights.fill + view);
  col = col + kFill * (ggx(clamp01(dot(fine, h2)), .45f) * .03f * clamp01(dot(fine, kLights.fill)) *
                       ao * oily);
  const float graze = std::pow(1 - clamp01(dot(n, view)), 4.f);
  col = col + kRim * (graze * clamp01(dot(n, kLights.rim) + .35f) * .38f * ao * hairAmbient);
  // Vellus hair reflects light at the outline.
  col = col + c.skin * ambient(n) * (graze * .5f * ao);
  return col;
}

Vec3 Shader::eye(Vec3 world, Vec3 view) const {
  const Character& c = head_.character();
  const Vec3 p = head_.toHead(world);
  const bool right = p.x > 0;
  const Vec3 centre = head_.eyeCentre(right);
  const Vec3 d = normalize(p - centre);
  // The eyes look into the camera and converge slightly.
  const Vec3 gaze = normalize(Vec3{(right ? -.030f : .030f) - c.yaw * .9f, .012f + c.pitch, 1});
  const Vec3 gx = normalize(cross({0, 1, 0}, gaze)), gy = cross(gaze, gx);
  const float irisRadius = .47f;  // sine of the angle
  float u = dot(d, gx) / irisRadius, v = dot(d, gy) / irisRadius;
  const float radius = std::sqrt(u * u + v * v) * (dot(d, gaze) > 0 ? 1.f : 9.f);

  // Sclera: off-white, redder towards the corners, with some veins.
  const float corner = clamp01(std::fabs(dot(d, gx)) - .25f);
  Vec3 albedo = mix(Vec3{.64f, .615f, .60f}, Vec3{.56f, .41f, .38f}, clamp01(corner * 1.1f));
  const float vein = std::fabs(noise({d.x * 24 + 3 * noise(d * 9), d.y * 30, d.z * 12}) - .5f);
  albedo = mix(albedo, Vec3{.60f, .25f, .22f},
               smoothstep(.035f, .0f, vein) * clamp01(corner * 1.8f) * .35f);
  if (radius < 1.12f) {
    // Iris: a disc behind the cornea, displaced by refraction.
    const Vec3 inward = normalize(view * -1.f + d * .35f);
    const float depth = .10f * std::sqrt(std::max(0.f, 1 - sq(std::min(1.f, radius))));
    u += dot(inward, gx) * depth * .6f;
    v += dot(inward, gy) * depth * .6f;
    const float r = std::sqrt(u * u + v * v), a = std::atan2(v, u);
    const float fibres = .5f * noise({std::cos(a) * 14, std::sin(a) * 14, r * 2.5f}) +
                         .5f * noise({std::cos(a) * 34, std::sin(a) * 34, r * 4});
    const float collarette = gaussian(r, .46f, .10f);
    Vec3 iris = c.iris * (.40f + .95f * fibres) * mix(1.15f, .70f, r);
    iris =
        iris + Vec3{c.iris.x * 1.3f + .02f, c.iris.y + .006f, c.iris.z * .6f} * (.75f * collarette);
    // Caustic: the cornea focuses the key light on the opposite side.
    const float caustic = clamp01(dot(normalize(Vec3{u, v, .001f}),
                                      normalize(Vec3{-kLights.key.x, -kLights.key.y, 0}))) *
                          smoothstep(.25f, .75f, r) * smoothstep(1.f, .75f, r);
    iris = iris * (1 + 1.3f * caustic);
    iris = iris * (1 - .80f * gaussian(r, 1.02f, .17f));                       // limbal ring
    iris = mix(iris, Vec3{.004f, .004f, .004f}, smoothstep(.385f, .345f, r));  // pupil
    albedo = mix(albedo, iris, smoothstep(1.06f, .94f, radius));
  }
  // The lid's thickness and the lashes shade the eyeball from above.
  const Vec3 w = p - centre;
  const float x = right ? w.x : -w.x;
  const float under = head_.upperLid(x) - w.y, over = w.y - head_.lowerLid(x);
  const float shade = (.22f + .78f * smoothstep(-.004f, .066f, under)) *
                      (.66f + .34f * smoothstep(-.004f, .022f, over));
  const Vec3 n = normalize(head_.fromHead(p + d * .1f) - head_.fromHead(p));
  const float sh = shadow(world + n * .01f, kLights.key, 4.f) * hair_.light(world + n * .05f);
  const float ha = hair_.ambient(world + n * .05f);
  const float wrapped = clamp01((dot(n, kLights.key) + .35f) / 1.35f);
  Vec3 col = albedo *
             (kKey * (.78f * wrapped * (.35f + .65f * sh)) +
              kFill * (.6f * clamp01(dot(n, kLights.fill) * .7f + .3f)) + ambient(n) * (.9f * ha)) *
             shade;
  // The cornea bulges: its normal is steeper than the eyeball's.
  Vec3 bulged = n;
  if (radius < 1.2f) {
    bulged = normalize(
        mix(n, normalize(n + (d - gaze * dot(d, gaze)) * .95f), smoothstep(1.2f, .8f, radius)));
  }
  const Vec3 r = view * -1.f + bulged * (2 * dot(view, bulged));
  const float f = .030f + .97f * std::pow(1 - clamp01(dot(bulged, view)), 5.f);
  const float lidHides = smoothstep(.002f, .020f, under);
  col = col + reflection(r, .06f) *
                  (std::min(.4f, f * (radius < 1.2f ? 4.2f : 1.2f)) * mix(.30f, 1.f, lidHides));
  // Tear film along the lower lid.
  col = col + Vec3{.9f, .92f, .95f} * (.16f * gaussian(over, .004f, .0045f) *
                                       (.3f + .7f * noise({x * 60, 1, 1})) * (.4f + .6f * sh));
  return col;
}

Vec3 Shader::cloth(Vec3 p, Vec3 view, Vec3 albedo) const {
  const Character& c = head_.character();
  Vec3 n = head_.normal(p, .006f);
  const float angle = std::atan2(p.x, p.z + .4f);
  // Knitted cloth: rows of stitches.
  float weave;
  if (c.clothes == Clothes::kBlazer) {
    weave = noise({p.x * 260, p.y * 260, p.z * 60});
  } else {
    weave = .5f + .5f * std::sin(p.y * 150 + 1.6f * std::fabs(std::sin(angle * 70)));
  }
  const float folds = fbm({p.x * 2.6f, p.y * 2.2f, p.z * 2});
  n = normalize(n + Vec3{folds - .44f, .3f * (fbm(p * 3 + Vec3{4, 4, 4}) - .44f), 0} * .55f);
  const float sh = shadow(p + n * .015f, kLights.key, 5.f) * hair_.light(p + n * .04f),
              ao = occlusion(p, n) * (.3f + .7f * hair_.ambient(p + n * .04f));
  Vec3 col = albedo * (.90f + .14f * weave) *
             (kKey * (clamp01(dot(n, kLights.key) * .85f + .15f) * sh) +
              kFill * (clamp01(dot(n, kLights.fill)) * ao) + ambient(n) * ao);
  const float graze = std::pow(1 - clamp01(dot(n, view)), 3.f);
  return col +
         (albedo * .6f + Vec3{.04f, .04f, .04f}) * kRim *
             (graze * clamp01(dot(n, kLights.rim) + .4f) * .7f * ao) +
         albedo * (graze * .20f * ao);
}

Vec3 Shader::strand(Vec3 p, Vec3 t, Vec3 view, Vec3 colour, bool onSkin) const {
  const float light = hair_.light(p), ambientLight = hair_.ambient(p);
  const auto sine = [](float cosine) { return std::sqrt(std::max(0.f, 1 - cosine * cosine)); };
  // Diffuse: J. T. Kajiya and T. L. Kay 1989. Highlights are shifted along the strand as in
  // S. R. Marschner et al. 2003.
  const auto lobe = [&](Vec3 l, float shift, float exponent) {
    const Vec3 h = normalize(l + view);
    return std::pow(sine(clampTo(dot(t, h) + shift, -1, 1)), exponent);
  };
  Vec3 col = colour * kKey * (.72f * sine(dot(t, kLights.key)) * light);
  col = col + colour * kFill * (.6f * sine(dot(t, kLights.fill)) * ambientLight) +
        colour * Vec3{.46f, .47f, .50f} * (.85f * ambientLight);
  if (onSkin) {
    return col * .8f;
  }
  const Vec3 tint = mix(colour, Vec3{1, 1, 1}, .10f);
  const Vec3 warm{std::min(.75f, colour.x * 3.2f), std::min(.75f, colour.y * 3.2f),
                  std::min(.75f, colour.z * 3.2f)};
  col = col + kKey * tint * (.12f * lobe(kLights.key, .06f, 110.f) * light);
  col = col + kKey * warm * (.20f * lobe(kLights.key, -.10f, 22.f) * light);
  // Transmission of light from behind.
  const float behind = clamp01(-dot(view, kLights.rim) * .5f + .5f);
  col = col + kRim * (colour * 1.6f + Vec3{.03f, .03f, .03f}) *
                  (.55f * lobe(kLights.rim, 0, 14.f) * behind * ambientLight * ambientLight);
  return col;
}

Vec3 toneMap(Vec3 c) {
  // A filmic curve with a shoulder similar to J. Hable's and a soft toe, then sRGB's gamma.
  const auto curve = [](float x) {
    x = std::max(0.f, x * .92f);
    x = x * (1 + x * .14f) / (1 + x * .62f);
    return std::pow(clamp01(x * 1.08f), 1 / 2.2f);
  };
  return {curve(c.x), curve(c.y), curve(c.z)};
}
