// Fits the lids to the eyes and the lips to each other. Both are measured on the fine mesh, and the
// coarse one is moved.
#include "head.h"

void Head::setRest(const Quads& coarse) {
  Quads fine = subdivide(subdivide(coarse));
  computeNormals(fine);
  rest_ = Mesh();
  rest_.add(fine, Material::kSkin);
  rest_.build();
}

void Head::closeLips(Quads& skin) {
  constexpr int kColumns = 48;
  Vec3 low{9, 9, 9}, high{-9, -9, -9};
  for (const Vertex& v : skin.vertices) {
    if (v.masks[0] > .5f && v.at.z > .3f) {
      low = {std::min(low.x, v.at.x), std::min(low.y, v.at.y), 0};
      high = {std::max(high.x, v.at.x), std::max(high.y, v.at.y), 0};
    }
  }
  for (int round = 0; round < 3; round++) {
    setRest(skin);
    // By column: where the inside of the mouth is seen from the front.
    std::array<float, kColumns> top{}, bottom{};
    for (int i = 0; i < kColumns; i++) {
      const float x = mix(low.x, high.x, float(i) / (kColumns - 1));
      top[size_t(i)] = -9, bottom[size_t(i)] = 9;
      for (float y = low.y; y < high.y + .04f; y += .001f) {
        Hit hit;
        if (rest_.trace({x, y, 3}, {0, 0, -1}, hit) && rest_.at(hit).masks[2] > .3f) {
          top[size_t(i)] = std::max(top[size_t(i)], y);
          bottom[size_t(i)] = std::min(bottom[size_t(i)], y);
        }
      }
    }
    for (Vertex& v : skin.vertices) {
      const float at = (v.at.x - low.x) / (high.x - low.x) * (kColumns - 1);
      if (v.at.z < .2f || at < 0 || at > kColumns - 1) {
        continue;
      }
      const auto i = size_t(at + .5f);
      const float gap = top[i] - bottom[i];
      if (gap > 0) {
        const float from = v.at.y - .5f * (top[i] + bottom[i]);
        v.at.y -= .55f * gap * clampTo(from / (.5f * gap), -1, 1) * gaussian(from, 0, .10f);
        v.rest = v.at;
      }
    }
  }
}

void Head::fitLids(Quads& skin) {
  // In a relaxed gaze the upper lid covers a quarter of the iris, the lower one its edge,
  // which a smile raises.
  const float iris = irisRadius();
  for (int round = 0; round < 3; round++) {
    setRest(skin);
    findLids();
    const float up = .50f * iris + c_.sculpt.upperLid - lid(true, 0),
                down = (-.86f + .07f * c_.expression.smile) * iris - c_.sculpt.lowerLid -
                       lid(false, 0);
    for (Vertex& v : skin.vertices) {
      const Eye& eye = eyesAtRest_[v.at.x > 0 ? 1 : 0];
      const Vec3 d = v.at - eye.centre;
      const float x = v.at.x > 0 ? d.x : -d.x;
      const float along = std::sqrt(clamp01(
          1 - sq((x - .5f * (corners_[0] + corners_[1])) / (.5f * (corners_[1] - corners_[0])))));
      const float far = length(d);
      if (along <= 0 || d.z < 0 || far > 2 * eye.radius) {
        continue;
      }
      const float upper = lid(true, x), lower = lid(false, x), middle = .5f * (upper + lower);
      // Half of it has faded a lid's height away.
      const float moved = d.y > middle ? up * gaussian(d.y, upper, d.y > upper ? .075f : 1.f)
                                       : down * gaussian(d.y, lower, d.y < lower ? .065f : 1.f);
      // Along the ball, so that lids neither enter it nor stand off.
      Vec3 to = d + Vec3{0, moved * along, 0};
      to = to * (mix(1.f, far / length(to), smoothstep(1.5f, 1.1f, far / eye.radius)));
      v.at = v.rest = eye.centre + to;
    }
  }
}
