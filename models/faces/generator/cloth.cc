// Clothes: the body's surface moved outwards and smoothed, cut at a neckline, and how cloth looks.
// Sizes in decimetres, chosen by eye.
#include "cloth.h"

#include "shade.h"

float insideNeckline(const Head& head, Material layer, Vec3 p) {
  const Character& c = head.character();
  // Necklines are planes: lower in front than behind, slightly curved.
  const float ax = std::fabs(p.x), front = smoothstep(-1.f, .2f, p.z);
  const float round =
      -1.40f - .24f * front + .05f * sq(ax / .45f) + .10f * smoothstep(.35f, .7f, ax);
  switch (c.clothes) {
    case Clothes::kTurtleneck:
      return -1.20f - .17f * front - p.y;
    case Clothes::kShirt:
    case Clothes::kBlazer:
      if (layer == Material::kCloth2) {
        return round - .05f - .20f * front * smoothstep(.5f, 0.f, ax) - p.y;
      }
      // Lower in front, where the collar runs into the opening.
      return -1.23f - (c.clothes == Clothes::kShirt ? .24f : .40f) * smoothstep(-.55f, .40f, p.z) -
             p.y;
    default:
      return round - p.y;
  }
}

float openingAt(const Character& c, float y) {
  if (c.clothes == Clothes::kBlazer) {
    return .03f + .36f * clamp01((y + 2.65f) / 1.20f);
  }
  return c.clothes == Clothes::kShirt ? .24f * clamp01((y + 2.0f) / .62f) : 0.f;
}

namespace {

/** How far a point is inside the garment: negative where it is cut away. */
float coverage(const Head& head, Material layer, Vec3 p) {
  const float inside = insideNeckline(head, layer, p);
  const float open = layer == Material::kCloth ? openingAt(head.character(), p.y) : 0.f;
  return open > 0 && p.z > -.5f ? std::min(inside, 1.1f * (std::fabs(p.x) - open)) : inside;
}

/** Moves vertices towards the middle of their neighbours: cloth does not follow every hollow. */
void relax(Quads& quads, int rounds) {
  std::vector<std::vector<int>> around(quads.vertices.size());
  for (const auto& face : quads.faces) {
    for (size_t k = 0; k < 4; k++) {
      around[size_t(face[k])].push_back(face[(k + 1) % 4]);
    }
  }
  for (int round = 0; round < rounds; round++) {
    std::vector<Vec3> smoothed;
    for (size_t i = 0; i < quads.vertices.size(); i++) {
      Vec3 sum{0, 0, 0};
      for (const int other : around[i]) {
        sum = sum + quads.vertices[size_t(other)].at;
      }
      smoothed.push_back(around[i].empty() ? quads.vertices[i].at
                                           : sum * (1.f / float(around[i].size())));
    }
    for (size_t i = 0; i < quads.vertices.size(); i++) {
      quads.vertices[i].at = mix(quads.vertices[i].at, smoothed[i], .5f);
    }
  }
}

/** @returns the height of soft folds: from the shoulders down, and towards the armpits */
float foldsAt(Vec3 q) {
  const float bent = noise(q * 1.3f);
  // Ridges are narrow, hollows wide.
  const auto ridged = [](float n) { return sq(1 - std::fabs(2 * n - 1)); };
  const float hanging = ridged(noise({q.x * 1.9f + .7f * q.y + 1.6f * bent, q.y * .5f, q.z * .8f}));
  const float pulled = ridged(noise({q.x * 2.4f - 2.0f * q.y, q.y * .9f + .8f * q.x, q.z + bent}));
  const float broad = fbm({q.x * 1.7f, q.y * .8f, q.z}) - .44f;
  return .052f * (hanging - .4f) + .030f * (pulled - .4f) + .05f * broad;
}

/** @returns how near a point is to the seam of the sleeve, 0 to 1 */
float sleeveSeam(Vec3 p) {
  const float x = 1.42f + .10f * sq(p.y + 2.1f);
  return gaussian(std::fabs(p.x), x, .022f) * smoothstep(-.9f, -.5f, p.z);
}

void addLayer(Quads quads, const Head& head, Material layer, float thickness, Mesh& out) {
  const Character& c = head.character();
  const bool isTailored = c.clothes == Clothes::kBlazer && layer == Material::kCloth;
  relax(quads, isTailored ? 22 : 14);
  computeNormals(quads);
  for (Vertex& v : quads.vertices) {
    const float inside = coverage(head, layer, v.rest);
    const float folds = foldsAt(v.at + Vec3{float(c.seed), 0, 0}) * (isTailored ? .55f : 1.f);
    float offset = thickness + folds * smoothstep(.05f, .6f, inside);
    if (isTailored) {
      // Padded shoulders.
      offset +=
          .07f * gaussian(std::fabs(v.rest.x), 1.45f, .35f) * smoothstep(-2.1f, -1.6f, v.rest.y);
    }
    offset -= .018f * sleeveSeam(v.rest);
    v.at = v.at + v.normal * offset;
    v.masks = {v.rest.y > -.8f ? -1.f : inside, 0, 0};
  }
  computeNormals(quads);
  out.add(quads, layer);
  addCollar(quads, head, layer, out);
}

}  // namespace

void addClothes(const Quads& skin, const Head& head, Mesh& out) {
  const Clothes clothes = head.character().clothes;
  if (clothes == Clothes::kBlazer) {
    addLayer(skin, head, Material::kCloth2, .03f, out);
  }
  addLayer(skin, head, Material::kCloth, clothes == Clothes::kBlazer ? .085f : .05f, out);
}

Shaded shadeCloth(const Head& head, const Studio& studio, const Vertex& at, Material material,
                  Vec3 view, int samples, Random& random) {
  const Character& c = head.character();
  const Vec3 p = at.rest;
  Shaded out;
  Gloss gloss{.75f, .75f, 1, .22f};
  Vec3 n = at.normal;
  if (material == Material::kGlasses) {
    out.albedo = {.025f, .018f, .016f};
    gloss = {.22f, .12f, .6f, 1.6f};
  } else {
    // Threads of a weave or a knit (2 mm), or ribs (4 mm); and a little lint.
    const bool isWoven = c.clothes == Clothes::kBlazer || c.clothes == Clothes::kShirt;
    const bool isRib = at.masks[2] > .5f;
    const float around = std::atan2(p.x, p.z + .9f) * 1.1f + .3f * p.x;
    const float u = around * (isRib     ? 150.f
                              : isWoven ? 560.f
                                        : 400.f),
                v = p.y * (isWoven ? 310.f : 220.f);
    const float knit = std::sin(u) * std::sin(v + 1.2f * std::fabs(std::sin(u * .5f)));
    const float thread = isRib     ? .8f * std::sin(u) + .2f * std::sin(v)
                         : isWoven ? .5f * std::sin(u + v)
                                   : .6f * knit;
    const float lint = fbm(p * 60) - .44f;
    out.albedo = (material == Material::kCloth ? c.cloth : c.cloth2) *
                 (1 + (isRib ? .10f : .05f) * thread + .16f * lint + .08f * (fbm(p * 3) - .44f));
    if (c.clothes == Clothes::kShirt && p.z > 0 && at.masks[2] < .5f && p.y < -1.95f) {
      // The strip that closes a shirt, and its buttons.
      const float height = (p.y + 2.06f) / .36f;
      const float button =
          smoothstep(.030f, .024f, length(Vec3{p.x, (height - std::round(height)) * .36f, 0}));
      out.albedo = mix(out.albedo * (1 - .40f * gaussian(std::fabs(p.x), .085f, .006f)),
                       Vec3{.55f, .53f, .50f}, button);
    }
    const bool isThick = c.clothes == Clothes::kTurtleneck;
    const float relief = isRib ? .22f : isWoven ? .05f : isThick ? .14f : .08f;
    n = normalize(n + Vec3{relief * std::cos(u), .04f * std::cos(v), 0} +
                  Vec3{noise(p * 90) - .5f, noise(p * 90 + Vec3{7, 7, 7}) - .5f, 0} * .10f);
  }
  const Lighting light = studio.light(at.at, at.normal, n, n, view, gloss, samples, random);
  out.diffuse = light.diffuse;
  // Fibres that stand out catch light at the outline.
  const float graze = std::pow(1 - clamp01(dot(at.normal, view)), 3.f);
  out.added = light.specular + out.albedo * light.diffuse * (graze * .35f);
  return out;
}
