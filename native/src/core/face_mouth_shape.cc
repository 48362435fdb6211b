// The mouth's movements (see face_mouth_shape.h). Lengths are shares of the face's height; columns
// follow the lips' contours. Amounts without another source were chosen by eye on the default
// faces.
#include "core/face_mouth_shape.h"

#include <algorithm>

#include "core/face_pucker.h"

namespace mouthpiece::face {
namespace {

// Chosen by eye on the default faces.
constexpr std::array<Mood, EMOTIONS> MOODS{{
    {},
    {.smile = 1.5f, .brow = .3f, .frown = 0, .lids = 0, .press = 0, .open = 0, .gain = 1.05f},
    {.smile = -.95f, .brow = .3f, .frown = -1.7f, .lids = .3f, .press = 0, .open = 0, .gain = .8f},
    {.smile = .05f,
     .brow = 1.25f,
     .frown = 0,
     .lids = -.08f,
     .press = 0,
     .open = .4f,
     .gain = 1.1f},
    {.smile = -.6f,
     .brow = -.7f,
     .frown = 2.1f,
     .lids = .14f,
     .press = .5f,
     .open = 0,
     .gain = 1.08f},
    {.smile = .42f, .brow = -.1f, .frown = 0, .lids = .3f, .press = 0, .open = 0, .gain = .85f},
}};

/** The profile of an opening along the lips: (1 - x^2)^power for |x| < 1, tabulated. */
class Profile {
 public:
  explicit Profile(float power) {
    for (size_t i = 0; i < table_.size(); i++) {
      const float x = std::min(1.f, float(i) / STEPS);
      table_[i] = std::pow(1 - x * x, power);
    }
  }
  float operator()(float x) const {
    const float at = std::abs(x) * STEPS;
    if (at >= STEPS) {
      return 0;
    }
    const int i = int(at);
    return mix(table_[size_t(i)], table_[size_t(i) + 1], at - float(i));
  }

 private:
  static constexpr float STEPS = 256;
  std::array<float, 258> table_{};
};

const Profile ALMOND(.95f), BOWL(.68f), ELLIPSE(.5f);

/** Most rows on either side over which a steep edge of the opening is blurred. */
constexpr float BLURRED = 3;
/**
 * Steepest edge of the opening, pixels down per pixel across. A steeper edge would stretch one or
 * two columns of the lip into a visible thread.
 */
constexpr float STEEPEST = 4.5f;
/**
 * The corners' movement ends at this many half widths of the mouth. Further out it would bend the
 * smile lines and the jaw's outline.
 */
constexpr float CHEEK = 1.9f;
/**
 * A corner moves by this share of the distance to the outline and this many half widths at most:
 * more would bend the outline. Only heads that are turned have so little skin there.
 */
constexpr float BESIDE = .5f, LEAST_MOVED = .06f;
/** Share of the upper lip's movement that the wings of the nose follow. */
constexpr float NOSTRILS = .13f;
/** Rounding takes this share of a crooked mouth's slope away: all of it before it is full. */
constexpr float LEVELLED = 1.15f;
/**
 * How far a jaw that is open as far as can be lowers the lower lip and the chin, shares of the
 * face's height. The skin of the chin follows late and seldom goes all the way.
 */
constexpr float DROP = .18f, CHIN_DROP = .26f;
/**
 * The jaw turns about the ears: its movement ends at so many half widths of the mouth from the
 * middle, or where the face's side is on a head that is turned, at this share of its distance; and
 * is full up to this share of that.
 */
constexpr float JAW_ENDS = 2.5f, ANGLE = 1.15f, JAW_FULL = .36f;
/** Lips that press or bite take this share out of the line of a smile as deep, face heights. */
constexpr float SET = .6f, SMILING = .1f;
/**
 * A face that speaks with a smile opens its mouth wider by this share, its corners go up by this
 * one (face heights), and the jaw takes so much less of the smile. Over smiling eyes corners that
 * go down looked like a snarl.
 */
constexpr float CHEER_WIDE = .05f, CHEER_LIFT = .037f, CHEER_KEEPS = .6f;
/**
 * A dropped jaw arches the line between the lips: how far it lowers the corners, share of the
 * face's height; how much of that comes near them alone, which leaves the middle straight; and the
 * share of the opening's half width that stays closed at each corner. Of a calm face, and of one
 * that speaks with a smile: that opens along its smile, and an arch cuts its corners off.
 */
constexpr std::array<float, 2> ARCH{.124f, .094f}, STRAIGHT{.1f, .8f}, BLUNT{.08f, .18f};
/** From this jaw on no more of the opening stays closed: the line between the lips would show. */
constexpr float BLUNTEST = .65f;
/**
 * Widths of mouths that are narrow and that are not, in distances between the eyes. A dropped jaw
 * would make narrow ones a ring: it arches them by this instead, lets them spread by this share,
 * and makes their upper and lower lip thinner by these.
 */
constexpr float NARROW = .51f, NOT_NARROW = .58f, NARROW_ARCH = .098f, SPREADS = .04f,
                THINNER_UPPER = .15f, THINNER_LOWER = .25f;
/** Share of their width that other mouths lose when the jaw drops. */
constexpr float SHORTENED = .18f;
/**
 * How round a dropped jaw makes the ends of the opening. With more of it mouths looked like boxes:
 * in people the lips taper towards the corners (docs/faces-judged.md, round 32).
 */
constexpr float OVAL = .4f;
/**
 * Rounding of the lips of a mouth that a mood opens, share of that: without it surprise is a grin.
 */
constexpr float AJAR_ROUND = .5f;
/** Half width of the lower lip's outer edge of a mouth that is open, in half widths. */
constexpr float AROUND = .94f;
/** Rounded lips that part leave this opening besides, share of the face's height. */
constexpr float ROUND_OPENING = .022f;
/** Share of the narrowing of rounded lips that comes as soon as their shape is round. */
constexpr float NARROWED = .6f;
/** What the lips' rounding is when their shape is that of rounded lips. */
constexpr float ROUNDED = .57f;
/** Lips that are thin and that are full, shares of the face's height. */
constexpr float THIN_LIP = .03f, FULL_LIP = .07f;
/** Share of the face's height by which full pressure closes the lips beyond their touch. */
constexpr float MEET = .065f;
/**
 * This share of the face's height is shadow between closed lips. It disappears when the lips part.
 */
constexpr float SHADOW = .008f;

/**
 * @returns the profile at `r`, 1 in the middle, with a slope of at most `most` towards the corner
 */
float rounded(float profile, float r, float most) {
  const auto bound = [most](float p, float to_corner) {
    const float steep = p / (most * to_corner + 1e-6f), squared = steep * steep,
                fourth = squared * squared;
    return p / std::sqrt(std::sqrt(1 + fourth));
  };
  return r < 1 ? bound(profile, 1 - r) / bound(1, 1) : 0.f;
}

}  // namespace

const Mood& mood_of(int emotion) {
  return MOODS[size_t(std::clamp(emotion, 0, EMOTIONS - 1))];
}

Mood mix(const Mood& a, const Mood& b, float t) {
  return {mix(a.smile, b.smile, t), mix(a.brow, b.brow, t),   mix(a.frown, b.frown, t),
          mix(a.lids, b.lids, t),   mix(a.press, b.press, t), mix(a.open, b.open, t),
          mix(a.gain, b.gain, t)};
}

void shape_mouth(const Model& model, const Articulation& articulation, const Mood& mood, float chin,
                 Mouth& mouth) {
  const Contours& c = model.contours;
  const float fh = model.face_height, wn = c.half_width;
  Articulation a = articulation;
  const float gain = mood.gain;
  a.jaw = clamp01(a.jaw * gain);
  a.open = clamp01(a.open * gain + mood.open * (1 - a.press));
  const float ajar = mood.open * (1 - a.press) * (1 - a.speech);
  a.jaw = std::max({a.jaw, ajar, .7f * (a.open - .35f)});  // lips that open wide take the jaw along
  a.round = std::min(std::max(a.round * std::min(gain, 1.f), AJAR_ROUND * ajar),
                     model.asset.limits.round);
  a.press = std::max(a.press, mood.press * (1 - smoothstep(0, .15f, std::max(a.open, a.jaw))));
  mouth.now = a;

  // Old people open their mouths less.
  const float unit = fh * model.asset.limits.open * (1 - .12f * model.grade.age);
  const float drop = DROP * unit * a.jaw;
  // The skin of the chin is above rest at no time: only the jaw carries it down.
  const float chin_drop = CHIN_DROP * unit * clamp01(a.jaw + chin * gain);
  const float free = (1 - a.press) * (1 - .85f * a.tuck);
  // Lips that press or bite are not round, whatever sounds come before and after.
  const float rounding = smoothstep(0, ROUNDED, a.round) * (1 - std::max(a.press, a.tuck));
  // Protruding lips leave a small opening in their middle.
  const float apart = (.205f * a.open * (1 + .12f * a.open) * (1 - .34f * a.round) +
                       .045f * a.jaw * (1 - .4f * a.round)) *
                          unit * free +
                      .033f * fh * a.tuck * (1 - a.press) +
                      ROUND_OPENING * fh * rounding * smoothstep(0, .15f, std::max(a.open, a.jaw));
  // Pressing lips meet before they press fully: of a short closure a frame may show the half alone.
  const float aperture = std::max(0.f, apart - MEET * fh * a.press);
  // The jaw carries the lower lip. Aperture beyond that is shared between the lips; with less, the
  // lips close from both sides.
  const float excess = aperture - .92f * drop;
  const float upper = (.25f + .08f * a.wide) * excess + .028f * fh * a.upraise * (1 - a.press) +
                      .022f * fh * a.tuck * (1 - a.press);

  // Lips that press or bite level their line, as corners that hang would look sullen and raised
  // ones like a smirk; and they are as wide as at rest, whatever sounds come before and after.
  const float set = std::max(a.press, a.tuck);
  // When the jaw drops, corners that a smile has pulled apart come together. People spread their
  // lips by 6 to 12 % of the distance between their eyes.
  const float smiling = clamp01(c.smile / (.2f * wn)) * (1 - .5f * a.wide);
  const float narrow = smoothstep(NOT_NARROW, NARROW, c.by_eyes);
  const float parts = std::max(a.jaw, .8f * a.open) * (1 - a.round) * free, cheer = model.cheer;
  const float kx =
      std::clamp(-c.narrowing * std::max(std::pow(a.round, 1.5f) * (1 - set), NARROWED * rounding) +
                     .31f * a.wide * (1 - .6f * a.round) * (1 - .4f * smiling) +
                     .12f * a.teeth * clamp01(1 - 1.5f * a.round) * (1 - .4f * smiling) +
                     .07f * std::max(0.f, mood.smile) - .01f * a.press + .01f * a.tuck -
                     (mix(SHORTENED, -SPREADS, narrow) + .045f * smiling) * (1 - cheer) * a.jaw -
                     .04f * smiling * (1 - cheer) * a.open + CHEER_WIDE * cheer * parts,
                 -.6f, .3f);
  const float corner = wn * (1 + kx), most = std::min(float(c.count - 1) / 2, CHEEK * wn);
  // The skin that compensates ends at the face's outline: behind it is background. The lips' middle
  // stays: of a head that is turned the far half is shorter, and its corner moves less.
  const float turned = c.middle - c.centre;
  std::array<float, 2> reach{}, half{wn + turned, wn - turned}, scale{};
  for (size_t i = 0; i < reach.size(); i++) {
    const float most_moved = wn * (LEAST_MOVED + BESIDE * std::max(0.f, c.room[i]));
    scale[i] = 1 + std::clamp(kx * half[i], -most_moved, most_moved) / half[i];
    const float room = std::clamp(c.outline[i] * wn, std::min(1.3f * wn, most), most) - wn;
    reach[i] = half[i] + std::max(room, .3f * half[i]);
  }
  // Pressed lips are thinner. Of thin ones little would be left.
  const auto thinner = [&](float thick, float thin, float full) {
    return thick * (a.press * mix(thin, full, smoothstep(THIN_LIP * fh, FULL_LIP * fh, thick)));
  };
  // A jaw that drops stretches those of a narrow mouth.
  const float stretched = narrow * a.jaw;
  const float less_upper =
                  thinner(c.upper_thick, .02f, .13f) + stretched * THINNER_UPPER * c.upper_thick,
              less_lower =
                  thinner(c.lower_thick, .04f, .22f) + stretched * THINNER_LOWER * c.lower_thick;
  // Lips roll in for m, p and b; the lower one goes under the teeth for f and v.
  const float hide_upper = c.upper_thick * (.17f * a.press + .05f * a.tuck);
  const float hide_lower = c.lower_thick * (.27f * a.press + .66f * a.tuck);
  // The lips part in the middle. Beside the opening they stay together.
  const float parted = smoothstep(0, .07f * fh, aperture);
  const float parting =
      std::clamp(mix(.82f, .97f - .35f * std::max(0.f, 1 - model.asset.limits.open),
                     std::max(parted, a.wide)) -
                     .06f * a.tuck - mix(BLUNT[0], BLUNT[1], cheer) * std::min(a.jaw, BLUNTEST),
                 .4f, 1.f);
  const Pucker pucker(c, fh, rounding, aperture);
  const float half_opening = pucker.half_opening(corner * parting), inner = half_opening / corner,
              outer = mix(inner, std::max(inner, AROUND), clamp01(2 * a.jaw));
  const float steepest = STEEPEST * corner * inner / std::max(1.f, aperture);
  // Opening lips take the smile out of their line.
  const float opened = clamp01(std::max({a.round, .9f * a.jaw, .8f * a.open})),
              relax = c.smile * (1 - CHEER_KEEPS * cheer) *
                      mix(opened, SET * smoothstep(0, SMILING * fh, c.smile), set);
  // A crooked mouth becomes more even: most when it rounds.
  const float even = clamp01(std::max({LEVELLED * a.round, 1.1f * a.jaw, .75f * a.open}));

  const float arch = mix(mix(ARCH[0], NARROW_ARCH, narrow), ARCH[1], cheer),
              straight = mix(STRAIGHT[0], STRAIGHT[1], cheer) * a.jaw;
  const float oval = OVAL * a.jaw;

  mouth.columns.resize(size_t(c.count));
  mouth.aperture = aperture;
  mouth.half_opening = half_opening;
  mouth.jaw_drop = drop;
  mouth.chin_drop = chin_drop;
  mouth.crease = clamp01(a.press);
  mouth.touching = rounding;
  mouth.corner = corner;
  bool moved = false;
  for (int i = 0; i < c.count; i++) {
    const float x = c.left + float(i) - c.centre, along = x - turned, ax = std::abs(along);
    // Horizontally the lips scale with the corners. The skin beyond them compensates.
    const size_t side = along < 0 ? 0 : 1;
    const float end = half[side] * scale[side];
    const float outwards =
        ax < end ? ax - ax / scale[side] : (end - half[side]) * smoothstep(reach[side], end, ax);
    const float dx = side == 0 ? -outwards : outwards;
    const float xs = x - dx, r = std::abs(xs) / wn;
    const float column = std::clamp(xs + c.centre - c.left, 0.f, float(c.count - 1) - 1e-3f);
    const size_t k = size_t(column);
    const float f = column - float(k);
    const auto neutral = [&](const std::vector<float>& curve) {
      return mix(curve[k], curve[k + 1], f);
    };
    const float across = std::clamp(c.centre - xs - c.left, 0.f, float(c.count - 1));
    const float crooked = (neutral(c.seam) - c.seam[size_t(across)]) / 2;

    // The upper lip's edge is almond-shaped. A dropped jaw makes the lower one bowl-shaped.
    const float ri = r / inner;
    const float rising = mix(mix(ALMOND(ri), BOWL(ri), .7f * a.jaw), ELLIPSE(ri), .5f * oval),
                falling =
                    rounded(mix(mix(ALMOND(ri), BOWL(ri), a.jaw), ELLIPSE(ri), oval), ri, steepest);
    // The lips go round the corners of an opening: outside it is wider than inside.
    const float ro = r / outer,
                around = rounded(mix(mix(ALMOND(ro), BOWL(ro), a.jaw), ELLIPSE(ro), oval), ro,
                                 steepest * outer / inner);
    const float ends = r < 1 ? r * r : std::exp(-(r - 1) * (r - 1) / .3f);
    const float bowed = r < 1 ? r * r * mix(1, r, straight) : ends;
    const float line = bowed * arch * fh * a.jaw * parted * (1 - set) * model.asset.limits.open *
                           (1 - CHEER_KEEPS * cheer) -
                       ends * CHEER_LIFT * fh * cheer * parts +
                       ends * (.5f * set * std::min(0.f, c.smile) - .03f * wn * a.wide -
                               .02f * wn * a.tuck - .05f * fh * mood.smile) +
                       relax * (r < 1 ? mix(-.30f, .55f, r * r) : .55f * ends) -
                       even * crooked * (r < 1 ? 1.f : ends);
    const float wide = std::max(JAW_ENDS,
                                std::min(ANGLE * c.outline[side], float(c.count - 1) / (2 * wn))),
                broad = smoothstep(wide, JAW_FULL * wide, r);

    const float seam = neutral(c.seam), thick = std::min(1.f, ELLIPSE(r));
    Mouth::Column& out = mouth.columns[size_t(i)];
    out.dx = dx;
    const float dent = (neutral(c.level) - seam) * (r < 1 ? 1.f : 0.f);
    out.y_top = seam + line - upper * rising;
    // The upper lip's tubercle dents the lower lip's edge. The dent disappears as the lips part.
    out.y_bottom =
        out.y_top + aperture * falling + dent * clamp01(aperture * falling / (.05f * fh));
    const Pucker::Place place{r,
                              rounded(mix(ELLIPSE(ri), ALMOND(ri), .6f), ri, 2 * steepest),
                              r < 1 ? 1 : ends,
                              neutral(c.upper_outer),
                              seam,
                              neutral(c.lower_outer)};
    pucker.round_inside(place, out);
    const float shadow = SHADOW * fh * clamp01((out.y_bottom - out.y_top) / (4 * SHADOW * fh));
    out.d_top =
        out.y_top - (seam - hide_upper * thick - std::min(shadow, .25f * c.upper_thick * thick));
    out.d_bottom =
        out.y_bottom - (seam + hide_lower * thick + std::min(shadow, .25f * c.lower_thick * thick));
    out.d_upper = line - .74f * upper * rising + thick * less_upper;
    out.d_lower = line - upper * rising + .96f * aperture * around -
                  thick * (less_lower + .62f * c.lower_thick * a.tuck);
    pucker.round_outside(place, out);
    // The chin's own muscle lifts its skin when lips press or protrude.
    out.d_chin = broad * (chin_drop - fh * (.008f * a.press + .014f * a.round + .020f * a.tuck));
    out.y_upper = std::min(neutral(c.upper_outer) + out.d_upper, out.y_top - .8f);
    out.y_lower = std::max(neutral(c.lower_outer) + out.d_lower, out.y_bottom + .8f);
    out.y_chin = std::max(neutral(c.chin) + out.d_chin, out.y_lower + 4);
    moved = moved || dx != 0 || out.d_top != 0 || out.d_bottom != 0 || out.d_upper != 0 ||
            out.d_lower != 0 || out.d_chin != 0;
  }
  mouth.moved = moved;
}

Mouth::Edges Mouth::edges(const Contours& contours, F4 x) const {
  const F4 column = min(max(x - contours.left, splat(0)), splat(float(contours.count - 1) - 1e-3f));
  const I4 k = to_int(column);
  const F4 f = column - to_float(k);
  const auto gather = [&](float Column::* field, size_t next) {
    return F4{columns[size_t(k[0]) + next].*field, columns[size_t(k[1]) + next].*field,
              columns[size_t(k[2]) + next].*field, columns[size_t(k[3]) + next].*field};
  };
  const F4 top = gather(&Column::y_top, 0), bottom = gather(&Column::y_bottom, 0),
           top_slope = gather(&Column::y_top, 1) - top,
           bottom_slope = gather(&Column::y_bottom, 1) - bottom;
  return {top + f * top_slope, bottom + f * bottom_slope, top_slope, bottom_slope};
}

F4 Mouth::Edges::cover(F4 y, float half) const {
  // A steep edge crosses more rows of a pixel.
  const auto blur = [half](F4 slope) {
    const F4 s = abs(slope),
             steep = max(splat(1), .96f * max(s, splat(1)) + .4f * min(s, splat(1)));
    return 2 * half * min(steep, splat(std::max(1.f, BLURRED / half)));
  };
  return clamp01(clamp01((y - top) / blur(top_slope) + .5f) +
                 clamp01((bottom - y) / blur(bottom_slope) + .5f) - 1);
}

Mouth::Column Mouth::at(const Contours& contours, float x) const {
  const float column = std::clamp(x - contours.left, 0.f, float(contours.count - 1) - 1e-3f);
  const size_t k = size_t(column);
  const float f = column - float(k);
  const float* a = &columns[k].dx;
  const float* b = &columns[k + 1].dx;
  Column out;
  for (size_t i = 0; i < sizeof(Column) / sizeof(float); i++) {
    (&out.dx)[i] = a[i] + (b[i] - a[i]) * f;
  }
  return out;
}

Sides displace(const Model& model, const Mouth& mouth, Point p, float margin) {
  const Contours& c = model.contours;
  const Mouth::Column m = mouth.at(c, p.x);
  const bool below = p.y > (m.y_top + m.y_bottom) / 2,
             near = p.y > m.y_top - margin && p.y < m.y_bottom + margin;
  // Vertical weight of the corners' movement: 1 at the lips, 0 at the nose and on the chin.
  const float across =
      p.y < m.y_upper   ? smoothstep(c.nose - .10f * model.face_height, m.y_upper, p.y)
      : p.y > m.y_lower ? smoothstep(m.y_lower + 1.1f * c.half_width, m.y_lower, p.y)
                        : 1.f;
  const float dx = m.dx * across;

  float upper = 0, lower = 0;
  if (!below || near) {
    if (p.y <= m.y_upper) {
      const float wings = NOSTRILS * smoothstep(c.nose - .10f * model.face_height, c.nose, p.y);
      upper = m.d_upper * mix(wings, 1, smoothstep(c.nose, m.y_upper, p.y));
    } else if (p.y < m.y_top) {
      upper = mix(m.d_upper, m.d_top, (p.y - m.y_upper) / (m.y_top - m.y_upper));
    } else {
      upper = m.d_top;
    }
  }
  if (below || near) {
    if (p.y < m.y_bottom) {
      lower = m.d_bottom;
    } else if (p.y < m.y_lower) {
      lower = mix(m.d_bottom, m.d_lower, (p.y - m.y_bottom) / (m.y_lower - m.y_bottom));
    } else if (p.y < m.y_chin) {
      lower = mix(m.d_lower, m.d_chin, smoothstep(m.y_lower, m.y_chin, p.y));
    } else {
      lower = m.d_chin * smoothstep(m.y_chin + .5f * model.face_height, m.y_chin, p.y);
    }
  }
  return {{dx, upper}, {dx, lower}, below, near};
}

}  // namespace mouthpiece::face
