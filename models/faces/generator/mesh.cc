// Subdivision, and a tree of boxes that is split at the median.
#include "mesh.h"

#include <map>
#include <numeric>

namespace {

Vertex blend(const std::vector<std::pair<const Vertex*, float>>& parts) {
  Vertex sum{};
  for (const auto& [vertex, weight] : parts) {
    sum.at = sum.at + vertex->at * weight;
    sum.rest = sum.rest + vertex->rest * weight;
    for (size_t k = 0; k < sum.masks.size(); k++) {
      sum.masks[k] += vertex->masks[k] * weight;
    }
  }
  return sum;
}

float& axisOf(Vec3& v, int axis) {
  return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

Vec3 lower(Vec3 a, Vec3 b) {
  return {std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)};
}
Vec3 upper(Vec3 a, Vec3 b) {
  return {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)};
}

/** @returns the point of a triangle that is nearest to p (C. Ericson 2005, 5.1.5) */
Vec3 nearestOf(Vec3 p, Vec3 a, Vec3 b, Vec3 c, float& u, float& v) {
  const Vec3 ab = b - a, ac = c - a, ap = p - a;
  const float d1 = dot(ab, ap), d2 = dot(ac, ap);
  u = v = 0;
  if (d1 <= 0 && d2 <= 0) {
    return a;
  }
  const Vec3 bp = p - b;
  const float d3 = dot(ab, bp), d4 = dot(ac, bp);
  if (d3 >= 0 && d4 <= d3) {
    u = 1;
    return b;
  }
  const float vc = d1 * d4 - d3 * d2;
  if (vc <= 0 && d1 >= 0 && d3 <= 0) {
    u = d1 / (d1 - d3);
    return a + ab * u;
  }
  const Vec3 cp = p - c;
  const float d5 = dot(ab, cp), d6 = dot(ac, cp);
  if (d6 >= 0 && d5 <= d6) {
    v = 1;
    return c;
  }
  const float vb = d5 * d2 - d1 * d6;
  if (vb <= 0 && d2 >= 0 && d6 <= 0) {
    v = d2 / (d2 - d6);
    return a + ac * v;
  }
  const float va = d3 * d6 - d5 * d4;
  if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
    v = (d4 - d3) / ((d4 - d3) + (d5 - d6));
    u = 1 - v;
    return b + (c - b) * v;
  }
  const float whole = 1 / (va + vb + vc);
  u = vb * whole;
  v = vc * whole;
  return a + ab * u + ac * v;
}

}  // namespace

Quads subdivide(const Quads& in) {
  struct Edge {
    int a, b, faces[2] = {-1, -1}, point = -1;
  };
  std::map<std::pair<int, int>, Edge> edges;
  std::vector<std::vector<int>> facesAt(in.vertices.size());
  Quads out;
  std::vector<Vertex> facePoints;
  for (size_t f = 0; f < in.faces.size(); f++) {
    const auto& face = in.faces[f];
    std::vector<std::pair<const Vertex*, float>> parts;
    for (size_t k = 0; k < 4; k++) {
      parts.push_back({&in.vertices[size_t(face[k])], .25f});
      const int a = face[k], b = face[(k + 1) % 4];
      if (a != b) {
        Edge& edge = edges[{std::min(a, b), std::max(a, b)}];
        edge.a = std::min(a, b), edge.b = std::max(a, b);
        edge.faces[edge.faces[0] < 0 ? 0 : 1] = int(f);
      }
      if (facesAt[size_t(a)].empty() || facesAt[size_t(a)].back() != int(f)) {
        facesAt[size_t(a)].push_back(int(f));
      }
    }
    facePoints.push_back(blend(parts));
  }
  std::vector<std::vector<const Edge*>> edgesAt(in.vertices.size());
  for (const auto& [key, edge] : edges) {
    edgesAt[size_t(key.first)].push_back(&edge);
    edgesAt[size_t(key.second)].push_back(&edge);
  }
  for (size_t i = 0; i < in.vertices.size(); i++) {
    const Vertex& old = in.vertices[i];
    std::vector<const Vertex*> ends;
    bool isBorder = false;
    for (const Edge* edge : edgesAt[i]) {
      isBorder = isBorder || edge->faces[1] < 0;
      ends.push_back(&in.vertices[size_t(edge->a == int(i) ? edge->b : edge->a)]);
    }
    const float n = float(ends.size());
    if (isBorder || n < 3 || ends.size() != facesAt[i].size()) {
      out.vertices.push_back(old);
      continue;
    }
    // (F + 2R + (n - 3)P) / n, with R the average of the edges' middles.
    std::vector<std::pair<const Vertex*, float>> parts{{&old, (n - 3) / n + 1 / n}};
    for (size_t k = 0; k < ends.size(); k++) {
      parts.push_back({ends[k], 1 / (n * n)});
      parts.push_back({&facePoints[size_t(facesAt[i][k])], 1 / (n * n)});
    }
    out.vertices.push_back(blend(parts));
  }
  const int firstFace = int(out.vertices.size());
  out.vertices.insert(out.vertices.end(), facePoints.begin(), facePoints.end());
  for (auto& [key, edge] : edges) {
    const Vertex *a = &in.vertices[size_t(edge.a)], *b = &in.vertices[size_t(edge.b)];
    edge.point = int(out.vertices.size());
    out.vertices.push_back(edge.faces[1] < 0 ? blend({{a, .5f}, {b, .5f}})
                                             : blend({{a, .25f},
                                                      {b, .25f},
                                                      {&facePoints[size_t(edge.faces[0])], .25f},
                                                      {&facePoints[size_t(edge.faces[1])], .25f}}));
  }
  const auto middle = [&](int a, int b) {
    return a == b ? a : edges[{std::min(a, b), std::max(a, b)}].point;
  };
  for (size_t f = 0; f < in.faces.size(); f++) {
    for (size_t k = 0; k < 4; k++) {
      const int a = in.faces[f][k], next = in.faces[f][(k + 1) % 4],
                before = in.faces[f][(k + 3) % 4];
      out.faces.push_back({a, middle(a, next), firstFace + int(f), middle(before, a)});
    }
  }
  return out;
}

void computeNormals(Quads& quads) {
  for (Vertex& vertex : quads.vertices) {
    vertex.normal = {0, 0, 0};
  }
  for (const auto& face : quads.faces) {
    const Vec3 n = cross(quads.vertices[size_t(face[2])].at - quads.vertices[size_t(face[0])].at,
                         quads.vertices[size_t(face[3])].at - quads.vertices[size_t(face[1])].at);
    for (const int index : face) {
      quads.vertices[size_t(index)].normal = quads.vertices[size_t(index)].normal + n;
    }
  }
  for (Vertex& vertex : quads.vertices) {
    vertex.normal = normalize(vertex.normal);
  }
}

void Mesh::add(const Quads& quads, Material material) {
  const int base = int(vertices_.size());
  vertices_.insert(vertices_.end(), quads.vertices.begin(), quads.vertices.end());
  for (const auto& f : quads.faces) {
    triangles_.push_back({base + f[0], base + f[1], base + f[2]});
    triangles_.push_back({base + f[0], base + f[2], base + f[3]});
    materials_.insert(materials_.end(), 2, material);
  }
}

void Mesh::build() {
  std::vector<Vec3> centres;
  for (const auto& t : triangles_) {
    centres.push_back(
        (vertices_[size_t(t[0])].at + vertices_[size_t(t[1])].at + vertices_[size_t(t[2])].at) *
        (1 / 3.f));
  }
  order_.resize(triangles_.size());
  std::iota(order_.begin(), order_.end(), 0);
  nodes_.reserve(triangles_.size());
  split(0, int(order_.size()), centres);
}

int Mesh::split(int first, int count, std::vector<Vec3>& centres) {
  const int index = int(nodes_.size());
  Node node{{1e9f, 1e9f, 1e9f}, {-1e9f, -1e9f, -1e9f}, first, count, -1};
  Vec3 low = node.low, high = node.high;
  for (int i = first; i < first + count; i++) {
    const int triangle = order_[size_t(i)];
    for (const int corner : triangles_[size_t(triangle)]) {
      node.low = lower(node.low, vertices_[size_t(corner)].at);
      node.high = upper(node.high, vertices_[size_t(corner)].at);
    }
    low = lower(low, centres[size_t(triangle)]);
    high = upper(high, centres[size_t(triangle)]);
  }
  nodes_.push_back(node);
  if (count <= 4) {
    return index;
  }
  const Vec3 size = high - low;
  const int axis = size.x > size.y && size.x > size.z ? 0 : size.y > size.z ? 1 : 2;
  const int half = count / 2;
  std::nth_element(order_.begin() + first, order_.begin() + first + half,
                   order_.begin() + first + count, [&](int a, int b) {
                     return axisOf(centres[size_t(a)], axis) < axisOf(centres[size_t(b)], axis);
                   });
  split(first, half, centres);
  const int second = split(first + half, count - half, centres);
  nodes_[size_t(index)].count = 0;
  nodes_[size_t(index)].second = second;
  return index;
}

bool Mesh::hitTriangle(int index, Vec3 origin, Vec3 direction, Hit& hit) const {
  // T. Moeller and B. Trumbore 1997.
  const auto& t = triangles_[size_t(index)];
  const Vertex &a = vertices_[size_t(t[0])], &b = vertices_[size_t(t[1])],
               &c = vertices_[size_t(t[2])];
  const Vec3 e1 = b.at - a.at, e2 = c.at - a.at, p = cross(direction, e2);
  const float det = dot(e1, p);
  if (std::fabs(det) < 1e-12f) {
    return false;
  }
  const Vec3 s = origin - a.at;
  const float u = dot(s, p) / det;
  if (u < 0 || u > 1) {
    return false;
  }
  const Vec3 q = cross(s, e1);
  const float v = dot(direction, q) / det;
  if (v < 0 || u + v > 1) {
    return false;
  }
  const float at = dot(e2, q) / det;
  if (at <= 1e-4f || at >= hit.t) {
    return false;
  }
  const Material material = materials_[size_t(index)];
  if (material == Material::kCloth || material == Material::kCloth2) {
    if (a.masks[0] * (1 - u - v) + b.masks[0] * u + c.masks[0] * v < 0) {
      return false;
    }
  }
  hit = {at, index, u, v};
  return true;
}

bool Mesh::trace(Vec3 origin, Vec3 direction, Hit& hit) const {
  const auto inverse = [](float x) { return 1 / (std::fabs(x) < 1e-9f ? 1e-9f : x); };
  const Vec3 inv{inverse(direction.x), inverse(direction.y), inverse(direction.z)};
  const auto enter = [&](const Node& node) {
    const Vec3 a = (node.low - origin) * inv, b = (node.high - origin) * inv;
    const Vec3 near = lower(a, b), far = upper(a, b);
    const float from = std::max(std::max(near.x, near.y), std::max(near.z, 0.f)),
                to = std::min(std::min(far.x, far.y), std::min(far.z, hit.t));
    return from <= to ? from : 1e9f;
  };
  int stack[64], top = 0;
  stack[top++] = 0;
  bool found = false;
  while (top > 0) {
    const Node& node = nodes_[size_t(stack[--top])];
    if (enter(node) >= 1e9f) {
      continue;
    }
    if (node.count > 0) {
      for (int i = node.first; i < node.first + node.count; i++) {
        found = hitTriangle(order_[size_t(i)], origin, direction, hit) || found;
      }
      continue;
    }
    const int first = int(&node - nodes_.data()) + 1, second = node.second;
    const bool swap = enter(nodes_[size_t(first)]) < enter(nodes_[size_t(second)]);
    stack[top++] = swap ? second : first;
    stack[top++] = swap ? first : second;
  }
  return found;
}

float Mesh::distance(Vec3 p, float limit) const {
  const auto boxDistance = [&](const Node& node) {
    const Vec3 away = upper(upper(node.low - p, p - node.high), Vec3{0, 0, 0});
    return dot(away, away);
  };
  float best = limit * limit;
  bool isInside = false;
  int stack[64], top = 0;
  stack[top++] = 0;
  while (top > 0) {
    const Node& node = nodes_[size_t(stack[--top])];
    if (boxDistance(node) >= best) {
      continue;
    }
    if (node.count > 0) {
      for (int i = node.first; i < node.first + node.count; i++) {
        const auto& t = triangles_[size_t(order_[size_t(i)])];
        const Vertex &a = vertices_[size_t(t[0])], &b = vertices_[size_t(t[1])],
                     &c = vertices_[size_t(t[2])];
        float u, v;
        const Vec3 away = p - nearestOf(p, a.at, b.at, c.at, u, v);
        if (dot(away, away) < best) {
          best = dot(away, away);
          isInside = dot(away, a.normal * (1 - u - v) + b.normal * u + c.normal * v) < 0;
        }
      }
      continue;
    }
    const int first = int(&node - nodes_.data()) + 1, second = node.second;
    const bool swap = boxDistance(nodes_[size_t(first)]) < boxDistance(nodes_[size_t(second)]);
    stack[top++] = swap ? second : first;
    stack[top++] = swap ? first : second;
  }
  return std::sqrt(best) * (isInside ? -1.f : 1.f);
}

Vertex Mesh::at(const Hit& hit) const {
  const auto& t = triangles_[size_t(hit.triangle)];
  const Vertex &a = vertices_[size_t(t[0])], &b = vertices_[size_t(t[1])],
               &c = vertices_[size_t(t[2])];
  Vertex sum = blend({{&a, 1 - hit.u - hit.v}, {&b, hit.u}, {&c, hit.v}});
  sum.normal = normalize(a.normal * (1 - hit.u - hit.v) + b.normal * hit.u + c.normal * hit.v);
  return sum;
}
