// The surface of lips that purse (see face_pursed.h). Amounts were chosen by eye on photographs and
// on the default faces.
#include "core/face_pursed.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mouthpiece::face {
namespace {

/** The lips' colours are taken from these shares of their thickness. */
constexpr std::array<float, 4> THICKNESS{.4f, .5f, .6f, .7f};
/** Beside this many half widths lips are too thin to show their colour. */
constexpr float THIN = .72f;
/** Columns that are averaged on either side, half widths. */
constexpr float ALONG = .07f;
/** How much darker lips are where they touch, and towards the corner. */
constexpr float TOUCH = .05f, CORNER = .10f;
/** How much darker the line between them is beside the opening, and its width, share of the reach.
 */
constexpr float LINE = .18f, LINE_REACH = .5f;
/**
 * The line's reach is this share of a lip's thickness, in the middle and at the corners, and within
 * these shares of face height.
 */
constexpr float REACH = .45f, REACH_END = .9f, NARROW = .010f, WIDE = .028f;
/** How far from the contour a resting mouth's dark line may be, and at the corner; half widths. */
constexpr float STRAY = .18f, STRAY_END = .26f;
/**
 * Share of the hue of the lips' middle in that of their sides, where shadows tint them, and of its
 * light where it is more.
 */
constexpr float ONE_HUE = .5f, ONE_LIGHT = .65f;

/** A crease across a lip. */
struct Crease {
  float side, depth;  // from the middle, half widths; 0 to 1
};
constexpr std::array<Crease, 7> UPPER{
    {{-.53f, .6f}, {-.37f, 1}, {-.16f, .7f}, {.03f, .5f}, {.21f, 1}, {.33f, .55f}, {.55f, .8f}}};
constexpr std::array<Crease, 8> LOWER{{{-.57f, .7f},
                                       {-.41f, .9f},
                                       {-.29f, .55f},
                                       {-.08f, .8f},
                                       {.06f, .6f},
                                       {.24f, 1},
                                       {.45f, .75f},
                                       {.58f, .6f}}};
/** Half width of a crease, half widths of the mouth; depth in luma, at a luma of 150. */
constexpr float CREASE = .055f, DEPTH = 12;
/** Creases spread from the opening: at the lips' outer edges by this share. */
constexpr float SPREAD = .3f;
/** Detail of the lips' own, as a share of their luma, beside which no crease is drawn. */
constexpr float DETAILED = .06f;
/** How much of the lips' own dark detail is added to it, and most of it; luma. */
constexpr float DEEPER = .35f, DEEPEST = 5;

float bell(float x) {
  return x * x < 1 ? (1 - x * x) * (1 - x * x) : 0;
}

template <size_t N>
float crease_at(const std::array<Crease, N>& creases, float side) {
  float sum = 0;
  for (const Crease& crease : creases) {
    const float x = (side - crease.side) / CREASE;
    // One bank of a crease catches light.
    sum += crease.depth * (bell(x) - .45f * bell(x - 1.3f));
  }
  return sum;
}

}  // namespace

Pursed::Pursed(const Model& model, const std::array<Grey, 3>& picture, int left, int top,
               Colour red, float reddened)
    : c_(model.contours), fh_(model.face_height), softness_(model.softness) {
  const float wn = c_.half_width;
  const auto pixel = [&](float x, float y) {
    const Point p = model.frame.to_picture(x, y);
    const int px = std::clamp(int(p.x) - left, 0, picture[0].width - 1),
              py = std::clamp(int(p.y) - top, 0, picture[0].height - 1);
    return size_t(py) * size_t(picture[0].width) + size_t(px);
  };
  const auto column = [&](float x) {
    return size_t(std::clamp(int(x - c_.left), 0, c_.count - 1));
  };
  const auto lip = [&](float x, bool is_upper) {
    const float at = std::clamp(x, c_.centre - THIN * wn, c_.centre + THIN * wn);
    const float step = ALONG * wn / 3;
    Colour sum{0, 0, 0};
    for (int i = -3; i <= 3; i++) {
      const float u = at + float(i) * step, seam = c_.seam[column(u)],
                  edge = is_upper ? c_.upper_outer[column(u)] : c_.lower_outer[column(u)];
      for (const float share : THICKNESS) {
        const size_t k = pixel(u, mix(seam, edge, share));
        sum = {sum.y + picture[0].data[k], sum.u + picture[1].data[k], sum.v + picture[2].data[k]};
      }
    }
    const float mass = 7 * float(THICKNESS.size());
    return Colour{sum.y / mass, sum.u / mass, sum.v / mass};
  };
  for (int i = 0; i < c_.count; i++) {
    const float x = c_.left + float(i);
    const Colour upper = lip(x, true);
    lips_.push_back({{mix(upper.y, red.y, reddened), mix(upper.u, red.u, reddened),
                      mix(upper.v, red.v, reddened)},
                     lip(x, false)});
  }
  const Lips middle_lips = lips_[size_t(c_.count / 2)];
  for (Lips& lips : lips_) {
    for (auto [one, all] :
         {std::pair{&lips.upper, &middle_lips.upper}, std::pair{&lips.lower, &middle_lips.lower}}) {
      one->y = std::max(one->y, mix(one->y, all->y, ONE_LIGHT));
      one->u = mix(one->u, all->u, ONE_HUE);
      one->v = mix(one->v, all->v, ONE_HUE);
    }
  }
  // The detail of the lower lip, along its middle.
  float rough = 0, luma = 1;
  const float middle = .5f * c_.lower_thick;
  for (float u = -.5f * wn; u < .5f * wn; u++) {
    const float x = c_.centre + u, y = c_.seam[column(x)] + middle,
                here = picture[0].data[pixel(x, y)],
                around = (picture[0].data[pixel(x - .06f * wn, y)] +
                          picture[0].data[pixel(x + .06f * wn, y)]) /
                         2;
    rough += std::abs(here - around);
    luma += here;
  }
  drawn_ = smoothstep(DETAILED, .3f * DETAILED, rough / luma) * smoothstep(1.6f, .5f, softness_);
}

Colour Pursed::without_line(const Place& at, Colour here, Colour filled) const {
  const float r = std::abs(at.side), wn = c_.half_width, away = std::abs(at.below);
  const float end = smoothstep(.6f, .9f, r);
  const size_t k = size_t(std::clamp(int(at.column), 0, c_.count - 1));
  const auto reach = [&](float thick) {
    return std::clamp(mix(REACH, REACH_END, end) * thick, NARROW * fh_, WIDE * fh_);
  };
  const float up = reach(c_.seam[k] - c_.upper_outer[k]),
              down = reach(c_.lower_outer[k] - c_.seam[k]);
  const float across = smoothstep(-up, down, at.below), near = at.below < 0 ? up : down;
  const Lips& lips = lips_[k];
  const float shade = 1 - TOUCH * (1 - smoothstep(0, near, away)) -
                      LINE * (1 - smoothstep(0, LINE_REACH * near, away)) * smoothstep(1, .7f, r) -
                      CORNER * smoothstep(.5f, 1, r);
  const Colour red{shade * mix(lips.upper.y, lips.lower.y, across),
                   mix(lips.upper.u, lips.lower.u, across),
                   mix(lips.upper.v, lips.lower.v, across)};
  const float on_lips =
      smoothstep(1.3f, .7f, std::max(at.upper, at.lower)) * smoothstep(1.03f, .85f, r);
  const Colour target{mix(filled.y, red.y, on_lips), mix(filled.u, red.u, on_lips),
                      mix(filled.v, red.v, on_lips)};
  // The dark line of a resting mouth may be beside the contour.
  const float far = mix(STRAY, STRAY_END, end),
              stray = smoothstep(far, .5f * far, away / wn) * smoothstep(2, 10, target.y - here.y) *
                      smoothstep(1.25f, 1.05f, r),
              line = on_lips * smoothstep(near, .4f * near, away);
  const float amount = std::max(stray, line);
  return {mix(here.y, target.y, amount), mix(here.u, target.u, amount),
          mix(here.v, target.v, amount)};
}

float Pursed::creases(const Place& at, float fine) const {
  const bool is_upper = at.below < 0;
  const float out = is_upper ? at.upper : at.lower, side = at.side / (1 + SPREAD * out);
  const float where = smoothstep(1, .7f, out) * smoothstep(.85f, .6f, std::abs(at.side));
  if (where <= 0) {
    return 0;
  }
  const float made = is_upper ? crease_at(UPPER, side) : crease_at(LOWER, side);
  const float own = std::clamp(fine, -DEEPEST / DEEPER, 0.f);
  return where * (DEEPER * own - DEPTH * drawn_ * mix(1, .5f, out) * made);
}

float gathered(float from, float below) {
  const float r = std::abs(from), x = r - .92f, away = std::sqrt(x * x + below * below) + 1e-3f;
  // A hollow at the corner; folds run from it like the ribs of a fan, other ones on either side.
  const float angle = std::atan2(below, x), turn = from < 0 ? .5f : -.2f;
  const float fan = smoothstep(1.4f, .7f, std::abs(angle)) * bell((away - .26f) / .2f);
  return -5 * bell(x / .2f) * bell(below / .2f) + 6 * fan * std::sin(6.5f * angle + turn);
}

}  // namespace mouthpiece::face
