// Brows and cheeks of the renderer's model (see face_expression.h). Sizes were chosen by eye on the
// default faces and on photographs, in units of the face's height.
#include "core/face_expression.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/face_vertices.h"

namespace mouthpiece::face {
namespace {

/** Vertices of an eye: its corners left and right in the picture, its margins above and below. */
struct EyeVertices {
  int left, right, upper, lower;
};
constexpr std::array<EyeVertices, 2> EYES{{{33, 133, 159, 145}, {362, 263, 386, 374}}};

/**
 * @param indices five landmarks above the brow, then five below it, from outside in
 * @returns for each node how far it follows the brow: 1 on the brow; 0 just above the lid's
 * margin, high on the forehead and beyond the brow's ends. Less when the brow is so close to the
 * eye that the skin between them would have to stretch too much.
 */
std::vector<float> brow(const Model& model, std::span<const int> indices,
                        std::span<const int> margin_of_lid) {
  // With this distance between brow and lid, share of the face's height, the brow moves freely.
  constexpr float FREE = .12f;
  std::vector<float> out(model.weight.size(), 0.f);
  const MonotoneCurve lid = model.curve(margin_of_lid);
  std::vector<Point> points;
  for (size_t i = 0; i < 5; i++) {
    const Point upper = model.local(indices[i]), lower = model.local(indices[i + 5]);
    points.push_back({(upper.x + lower.x) / 2, (upper.y + lower.y) / 2});
  }
  std::sort(points.begin(), points.end(), [](Point a, Point b) { return a.x < b.x; });
  const float left = points.front().x, right = points.back().x, fh = model.face_height,
              margin = .16f * fh;
  const MonotoneCurve line(points);
  model.each_node([&](size_t k, Point p) {
    if (p.x < left - margin || p.x > right + margin) {
      return;
    }
    const float dy = p.y - line(p.x);
    const float across = smoothstep(left - margin, left + .02f * fh, p.x) *
                         smoothstep(right + margin, right - .02f * fh, p.x);
    const float room = std::clamp(lid(p.x) - line(p.x), .05f * fh, .16f * fh),
                free = std::min(1.f, room / (FREE * fh));
    // Skin of the lid stretches evenly: where it stretched most, lashes would become streaks.
    const float below = clamp01((room - .018f * fh - dy) / (room - (.018f + .028f * free) * fh)),
                along = dy > 0 ? mix(below, smoothstep(0, 1, below), .6f)
                               : smoothstep(-.6f * fh, -.06f * fh, dy);
    out[k] = across * along * free * model.weight[k];
  });
  return out;
}

void build_brows(Model& model) {
  model.brow = brow(model, LEFT_BROW, LEFT_LID);
  const std::vector<float> right = brow(model, RIGHT_BROW, RIGHT_LID);
  for (size_t k = 0; k < right.size(); k++) {
    model.brow[k] = std::min(1.f, model.brow[k] + right[k]);
  }
  // A frown lowers the brows' inner ends and raises the outer ones a little.
  const float middle = (model.local(LEFT_BROW[4]).x + model.local(RIGHT_BROW[4]).x) / 2;
  const float width = std::max(
      8.f, distance(model.asset.landmark(LEFT_BROW[0]), model.asset.landmark(RIGHT_BROW[0])) / 2);
  model.brow_inner.assign(model.weight.size(), 0.f);
  model.each_node([&](size_t k, Point p) {
    const float x = std::abs(p.x - middle) / width;
    model.brow_inner[k] =
        model.brow[k] * (smoothstep(.75f, .2f, x) - .35f * smoothstep(.45f, .9f, x));
  });
}

/**
 * @param below distance of the middle from the lower lid
 * @param above how far it reaches up from there; pixels
 */
std::vector<float> cheek(const Model& model, float below, float above) {
  std::vector<float> out(model.weight.size(), 0.f);
  const float under = .2f * model.face_height;
  for (const EyeVertices& eye : EYES) {
    const Point a = model.local(eye.left), b = model.local(eye.right), lid = model.local(eye.lower);
    const float outward = a.x + b.x < 0 ? -1.f : 1.f, length = std::abs(b.x - a.x);
    const Point middle{(a.x + b.x) / 2 + outward * .1f * length, lid.y + below};
    model.each_node([&](size_t k, Point p) {
      const float across = (p.x - middle.x) / (.62f * length),
                  along = (p.y - middle.y) / (p.y < middle.y ? above : under);
      const float far = across * across + along * along;
      if (far < 1) {
        out[k] = std::max(out[k], (1 - far) * (1 - far) * model.weight[k]);
      }
    });
  }
  return out;
}

/**
 * A smile raises the cheeks, and with them the lower lids: most below the outer half of the eye,
 * nothing at the upper lid, the nose and the corner of the mouth. In speech cheeks move as the
 * lips do, and the lids stay.
 */
void build_cheeks(Model& model) {
  const float fh = model.face_height;
  model.cheek = cheek(model, .16f * fh, .22f * fh);
  model.cheek_low = cheek(model, .23f * fh, .14f * fh);
}

/**
 * Creation takes a smile out of the mouth, and less of it out of the eyes. Opening of the
 * narrower eye, share of its width: of smiling eyes and of others. Faces that smiled broadly have
 * the smallest limits of opening.
 */
float cheer(const Asset& asset) {
  constexpr float SMILING = .305f, CALM = .355f, BROAD = .80f, SLIGHT = .87f;
  const auto opening = [&](const EyeVertices& eye) {
    return distance(asset.landmark(eye.upper), asset.landmark(eye.lower)) /
           std::max(1.f, distance(asset.landmark(eye.left), asset.landmark(eye.right)));
  };
  const float eyes = std::min(opening(EYES[0]), opening(EYES[1]));
  return smoothstep(CALM, SMILING, eyes) * smoothstep(SLIGHT, BROAD, asset.limits.open);
}

}  // namespace

void build_expression(Model& model) {
  build_brows(model);
  build_cheeks(model);
  model.cheer = cheer(model.asset);
}

}  // namespace mouthpiece::face
