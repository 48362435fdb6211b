// Clothes: the body's surface moved outwards and smoothed, cut at a neckline; and glasses. Sizes
// were chosen by eye.
#include "shade.h"

namespace {

/** How far a point is inside the garment: negative above the neckline. */
float coverage(const Character& c, Material layer, Vec3 p) {
  // Necklines are planes: lower in front than behind, slightly curved.
  const float ax = std::fabs(p.x), front = smoothstep(-1.f, .2f, p.z);
  const float round =
      -1.43f - .26f * front + .05f * sq(ax / .45f) + .10f * smoothstep(.35f, .7f, ax);
  if (c.clothes == Clothes::kTurtleneck) {
    return -1.02f - .20f * front - p.y;
  }
  if (c.clothes == Clothes::kBlazer) {
    if (layer == Material::kCloth2) {
      return round + .02f - .25f * front * smoothstep(.5f, 0.f, ax) - p.y;
    }
    // A jacket: open in a V.
    const float opening = (ax - (.05f + .40f * clamp01((p.y + 2.5f) / 1.15f))) * 1.1f;
    return std::min(-1.29f - .10f * front - p.y, p.z > -.5f ? opening : 1.f);
  }
  return round - p.y;
}

void addLayer(Quads quads, const Head& head, Material layer, float thickness, Mesh& out) {
  const Character& c = head.character();
  std::vector<std::vector<int>> around(quads.vertices.size());
  for (const auto& face : quads.faces) {
    for (size_t k = 0; k < 4; k++) {
      around[size_t(face[k])].push_back(face[(k + 1) % 4]);
    }
  }
  // Cloth does not follow every hollow of the body.
  for (int round = 0; round < 14; round++) {
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
  computeNormals(quads);
  for (Vertex& v : quads.vertices) {
    const float inside = coverage(c, layer, v.rest);
    const Vec3 q = v.at + Vec3{float(c.seed), 0, 0};
    // Folds run down from the shoulders and towards the armpits.
    const float folds = .045f * (fbm({q.x * 1.9f + .6f * q.y, q.y * .8f, q.z}) - .44f) +
                        .020f * (fbm({q.x * 4.f - 2.f * q.y, q.y * 2.2f, q.z * 3}) - .44f);
    const float rib = layer == Material::kCloth && c.clothes == Clothes::kCrew
                          ? .022f * smoothstep(.10f, .085f, inside)
                          : 0;
    const float hem = .014f * gaussian(inside, 0, .02f);
    float offset = thickness + rib + hem + folds * smoothstep(.05f, .6f, inside);
    if (c.clothes == Clothes::kTurtleneck) {
      offset += .035f * smoothstep(.46f, .40f, inside);
    }
    if (c.clothes == Clothes::kBlazer && layer == Material::kCloth) {
      // Lapels lie on the jacket: a step along their outer edge.
      const float lapel = smoothstep(.24f, .225f, inside) * smoothstep(-2.5f, -2.3f, v.rest.y) *
                          (v.rest.z > -.5f ? 1.f : 0.f);
      offset += .03f * lapel;
    }
    v.at = v.at + v.normal * offset;
    v.masks = {inside, v.rest.y < -.7f ? 1.f : 0.f, 0};
    if (v.rest.y > -.8f) {
      v.masks[0] = -1;
    }
  }
  computeNormals(quads);
  out.add(quads, layer);
}

/** A tube along a line of points. */
void addTube(const std::vector<Vec3>& line, bool isClosed, float radius, const Head& head,
             Mesh& out) {
  constexpr int kRound = 8;
  Quads tube;
  const int n = int(line.size());
  for (int i = 0; i < n; i++) {
    const Vec3 along = normalize(line[size_t(isClosed ? (i + 1) % n : std::min(n - 1, i + 1))] -
                                 line[size_t(isClosed ? (i + n - 1) % n : std::max(0, i - 1))]);
    const Vec3 side = normalize(cross(along, {.1f, .2f, 1})), up = cross(side, along);
    for (int k = 0; k < kRound; k++) {
      const float a = 6.2831853f * float(k) / kRound;
      Vertex v;
      v.rest = line[size_t(i)] + side * (radius * std::cos(a)) + up * (radius * std::sin(a));
      v.at = head.turned(v.rest);
      tube.vertices.push_back(v);
    }
  }
  for (int i = 0; i < (isClosed ? n : n - 1); i++) {
    for (int k = 0; k < kRound; k++) {
      const int a = i * kRound, b = (i + 1) % n * kRound, next = (k + 1) % kRound;
      tube.faces.push_back({a + k, b + k, b + next, a + next});
    }
  }
  computeNormals(tube);
  out.add(tube, Material::kGlasses);
}

}  // namespace

void addClothes(const Quads& skin, const Head& head, Mesh& out) {
  if (head.character().clothes == Clothes::kBlazer) {
    addLayer(skin, head, Material::kCloth2, .03f, out);
    addLayer(skin, head, Material::kCloth, .085f, out);
  } else {
    addLayer(skin, head, Material::kCloth, .05f, out);
  }
}

void addGlasses(const Head& head, Mesh& out) {
  const Eye& eye = head.eyesAtRest()[1];
  Vec3 bridge, n;
  head.onFront(0, eye.centre.y - .03f, bridge, n);
  for (const float side : {-1.f, 1.f}) {
    std::vector<Vec3> rim;
    for (int i = 0; i < 64; i++) {
      const float a = 6.2831853f * float(i) / 64, cosine = std::cos(a), sine = std::sin(a);
      const auto rounded = [](float x) { return std::copysign(std::pow(std::fabs(x), .72f), x); };
      const float x = .02f + .205f * rounded(cosine), y = -.045f + .165f * rounded(sine);
      rim.push_back({side * (eye.centre.x + x), eye.centre.y + y,
                     bridge.z + .03f - .10f * sq((eye.centre.x + x) / .5f) + .02f * y});
    }
    addTube(rim, true, .0115f, head, out);
    const Vec3 hinge{side * (eye.centre.x + .225f), eye.centre.y + .04f, bridge.z - .06f};
    addTube({hinge,
             hinge + Vec3{side * .09f, .01f, -.12f},
             {side * (eye.centre.x + .41f), eye.centre.y + .05f, -.1f},
             {side * (eye.centre.x + .43f), eye.centre.y + .0f, -.35f}},
            false, .013f, head, out);
  }
  std::vector<Vec3> middle;
  for (int i = 0; i <= 8; i++) {
    const float t = float(i) / 4 - 1;
    middle.push_back(
        {.085f * t, eye.centre.y + .03f - .025f * t * t, bridge.z + .055f - .02f * t * t});
  }
  addTube(middle, false, .010f, head, out);
}

Shaded shadeCloth(const Head& head, const Studio& studio, const Vertex& at, Material material,
                  Vec3 view, int samples, Random& random) {
  const Character& c = head.character();
  const Vec3 p = at.rest;
  Shaded out;
  Gloss gloss{.7f, .7f, 1, .35f};
  Vec3 n = at.normal;
  if (material == Material::kGlasses) {
    out.albedo = {.025f, .018f, .016f};
    gloss = {.22f, .12f, .6f, 1.6f};
  } else {
    // Knitted or woven threads, across and along, with a little lint.
    const bool isWoven = c.clothes == Clothes::kBlazer;
    const float u = (std::atan2(p.x, p.z + .9f) * 1.1f + .3f * p.x) * (isWoven ? 230.f : 120.f),
                v = p.y * (isWoven ? 210.f : 95.f);
    const bool isRib = c.clothes == Clothes::kTurtleneck || at.masks[0] < .095f;
    const float thread = isWoven ? std::sin(u + v) * .5f
                         : isRib ? std::sin(u * .42f)
                                 : std::sin(u) * std::sin(v + 1.2f * std::fabs(std::sin(u * .5f)));
    const float lint = fbm({p.x * 34, p.y * 34, p.z * 34}) - .44f;
    out.albedo = (material == Material::kCloth ? c.cloth : c.cloth2) *
                 (1 + .10f * thread + .45f * lint + .25f * (fbm(p * 3) - .44f));
    // Seams: along the neckline's rib or the lapel, and over the shoulder.
    const float border = isWoven ? .232f : .108f;
    const bool hasSeam = c.clothes != Clothes::kTurtleneck && material == Material::kCloth;
    const float seam =
        hasSeam ? gaussian(at.masks[0], border, .007f) +
                      .7f * gaussian(p.z + .26f, 0, .009f) * smoothstep(.42f, .5f, std::fabs(p.x))
                : 0;
    out.albedo = out.albedo * (1 - .45f * std::min(1.f, seam));
    n = normalize(n + Vec3{.10f * std::cos(u), .06f * std::cos(v), 0} * (isWoven ? .4f : 1.f) +
                  Vec3{noise(p * 60) - .5f, noise(p * 60 + Vec3{7, 7, 7}) - .5f, 0} * .12f);
  }
  const Lighting light = studio.light(at.at, at.normal, n, n, view, gloss, samples, random);
  out.diffuse = light.diffuse;
  const float graze = std::pow(1 - clamp01(dot(at.normal, view)), 3.f);
  out.added = light.specular + out.albedo * light.diffuse * (graze * .5f);
  return out;
}
