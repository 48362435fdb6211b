// Glasses: tubes along lines. Sizes were chosen by eye.
#include "head.h"

namespace {

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
    addTube(rim, true, .0085f, head, out);
    const Vec3 hinge{side * (eye.centre.x + .225f), eye.centre.y + .04f, bridge.z - .06f};
    addTube({hinge,
             hinge + Vec3{side * .09f, .01f, -.12f},
             {side * (eye.centre.x + .41f), eye.centre.y + .05f, -.1f},
             {side * (eye.centre.x + .43f), eye.centre.y + .0f, -.35f}},
            false, .010f, head, out);
  }
  std::vector<Vec3> middle;
  for (int i = 0; i <= 8; i++) {
    const float t = float(i) / 4 - 1;
    middle.push_back(
        {.085f * t, eye.centre.y + .03f - .025f * t * t, bridge.z + .055f - .02f * t * t});
  }
  addTube(middle, false, .008f, head, out);
}
