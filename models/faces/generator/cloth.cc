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
  return c.clothes == Clothes::kShirt ? .24f * clamp01((y + 1.93f) / .55f) : 0.f;
}

namespace {

/** No garment reaches higher. */
constexpr float kHighest = -.8f;
/** Between points whose relief is compared, to find its slope. */
constexpr float kStep = .004f;

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

/** Leaves out the head, whose faces are cut anyway, and makes the rest finer. */
Quads bodyOf(Quads quads) {
  const auto isHead = [&](const std::array<int, 4>& face) {
    return std::all_of(face.begin(), face.end(), [&](int corner) {
      return quads.vertices[size_t(corner)].rest.y > kHighest;
    });
  };
  quads.faces.erase(std::remove_if(quads.faces.begin(), quads.faces.end(), isHead),
                    quads.faces.end());
  return subdivide(quads);
}

void addLayer(Quads quads, const Head& head, Material layer, float thickness, Mesh& out) {
  const Character& c = head.character();
  const bool isTailored = c.clothes == Clothes::kBlazer && layer == Material::kCloth;
  relax(quads, isTailored ? 22 : 14);
  quads = bodyOf(std::move(quads));
  computeNormals(quads);
  for (Vertex& v : quads.vertices) {
    const float inside = coverage(head, layer, v.rest);
    const float below = insideNeckline(head, layer, v.rest);
    float offset = thickness + foldsAt(head, v.rest) * smoothstep(.05f, .5f, below);
    if (isTailored) {
      // Padded shoulders.
      const float pad = .84f * c.sculpt.shoulders;
      offset +=
          .06f * gaussian(std::fabs(v.rest.x), pad, .35f) * smoothstep(-2.2f, -1.7f, v.rest.y);
    }
    v.at = v.at + v.normal * offset;
    v.masks = {v.rest.y > kHighest ? -1.f : inside, 0, 0};
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
    const bool isRib = at.masks[2] > .5f;
    Thread thread = threadAt(head, p, isRib);
    if (!isRib) {
      // Seen from the side, threads are finer than a pixel.
      const float seen = smoothstep(.25f, .75f, dot(at.normal, view));
      thread = {seen * thread.shade, seen * thread.x, seen * thread.y};
    }
    const float lint = fbm(p * 60) - .44f;
    out.albedo =
        (material == Material::kCloth ? c.cloth : c.cloth2) *
        (1 + (isRib ? .10f : .09f) * thread.shade + .16f * lint + .08f * (fbm(p * 3) - .44f));
    if (c.clothes == Clothes::kShirt && p.z > 0 && at.masks[2] < .5f && p.y < -1.95f) {
      // The strip that closes a shirt, and its buttons.
      const float height = (p.y + 2.06f) / .36f;
      const float button =
          smoothstep(.030f, .024f, length(Vec3{p.x, (height - std::round(height)) * .36f, 0}));
      out.albedo = mix(out.albedo * (1 - .40f * gaussian(std::fabs(p.x), .085f, .006f)),
                       Vec3{.55f, .53f, .50f}, button);
    }
    // The slope of the relief, along the surface.
    Vec3 slope{0, 0, 0};
    if (!isRib) {
      const float height = reliefAt(head, p);
      slope = Vec3{reliefAt(head, p + Vec3{kStep, 0, 0}) - height,
                   reliefAt(head, p + Vec3{0, kStep, 0}) - height,
                   reliefAt(head, p + Vec3{0, 0, kStep}) - height} *
              (1 / kStep);
      slope = slope - at.normal * dot(slope, at.normal);
    }
    n = normalize(n - slope + Vec3{thread.x, thread.y, 0} +
                  Vec3{noise(p * 90) - .5f, noise(p * 90 + Vec3{7, 7, 7}) - .5f, 0} * .10f);
  }
  const Lighting light = studio.light(at.at, at.normal, n, n, view, gloss, samples, random);
  out.diffuse = light.diffuse;
  // Fibres that stand out catch light at the outline.
  const float graze = std::pow(1 - clamp01(dot(at.normal, view)), 3.f);
  out.added = light.specular + out.albedo * light.diffuse * (graze * .35f);
  return out;
}
