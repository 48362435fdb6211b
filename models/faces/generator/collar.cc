// Collars: ribbed, rolled, folded, and lapels, made as strips that lie on the garment. Sizes in
// decimetres, chosen by eye.
#include "cloth.h"

namespace {

constexpr float kTurn = 6.2831853f;
/** Where the collars of shirts and jackets begin, by the angle about the neck, radians. */
constexpr float kShirtFrom = .34f, kJacketFrom = 1.12f;

/** A place of a collar's cross-section: above the neckline, and outwards from the garment. */
struct Spot {
  float up, out;
};

/** The garment's surface, by the angle about the neck (0 in front) and the height. */
class Surface {
 public:
  Surface(Quads garment, const Head& head, Material layer) : head_(head) {
    for (Vertex& v : garment.vertices) {
      v.masks[0] = 1;  // not cut
    }
    mesh_.add(garment, Material::kSkin);
    mesh_.build();
    for (int i = 0; i < kAngles; i++) {
      float y = -1.1f;
      while (y > -2.2f && insideNeckline(head, layer, at(kTurn * float(i) / kAngles, y).rest) < 0) {
        y -= .01f;
      }
      line_[size_t(i)] = y;
    }
    for (int round = 0; round < 12; round++) {
      const std::array<float, kAngles> old = line_;
      for (int i = 0; i < kAngles; i++) {
        const float both =
            old[size_t((i + 1) % kAngles)] + old[size_t((i + kAngles - 1) % kAngles)];
        line_[size_t(i)] = .5f * old[size_t(i)] + .25f * both;
      }
    }
  }

  /** @returns the height of the neckline */
  float neckline(float angle) const {
    const float turns = angle / kTurn, x = (turns - std::floor(turns)) * kAngles;
    const int i = int(x) % kAngles;
    return mix(line_[size_t(i)], line_[size_t((i + 1) % kAngles)], x - std::floor(x));
  }
  /** @returns a point; below the neckline by its distance along the garment */
  Vec3 at(float angle, Spot spot) const {
    float y = neckline(angle), left = -spot.up;
    Vertex v = at(angle, y + std::max(0.f, spot.up));
    while (left > 0) {
      y -= .004f;
      const Vertex next = at(angle, y);
      left -= std::max(.004f, std::min(.05f, length(next.at - v.at)));
      v = next;
    }
    // Outwards on the neck, along the garment's normal where it turns to the shoulder.
    const Vec3 out{std::sin(angle), 0, std::cos(angle)};
    const Vec3 p = v.at + (spot.up < 0 ? normalize(out * .3f + v.normal) : out) * spot.out;
    return spot.up > 0 ? closer(p, out, spot) : p;
  }
  /** @returns the depth of the garment seen from the front */
  float depth(float x, float y) const {
    Hit hit;
    return mesh_.trace({x, y, 3}, {0, 0, -1}, hit) ? 3 - hit.t : 0.f;
  }

 private:
  static constexpr int kAngles = 128;
  /** Above the neckline a collar lies on the neck: between them there is no dark gap. */
  Vec3 closer(Vec3 p, Vec3 out, Spot spot) const {
    // Distances are known for the head before it was turned.
    const Vec3 rest = p - (head_.turned(p) - p);
    const float gap = head_.distance(rest) - (.022f + std::max(0.f, spot.out));
    // A high collar is near the chin in front, which is not the neck.
    const bool isHigh = head_.character().clothes == Clothes::kTurtleneck;
    const float share = isHigh ? smoothstep(.55f, -.05f, out.z) : 1.f;
    return p - out * (clampTo(gap, 0, isHigh ? .06f : 9.f) * .9f * share *
                      smoothstep(0.f, .12f, spot.up));
  }
  Vertex at(float angle, float y) const {
    const Vec3 out{std::sin(angle), 0, std::cos(angle)}, axis{0, y, -.15f};
    Hit hit;
    if (mesh_.trace(axis + out * 3, -out, hit)) {
      return mesh_.at(hit);
    }
    Vertex none;
    none.at = none.rest = axis + out * .6f;
    return none;
  }

  const Head& head_;
  Mesh mesh_;
  std::array<float, kAngles> line_{};
};

/** Joins rows of points to a surface whose normals point away from the neck. */
void addGrid(const std::vector<std::vector<Vec3>>& rows, bool isClosed, bool isRib, Material layer,
             Mesh& out) {
  Quads quads;
  const int n = int(rows.size()), m = int(rows[0].size());
  for (const auto& row : rows) {
    for (const Vec3 p : row) {
      Vertex v;
      v.at = v.rest = p;
      v.masks = {1, 0, isRib ? 1.f : 0.f};
      quads.vertices.push_back(v);
    }
  }
  for (int i = 0; i < (isClosed ? n : n - 1); i++) {
    for (int k = 0; k + 1 < m; k++) {
      const int a = i * m + k, b = (i + 1) % n * m + k;
      quads.faces.push_back({a, b, b + 1, a + 1});
    }
  }
  computeNormals(quads);
  float facing = 0;
  for (const Vertex& v : quads.vertices) {
    facing += dot(v.normal, Vec3{v.at.x, .3f, v.at.z + .15f});
  }
  if (facing < 0) {
    for (auto& face : quads.faces) {
      std::swap(face[1], face[3]);
    }
    computeNormals(quads);
  }
  out.add(quads, layer);
}

/** Ends of a collar part towards the top, and meet below: radians by decimetre. */
float leanOf(float fromEnd) {
  return .8f * std::exp(-sq(fromEnd / .5f));
}

/** A strip round the neck. @param section from inside over the top to the outside, at an angle */
template <typename Section>
void addBand(const Surface& surface, float from, float to, bool isRib, Material layer,
             Section section, Mesh& out) {
  const bool isClosed = to - from > kTurn - .01f;
  const int count = 160;
  std::vector<std::vector<Vec3>> rows;
  for (int i = 0; i < (isClosed ? count : count + 1); i++) {
    const float angle = from + (to - from) * float(i) / float(count);
    std::vector<Vec3> row, flat;
    const float lean = isClosed ? 0.f : leanOf(angle - from) - leanOf(to - angle);
    for (const Spot spot : section(angle)) {
      const float turned = angle + lean * spot.up;
      row.push_back(surface.at(turned, spot));
      flat.push_back(surface.at(turned, {spot.up, -.02f}));
    }
    // An end is closed down to the garment.
    if (!isClosed && i == 0) {
      rows.push_back(flat);
    }
    rows.push_back(row);
    if (!isClosed && i == count) {
      rows.push_back(flat);
    }
  }
  addGrid(rows, isClosed, isRib, layer, out);
}

std::vector<Spot> hem(float) {
  return {{.02f, -.02f}, {.022f, 0}, {.012f, .012f}, {-.03f, .012f}, {-.04f, -.01f}};
}

std::vector<Spot> ribbed(float) {
  return {{-.02f, -.02f}, {.055f, -.015f}, {.07f, 0},       {.065f, .018f}, {.03f, .030f},
          {-.02f, .034f}, {-.06f, .030f},  {-.085f, .018f}, {-.09f, -.01f}};
}

/** Folded over, a little uneven. */
std::vector<Spot> rolled(float angle) {
  const float uneven = .016f * (noise({3 * std::sin(angle), 3 * std::cos(angle), 1}) - .5f);
  std::vector<Spot> spots{{.10f, -.01f}, {.19f, .01f}, {.225f, .03f}};
  for (int i = 0; i <= 8; i++) {
    const float t = float(i) / 8;
    spots.push_back(
        {mix(.23f, -.03f, t) + uneven, mix(.048f, .026f, t) + .022f * std::sin(3.1f * t)});
  }
  spots.push_back({-.040f + uneven, .020f});
  spots.push_back({-.052f + uneven, -.03f});
  return spots;
}

/** A stand inside, the fold, and the leaf down to its edge. */
std::vector<Spot> leaf(float fold, float edge, float bulge) {
  std::vector<Spot> spots{{-.06f, -.02f}, {.6f * fold, .012f}, {fold - .01f, .02f}, {fold, .035f}};
  for (int i = 1; i <= 8; i++) {
    const float t = float(i) / 8;
    spots.push_back({mix(fold, edge, t), .040f + bulge * std::sin(2.8f * t)});
  }
  spots.push_back({edge - .008f, .020f});
  spots.push_back({edge - .008f, -.01f});
  return spots;
}

std::vector<Spot> shirtLeaf(float angle) {
  // Longest at its points, in front.
  const float front = .5f + .5f * std::cos(angle);
  return leaf(.15f - .08f * sq(front), -.15f - .30f * std::pow(front, 5.f), .025f);
}

std::vector<Spot> jacketLeaf(float angle) {
  // Towards its ends it narrows into the fold of the lapel.
  const float front = .5f + .5f * std::cos(angle);
  const float from = std::min(angle, kTurn - angle),
              end = smoothstep(kJacketFrom - .1f, kJacketFrom + .23f, from);
  const float fold =
      (.11f - .06f * sq(front)) * smoothstep(kJacketFrom - .05f, kJacketFrom + .17f, from);
  std::vector<Spot> spots = leaf(fold, mix(-.02f, -.19f, end), .012f);
  // Its ends lie under the lapels, so that no corner stands out.
  for (Spot& spot : spots) {
    spot.out *= mix(.3f, 1.f, smoothstep(kJacketFrom, kJacketFrom + .14f, from));
  }
  return spots;
}

void addLapel(const Surface& surface, const Character& c, float side, float top, Mesh& out) {
  const float bottom = -2.75f;
  std::vector<std::vector<Vec3>> rows;
  for (int i = 0; i <= 48; i++) {
    const float v = float(i) / 48, y = mix(bottom, top, v), width = .42f * std::pow(v, .8f);
    // Its upper end lies along the collar.
    const float towardsNeck = .030f * sq(smoothstep(.84f, 1.f, v));
    std::vector<Vec3> row;
    for (int k = 0; k <= 12; k++) {
      // The last places turn down to the jacket.
      const float u = std::min(1.f, float(k) / 10), down = float(std::max(0, k - 10));
      const float x = openingAt(c, y) - .012f + towardsNeck + width * u, low = y - .22f * u * v;
      const float lift = .038f + .045f * std::exp(-sq(u * 3.f)) * v - .022f * down;
      row.push_back({side * (x + .006f * down), low, surface.depth(side * x, low) + lift});
    }
    rows.push_back(row);
  }
  // So does the upper edge.
  std::vector<Vec3> edge = rows.back();
  for (Vec3& p : edge) {
    p = p + Vec3{0, .012f, -.045f};
  }
  rows.push_back(edge);
  addGrid(rows, false, false, Material::kCloth, out);
}

}  // namespace

void addCollar(const Quads& garment, const Head& head, Material layer, Mesh& out) {
  const Surface surface(garment, head, layer);
  if (layer == Material::kCloth2) {
    addBand(surface, 0, kTurn, false, layer, hem, out);
    return;
  }
  switch (head.character().clothes) {
    case Clothes::kCrew:
      addBand(surface, 0, kTurn, true, layer, ribbed, out);
      break;
    case Clothes::kTurtleneck:
      addBand(surface, 0, kTurn, true, layer, rolled, out);
      break;
    case Clothes::kShirt:
      addBand(surface, kShirtFrom, kTurn - kShirtFrom, false, layer, shirtLeaf, out);
      break;
    case Clothes::kBlazer:
      addBand(surface, kJacketFrom, kTurn - kJacketFrom, false, layer, jacketLeaf, out);
      for (const float side : {-1.f, 1.f}) {
        addLapel(surface, head.character(), side, surface.neckline(.70f) + .085f, out);
      }
      break;
  }
}
