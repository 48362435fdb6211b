// Clothes: the body's surface moved outwards and smoothed, cut at a neckline, and how cloth looks.
// Sizes in decimetres, chosen by eye.
#include "cloth.h"

#include "shade.h"

float insideNeckline(const Head& head, Material layer, Vec3 p) {
  const Character& c = head.character();
  // Necklines are lower in front than behind, slightly curved, or a V.
  const float ax = std::fabs(p.x), front = smoothstep(-1.f, .2f, p.z);
  const float side = .10f * smoothstep(.35f, .7f, ax) - p.y;
  if (c.clothes == Clothes::kVneck && layer == Material::kCloth) {
    const float point = clamp01(1 - ax / .52f);
    return (c.undershirt ? -1.26f : -1.32f) - .22f * front -
           (c.undershirt ? .62f : .45f) * front * point + side;
  }
  const float low = layer == Material::kCloth2 ? -1.385f : -1.40f;
  return low - .24f * front + .05f * sq(ax / .45f) + side;
}

namespace {

/** No garment reaches higher. */
constexpr float kHighest = -.8f;
/** Between points whose relief is compared, to find its slope. */
constexpr float kStep = .004f;

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
  relax(quads, 14);
  quads = bodyOf(std::move(quads));
  computeNormals(quads);
  for (Vertex& v : quads.vertices) {
    const float inside = insideNeckline(head, layer, v.rest);
    const float offset = thickness + foldsAt(head, v.rest) * smoothstep(.05f, .5f, inside);
    v.at = v.at + v.normal * offset;
    v.masks = {v.rest.y > kHighest ? -1.f : inside, 0, 0};
  }
  computeNormals(quads);
  out.add(quads, layer);
  addCollar(quads, head, layer, out);
}

}  // namespace

void addClothes(const Quads& skin, const Head& head, Mesh& out) {
  if (head.character().undershirt) {
    addLayer(skin, head, Material::kCloth2, .025f, out);
  }
  addLayer(skin, head, Material::kCloth, head.character().undershirt ? .065f : .05f, out);
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
