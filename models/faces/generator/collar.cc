// Collars: ribbed bands and hems, made as strips that lie on the garment. Sizes in decimetres,
// chosen by eye.
#include "cloth.h"

namespace {

constexpr float kTurn = 6.2831853f;

/** A place of a collar's cross-section: above the neckline, and outwards from the garment. */
struct Spot {
  float up, out;
};

/** The garment's surface, by the angle about the neck (0 in front) and the height. */
class Surface {
 public:
  Surface(Quads garment, const Head& head, Material layer) : head_(head) {
    const Clothes clothes = garmentOf(head.character(), layer);
    for (Vertex& v : garment.vertices) {
      v.masks[0] = 1;  // not cut
    }
    mesh_.add(garment, Material::kSkin);
    mesh_.build();
    for (int i = 0; i < kAngles; i++) {
      float y = -1.1f;
      while (y > -2.2f && insideNeckline(clothes, at(kTurn * float(i) / kAngles, y).rest) < 0) {
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

 private:
  static constexpr int kAngles = 128;
  /** Above the neckline a collar lies on the neck: between them there is no dark gap. */
  Vec3 closer(Vec3 p, Vec3 out, Spot spot) const {
    // Distances are known for the head before it was turned.
    const float gap = head_.distance(head_.atRest(p)) - (.022f + std::max(0.f, spot.out));
    return p - out * (std::max(0.f, gap) * .9f * smoothstep(0.f, .12f, spot.up));
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
void addGrid(const std::vector<std::vector<Vec3>>& rows, bool isRib, Material layer, Mesh& out) {
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
  for (int i = 0; i < n; i++) {
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

/** A strip round the neck. @param section from inside over the top to the outside */
void addBand(const Surface& surface, bool isRib, Material layer, const std::vector<Spot>& section,
             Mesh& out) {
  constexpr int kCount = 160;
  std::vector<std::vector<Vec3>> rows;
  for (int i = 0; i < kCount; i++) {
    std::vector<Vec3> row;
    for (const Spot spot : section) {
      row.push_back(surface.at(kTurn * float(i) / kCount, spot));
    }
    rows.push_back(row);
  }
  addGrid(rows, isRib, layer, out);
}

const std::vector<Spot> kHem{
    {.02f, -.02f}, {.022f, 0}, {.012f, .012f}, {-.03f, .012f}, {-.04f, -.01f}};

const std::vector<Spot> kRibbed{{-.02f, -.02f},  {.030f, -.012f}, {.042f, 0},
                                {.038f, .012f},  {.015f, .020f},  {-.015f, .022f},
                                {-.045f, .019f}, {-.062f, .012f}, {-.066f, -.01f}};

}  // namespace

void addCollar(const Quads& garment, const Head& head, Material layer, Mesh& out) {
  const Surface surface(garment, head, layer);
  const Clothes clothes = garmentOf(head.character(), layer);
  const bool isRib = clothes != Clothes::kTee;
  addBand(surface, isRib, layer, isRib ? kRibbed : kHem, out);
}
