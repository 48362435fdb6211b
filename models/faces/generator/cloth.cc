// Clothes: the body's surface moved outwards and smoothed, cut at a neckline, and how cloth looks.
// Sizes in decimetres, chosen by eye.
#include "cloth.h"

#include "surface.h"

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

/** How strong folds are: tailored cloth is stiff. */
float foldedOf(Clothes clothes) {
  return clothes == Clothes::kBlazer ? .45f : clothes == Clothes::kShirt ? .8f : 1.f;
}

/** Adds what is folded over a garment: it lies on it, but not in its hollows. */
void addLeaf(Quads quads, Clothes clothes, Material layer, Mesh& out) {
  quads.faces.erase(std::remove_if(quads.faces.begin(), quads.faces.end(),
                                   [&](const std::array<int, 4>& face) {
                                     return std::all_of(face.begin(), face.end(), [&](int i) {
                                       const Vertex& v = quads.vertices[size_t(i)];
                                       return v.masks[0] < -.3f || v.rest.y < -2.9f ||
                                              std::fabs(v.rest.x) > 1.3f;
                                     });
                                   }),
                    quads.faces.end());
  quads = subdivide(quads);
  computeNormals(quads);
  const Quads below = quads;
  relax(quads, 40);
  for (size_t i = 0; i < quads.vertices.size(); i++) {
    Vertex& v = quads.vertices[i];
    const Vertex& on = below.vertices[i];
    const float inside = insideLeaf(clothes, on.rest);
    // It is round where it turns over at the neckline.
    const float over = mix(.020f, .034f, smoothstep(0.f, .10f, inside)) *
                       smoothstep(-.01f, .06f, insideNeckline(clothes, on.rest));
    const float hollow =
        .6f * smoothstep(0.f, .16f, inside) * std::max(0.f, dot(v.at - on.at, on.normal));
    v.at = on.at + on.normal * (.006f + over + hollow);
    v.masks = {on.rest.y > kHighest ? -1.f : inside, 1, 0};
  }
  computeNormals(quads);
  out.add(quads, layer);
}

void addLayer(Quads quads, const Head& head, Material layer, float thickness, Mesh& out) {
  const Clothes clothes = garmentOf(head.character(), layer);
  const bool isBelow = layer == Material::kCloth2;
  relax(quads, 14);
  quads = bodyOf(std::move(quads));
  computeNormals(quads);
  for (Vertex& v : quads.vertices) {
    float inside = insideNeckline(clothes, v.rest);
    const float folded = isBelow ? .25f : foldedOf(clothes);
    float offset = thickness + foldsAt(head, v.rest) * folded * smoothstep(.05f, .5f, inside);
    if (isBelow && v.rest.y < -1.5f) {
      // Only its front is seen.
      inside = std::min(inside, .8f - std::fabs(v.rest.x));
    }
    if (clothes == Clothes::kBlazer) {
      // Padded shoulders.
      const float pad = .80f * head.character().sculpt.shoulders;
      offset +=
          .055f * gaussian(std::fabs(v.rest.x), pad, .35f) * smoothstep(-2.3f, -1.7f, v.rest.y);
    }
    v.at = v.at + v.normal * offset;
    v.masks = {v.rest.y > kHighest ? -1.f : inside, 0, 0};
  }
  computeNormals(quads);
  out.add(quads, layer);
  if (clothes == Clothes::kShirt || clothes == Clothes::kBlazer) {
    addLeaf(std::move(quads), clothes, layer, out);
  } else {
    addCollar(quads, head, layer, out);
  }
}

}  // namespace

void addClothes(const Quads& skin, const Head& head, Mesh& out) {
  const bool isLayered = head.character().under != Clothes::kNone;
  if (isLayered) {
    addLayer(skin, head, Material::kCloth2, .025f, out);
  }
  addLayer(skin, head, Material::kCloth, isLayered ? .075f : .05f, out);
}

Surface clothAt(const Head& head, const Vertex& at, Material material, Vec3 view) {
  const Character& c = head.character();
  const Vec3 p = at.rest;
  Surface out;
  out.specular = .15f;
  out.roughness = .9f;
  Vec3 n = at.normal;
  if (material == Material::kGlasses) {
    out.albedo = {.025f, .018f, .016f};
    out.specular = .5f;
    out.roughness = .2f;
  } else {
    const Clothes clothes = garmentOf(c, material);
    const bool isLeaf = at.masks[1] > .5f;
    float button;
    const float drawn = drawnOn(clothes, isLeaf, p, button);
    // A cardigan's bands go on along its opening.
    const bool isBand =
        clothes == Clothes::kCardigan && p.z > 0 && p.y < -2.05f && std::fabs(p.x) < .105f;
    const bool isRib = at.masks[2] > .5f || isBand;
    Thread thread = threadAt(head, clothes, p, isRib);
    if (!isRib) {
      // Seen from the side, threads are finer than a pixel.
      const float seen = smoothstep(.25f, .75f, dot(at.normal, view));
      thread = {seen * thread.shade, seen * thread.x, seen * thread.y};
    }
    const float lint = fbm(p * 60) - .44f;
    out.albedo =
        (material == Material::kCloth ? c.cloth : c.cloth2) *
        (1 + (isRib ? .10f : .09f) * thread.shade + .16f * lint + .08f * (fbm(p * 3) - .44f));
    out.albedo =
        mix(out.albedo * (1 - drawn), mix(out.albedo, Vec3{.5f, .48f, .45f}, .35f) * .8f, button);
    if (isLeaf) {
      // Stitches along its edge.
      out.albedo = out.albedo * (1 - .22f * gaussian(at.masks[0], .028f, .006f));
    }
    // The slope of the relief, along the surface.
    Vec3 slope{0, 0, 0};
    if (!isRib && !isLeaf) {
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
  out.normal = n;
  return out;
}
