// Brows and cheeks of the renderer's model (see face_expression.h). Sizes were chosen by eye on the
// default faces and on photographs, in units of the face's height.
#include "core/face_expression.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/face_eyes.h"
#include "core/face_vertices.h"

namespace mouthpiece::face {
namespace {

/** Vertices of an eye: its corners left and right in the picture, its margins above and below. */
struct EyeVertices {
  int left, right, upper, lower;
};
constexpr std::array<EyeVertices, 2> EYES{{{33, 133, 159, 145}, {362, 263, 386, 374}}};

/** Height of the lashes above the lid's margin, which do not follow the brow. */
constexpr float LASHES = .026f;
/** Farthest that brows move up, that of surprise, share of the face's height. */
constexpr float FARTHEST_UP = .045f;
/** How far the skin below a brow is stretched and compressed at most, shares of its height. */
constexpr float STRETCHED = .8f, COMPRESSED = .85f;

/** A brow, in the mouth's coordinates. Its ends are those of the landmarks. */
struct Brow {
  float left, right;
  MonotoneCurve line;   // the middle between its landmarks
  MonotoneCurve under;  // where its hair ends
  MonotoneCurve lid;    // the margin of the upper lid
};

/**
 * Landmarks are where brows of most people are. Of those that are low, above deep eyes, half of the
 * hair is below them. The hair ends where the picture is half as light as the skin of the lid.
 * @param line the middle between a brow's landmarks at `x` @param below the lowest of them
 * @param lid the margin of the lid there
 * @returns where the hair ends
 */
float hair_ends(const Model& model, float x, float line, float below, float lid) {
  constexpr float ABOVE = .03f, ASIDE = .02f, NEAREST = .03f;
  // Luma by which brows are darker than the skin below them, at least.
  constexpr float DARKER = 12;
  const float fh = model.face_height, top = line - ABOVE * fh,
              bottom = std::max(below, lid - NEAREST * fh);
  const int rows = std::max(1, int(bottom - top));
  std::vector<float> luma;
  for (int i = 0; i <= rows; i++) {
    float sum = 0;
    for (const float aside : {-1.f, -.5f, 0.f, .5f, 1.f}) {
      const Point p = model.frame.to_picture(x + aside * ASIDE * fh, top + float(i));
      sum += picture_at(model.asset, p.x, p.y).y;
    }
    luma.push_back(sum / 5);
  }
  const auto darkest = std::min_element(luma.begin(), luma.end()),
             lightest = std::max_element(darkest, luma.end());
  if (*lightest - *darkest < DARKER) {
    return below;
  }
  const auto end =
      std::find_if(darkest, lightest, [&](float at) { return at > (*darkest + *lightest) / 2; });
  return std::max(below, top + float(end - luma.begin()));
}

/** @param indices five landmarks above the brow, then five below it, from outside in */
Brow find_brow(const Model& model, std::span<const int> indices, std::span<const int> margin) {
  constexpr size_t PLACES = 5;
  const MonotoneCurve lid = model.curve(margin);
  std::vector<std::pair<Point, Point>> pairs;
  for (size_t i = 0; i < PLACES; i++) {
    pairs.emplace_back(model.local(indices[i]), model.local(indices[i + PLACES]));
  }
  const auto across = [](const auto& pair) { return pair.first.x + pair.second.x; };
  std::sort(pairs.begin(), pairs.end(),
            [&](const auto& a, const auto& b) { return across(a) < across(b); });
  std::vector<Point> points, ends;
  std::array<float, PLACES> further{};
  for (size_t i = 0; i < PLACES; i++) {
    const auto& [above, below] = pairs[i];
    const Point middle{(above.x + below.x) / 2, (above.y + below.y) / 2};
    points.push_back(middle);
    further[i] = hair_ends(model, middle.x, middle.y, below.y, lid(middle.x)) - below.y;
  }
  for (size_t i = 0; i < PLACES; i++) {
    // The median: a crease, a rim of glasses or a strand may pass for the hair's end at one place.
    const float a = further[i == 0 ? 1 : i - 1], b = further[i],
                c = further[i + 1 < PLACES ? i + 1 : i - 1];
    const float median = std::max(std::min(a, b), std::min(std::max(a, b), c));
    ends.push_back({points[i].x, pairs[i].second.y + median});
  }
  return {points.front().x, points.back().x, MonotoneCurve(points), MonotoneCurve(ends), lid};
}

/**
 * Sets for each node how far it follows a brow that rises, and one that frowns: 1 on the brow; 0
 * just above the lid's margin, high on the forehead and beyond the brow's ends. Less when the brow
 * is so close to the eye that the skin between them would have to stretch too much.
 */
void follow(Model& model, const Brow& brow, float middle, float width) {
  constexpr int PLACES = 9;
  // The least height of skin that is stretched, share of the mean: a crease may pass for hair.
  constexpr float EVEN = .5f;
  const float fh = model.face_height, margin = .16f * fh;
  const auto skin = [&](float x) {
    return std::max(brow.lid(x) - LASHES * fh - brow.under(x), .008f * fh);
  };
  float sum = 0;
  for (int i = 0; i < PLACES; i++) {
    sum += skin(mix(brow.left, brow.right, (float(i) + .5f) / PLACES));
  }
  const float mean = sum / PLACES, free = std::min(1.f, STRETCHED * mean / (FARTHEST_UP * fh));
  model.each_node([&](size_t k, Point p) {
    if (p.x < brow.left - margin || p.x > brow.right + margin) {
      return;
    }
    const float across = smoothstep(brow.left - margin, brow.left + .02f * fh, p.x) *
                         smoothstep(brow.right + margin, brow.right - .02f * fh, p.x);
    // Skin of the lid stretches evenly: where it stretched most, lashes would become streaks.
    const float room = std::max(skin(p.x), EVEN * mean), lid = brow.lid(p.x) - LASHES * fh,
                along = p.y > lid - room ? clamp01((lid - p.y) / room)
                                         : smoothstep(-.6f * fh, -.06f * fh, p.y - brow.line(p.x));
    const float follows = across * along * free * model.weight[k];
    // A frown lowers the brows' inner ends and raises the outer ones a little.
    const float x = std::abs(p.x - middle) / width;
    model.brow[k] = std::min(1.f, model.brow[k] + follows);
    model.brow_inner[k] += follows * (smoothstep(.75f, .2f, x) - .35f * smoothstep(.45f, .9f, x));
    model.brow_room[k] = std::max(model.brow_room[k], COMPRESSED * room * along);
  });
}

void build_brows(Model& model) {
  const float middle = (model.local(LEFT_BROW[4]).x + model.local(RIGHT_BROW[4]).x) / 2;
  const float width = std::max(
      8.f, distance(model.asset.landmark(LEFT_BROW[0]), model.asset.landmark(RIGHT_BROW[0])) / 2);
  model.brow.assign(model.weight.size(), 0.f);
  model.brow_inner.assign(model.weight.size(), 0.f);
  model.brow_room.assign(model.weight.size(), 0.f);
  follow(model, find_brow(model, LEFT_BROW, LEFT_LID), middle, width);
  follow(model, find_brow(model, RIGHT_BROW, RIGHT_LID), middle, width);
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
