// Triangle meshes: subdivision, and a tree of boxes for rays and nearest points.
#pragma once
#include <array>
#include <vector>

#include "vec.h"

enum class Material : uint8_t { kSkin, kEye, kCloth, kCloth2, kGlasses };

/** What a ray hit: the triangle, and the weights of its second and third corner. */
struct Hit {
  float t = 1e9f;
  int triangle = -1;
  float u = 0, v = 0;
};

/** Values at a vertex that are interpolated over triangles. */
struct Vertex {
  Vec3 at, normal;
  /** Position in the head's coordinates, before the head was turned. */
  Vec3 rest;
  /** Skin: lips, ears, the inside of the mouth. Cloth: how far inside the neckline; it is cut where
   * negative. */
  std::array<float, 3> masks{};
};

/** A mesh of quadrilaterals, as it is read and subdivided. */
struct Quads {
  std::vector<Vertex> vertices;
  std::vector<std::array<int, 4>> faces;
};

/** One step of E. Catmull and J. Clark 1978. Borders stay where they are. */
Quads subdivide(const Quads& in);
/** Sets the vertices' normals from the faces. */
void computeNormals(Quads& quads);

class Mesh {
 public:
  void add(const Quads& quads, Material material);
  /** Builds the tree. Call it once, after the last `add`. */
  void build();
  /** @returns whether something nearer than `hit.t` was hit; then `hit` is set */
  bool trace(Vec3 origin, Vec3 direction, Hit& hit) const;
  /** @returns the distance, negative inside; `limit` if it is larger than that */
  float distance(Vec3 p, float limit) const;
  Vertex at(const Hit& hit) const;
  Material materialOf(const Hit& hit) const { return materials_[size_t(hit.triangle)]; }
  const std::vector<Vertex>& vertices() const { return vertices_; }
  const std::vector<std::array<int, 3>>& triangles() const { return triangles_; }
  const std::vector<Material>& materials() const { return materials_; }

 private:
  struct Node {
    Vec3 low, high;
    int first, count, second;
  };
  int split(int first, int count, std::vector<Vec3>& centres);
  bool hitTriangle(int index, Vec3 origin, Vec3 direction, Hit& hit) const;

  std::vector<Vertex> vertices_;
  std::vector<std::array<int, 3>> triangles_;
  std::vector<Material> materials_;
  std::vector<int> order_;
  std::vector<Node> nodes_;
};
