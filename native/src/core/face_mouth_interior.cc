// Colours between the lips, composed from back to front: cavity, tongue, lower teeth, upper teeth,
// then the lips' shadow. All shares and sizes were chosen by eye on the default faces; lengths are
// in units of the face's height.
#include "core/face_mouth_interior.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/face_tongue.h"

namespace mouthpiece::face {
namespace {

/**
 * Chroma offset of teeth in light that has passed through flesh. Without it teeth look grey in the
 * lips' shadow.
 */
constexpr float WARMTH_U = 4, WARMTH_V = 9;

using Colours = MouthInterior::Colours;

Colours splat_colour(Colour c) {
  return {splat(c.y), splat(c.u), splat(c.v)};
}

template <Channels CHANNELS>
Colours over(const Colours& below, const Colours& above, F4 a) {
  if constexpr (CHANNELS == Channels::luma) {
    return {mix(below.y, above.y, a), above.u, above.v};
  } else {
    return {above.y, mix(below.u, above.u, a), mix(below.v, above.v, a)};
  }
}

/** `dim` for four colours. */
template <Channels CHANNELS>
Colours dim(const Colours& c, F4 k, const Colour& dark) {
  if constexpr (CHANNELS == Channels::luma) {
    return {dark.y + (c.y - dark.y) * k, c.u, c.v};
  }
  return {c.y, dark.u + (c.u - dark.u) * k, dark.v + (c.v - dark.v) * k};
}

/** Composes a layer in light `light` over `below`. `cover` scales the layer's alpha. */
template <Channels CHANNELS>
Colours draw_layer(const Colours& below, const Layer& layer, F4 x, F4 y, float light, float cover,
                   float colour, const Colour& dark) {
  const BilinearTaps<4> at = sample_layer(layer, x, y);
  if (!any(at.inside)) {
    return below;
  }
  const F4 alpha = at.inside ? at(3) * (cover / 255) : splat(0);
  if (!any(alpha > 0)) {
    return below;
  }
  if constexpr (CHANNELS == Channels::luma) {
    return over<CHANNELS>(
        below, dim<CHANNELS>(Colours{at(0), splat(128), splat(128)}, splat(light), dark), alpha);
  }
  const float warmth = colour * (1.35f - light);
  return over<CHANNELS>(
      below,
      dim<CHANNELS>(Colours{splat(16), at(1) - WARMTH_U * warmth, at(2) + WARMTH_V * warmth},
                    splat(light), dark),
      alpha);
}

/**
 * Heights of openings that show the lips' insides all round them, and that do not; how much more of
 * the opening's height each of these has.
 */
constexpr float SMALL_RING = .05f, WIDE_RING = .12f, RING = .22f;
/** Share of the light that teeth lose behind such an opening. */
constexpr float BEHIND_RING = .6f;
/** Where the throat is darkest, share of the opening's height from its top. */
constexpr float THROAT_HEIGHT = .42f;
/**
 * Light on the tongue: at its back, at its front, and what its sides lose. It is brightest at this
 * share of the way to the lower lip, and falls off behind that by the third power: a floor that was
 * lit up to the teeth looked flat (docs/faces-judged.md, round 32). In front of it the tongue bends
 * down: what it loses over a length as great as that way.
 */
constexpr float TONGUE_BACK = .08f, TONGUE_SIDES = .75f, TONGUE_RIDGE = .82f, TONGUE_ROUND = 1.1f;
/** Opening in which the tongue is fully lit, and how much less light a closed one lets in. */
constexpr float LIT_OPENING = .12f, UNLIT = .70f;
/** Contrast of the tongue's relief. */
constexpr float TONGUE_RELIEF = 1.3f;
/** Highlights on a wet tongue, luma in full light. */
constexpr float WET = 60;
/** Half the tongue's width, half widths of the mouth. */
constexpr float TONGUE = .66f;
/** The last places of the tongue's relief that have a neighbour to be mixed with. */
constexpr float RELIEF_COLUMNS = TongueRelief::WIDTH - 1.01f,
                RELIEF_ROWS = TongueRelief::HEIGHT - 1.01f;
/** Gap between the biting edges of upper and lower teeth, which do not meet in speech. */
constexpr float SLIT = .008f;
/** Most of the lower teeth that is above the lower lip: a dropped jaw takes them behind it. */
constexpr float LOWER_TIPS = .027f;
/** Most of the upper teeth that is below the upper lip: as lips begin to round, and of round ones.
 */
constexpr std::array<float, 2> UPPER_TIPS{.040f, .036f};
/** Share of its light that a lip that bites takes from the ends of the opening. */
constexpr float BITE_SIDES = .6f;
/** The upper lip's shadow on the teeth and the lower one's: how much light is lost right at the
 * lip. */
constexpr float UPPER_SHADOW = .46f, LOWER_SHADOW = .15f;
/** Share of the upper lip's shadow that spreading lips take away. */
constexpr float SPREAD_LIT = .6f;
/** Of the lips' insides. */
constexpr float INSIDE_OPACITY = .85f;
/**
 * The lower lip's wet inside shines along a line, in spots: luma where its own is 96; where, from
 * behind (0) to its edge (1), and how wide; how much of the opening's middle has it; openings that
 * show it all. In soft pictures the spots would run into a white line: softness where it is seen,
 * and where not.
 */
constexpr float LIP_WET = 38, LIP_WET_AT = .7f, LIP_WET_WIDTH = .22f, LIP_WET_ENDS = 2.2f,
                WET_OPENING = .06f;
constexpr std::array<float, 2> WET_SOFTNESS{.5f, .8f};
/** How much higher a dropped jaw's openings show the insides of the upper and the lower lip. */
constexpr float UPPER_TURNED = .011f, LOWER_TURNED = .016f;
/**
 * The lips' insides are as deep where their edge is steep as where it is level, measured across the
 * edge: there they are up to so many times as high.
 */
constexpr float STEEPEST_EDGE = 6;
/** Thickness of the line round an opening that is drawn in ink, share of the face's height. */
constexpr float INK_LINE = .008f;
/** Opacity of teeth from which they are paper, and where they end. */
constexpr std::array<float, 2> PAPER_TEETH{.35f, .65f};
/** Share of their light that the lips' insides lose at the ends of the opening. */
constexpr float DARK_ENDS = .4f;
/** Four columns' values of a kind: from a vector per column to a vector per value. */
std::array<F4, LANES> transposed(F4 a, F4 b, F4 c, F4 d) {
  const F4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
           cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
           low = __builtin_shufflevector(a, b, 2, 6, 3, 7),
           high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return {__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
          __builtin_shufflevector(low, high, 0, 1, 4, 5),
          __builtin_shufflevector(low, high, 2, 3, 6, 7)};
}

}  // namespace

void MouthInterior::prepare(const Mouth& mouth) {
  const Contours& c = model_.contours;
  const Articulation& a = mouth.now;
  const float drop = mouth.jaw_drop;
  const Mouth::Column& middle =
      mouth.columns[size_t(std::clamp(int(c.centre - c.left), 0, c.count - 1))];
  Frame& f = frame_;
  // Rounded lips cover and shade the teeth. The layer is darkened rather than made transparent,
  // which would look grey.
  f.hood = smoothstep(.1f, .7f, a.round) * (1 - .7f * a.teeth);
  // A small round opening shows the lips' insides all round, and a dark middle.
  f.ring = f.hood * smoothstep(WIDE_RING * fh_, SMALL_RING * fh_, mouth.aperture);
  const float upper_edge = seam_ + biting_edge(model_, true) * fh_;
  f.upper_light = (1 - .20f * f.hood) * (1 - BEHIND_RING * f.ring);
  // Rounded lips come forward and down over the teeth.
  f.upper_shift =
      clamp01(2 * f.hood) *
      std::min(0.f, middle.y_top + mix(UPPER_TIPS[0], UPPER_TIPS[1], f.hood) * fh_ - upper_edge);
  // Teeth behind rounded lips are dark already.
  // Lips that are spread lie on the teeth.
  f.upper_shadow = UPPER_SHADOW * (1 - .5f * f.hood) * (1 - .7f * a.tuck) *
                   (1 - SPREAD_LIT * std::max(a.wide, a.teeth));
  f.lower_light = (.64f + .08f * a.teeth) * (1 - .70f * f.hood);
  // The jaw carries the lower teeth. Their edges stay behind the lower lip, but for the tips.
  const float lower_edge = seam_ + biting_edge(model_, false) * fh_;
  // Lips that are not spread cover them.
  const float tips = LOWER_TIPS * (1 - f.hood) * smoothstep(.35f, .7f, std::max(a.wide, a.teeth)) *
                     smoothstep(.55f, .3f, a.jaw);
  f.lower_shift = std::max({.96f * drop - .30f * drop * a.teeth + .010f * fh_ * a.jaw,
                            upper_edge + f.upper_shift + SLIT * fh_ - lower_edge,
                            middle.y_bottom - tips * fh_ - lower_edge});
  f.tongue_top = seam_ + .96f * drop - .30f * drop * a.teeth - .012f * fh_ -
                 (.062f + .018f * (1 - a.round)) * fh_ * a.jaw -
                 (.045f * fh_ + .55f * drop) * a.ttip - .02f * fh_ * a.tback;
  // Less light comes between rounded lips, and into a small opening.
  const float open = std::max(smoothstep(0, LIT_OPENING * fh_, mouth.aperture), a.tout);
  f.tongue_light = (1 - UNLIT * (1 - open)) * (1 - .35f * f.hood);
  f.ambient = .90f + .10f * std::max(smoothstep(0, .055f * fh_, mouth.aperture), .6f * a.tuck);
  f.wet = WET * (float(model_.asset.tints.tongue.y) - 16) / 100 * detail_ *
          smoothstep(1, .4f, model_.softness) * f.tongue_light;
  f.lip_wet = LIP_WET * (lower_inside_.y - 16) / 80 * detail_ *
              smoothstep(WET_SOFTNESS[1], WET_SOFTNESS[0], model_.softness) *
              clamp01(mouth.aperture / (WET_OPENING * fh_)) * (1 - f.hood) * f.ambient;
  f.tip = smoothstep(.02f, .5f, a.tout) * .96f;
  f.corner = std::max(2.f, mouth.half_opening);
  f.bite = a.tuck * (1 - a.press);
  f.upper_bulge = 1 - 1.3f * f.ring;
  f.lower_bulge = -.4f * f.ring;
  f.upper_rim = (.005f + UPPER_TURNED * a.jaw + .012f * a.round + .010f * f.ring) * fh_;
  f.lower_rim = (.008f + LOWER_TURNED * a.jaw + .012f * a.round + .010f * f.ring) * fh_ +
                .02f * mouth.aperture;
  const auto index = [&](float x) { return std::clamp(int(x - c.left), 0, c.count - 1); };
  first_ = index(c.centre - f.corner - 2);
  last_ = index(c.centre + f.corner + 2);
  for (int i = first_; i <= last_; i++) {
    columns_[size_t(i)] = column_at(mouth, size_t(i));
  }
}

MouthInterior::Column MouthInterior::column_at(const Mouth& mouth, size_t i) const {
  const Contours& c = model_.contours;
  const Frame& f = frame_;
  const Mouth::Column& lip = mouth.columns[i];
  const float off = c.left + float(i) - c.centre, x = std::abs(off),
              r = std::min(1.f, x / f.corner), r2 = r * r, t = x / (TONGUE * c.half_width),
              t2 = t * t, gap = std::max(1.f, lip.y_bottom - lip.y_top);
  // The lips' colours move with them.
  const Lips& lips =
      lips_[size_t(std::clamp(int(c.centre + off - lip.dx - c.left), 0, c.count - 1))];
  const float tongue_top = f.tongue_top + .045f * fh_ * t2,
              front = TONGUE_RIDGE * std::max(.05f * fh_, lip.y_bottom - tongue_top),
              sides = 1 - TONGUE_SIDES * std::min(1.f, t2);
  // Towards the corners the lips' insides fill the opening.
  const float share = mix(.20f + RING * f.ring, .50f + .5f * RING * f.ring, r2);
  const auto rim = [&](float height, float Mouth::Column::* edge) {
    const size_t before = i - std::min<size_t>(i, 2),
                 after = std::min(i + 2, mouth.columns.size() - 1);
    const float slope =
        (mouth.columns[after].*edge - mouth.columns[before].*edge) / float(after - before);
    const float steep = std::min(STEEPEST_EDGE, std::sqrt(1 + slope * slope));
    return 1 / (std::min(height * steep, std::min(1.f, share * steep) * gap) + .5f);
  };
  const float reach = std::min(.042f * fh_, .55f * gap), lit = 1 - DARK_ENDS * r2 * r2;
  return {
      .tongue =
          F4{.97f * smoothstep(1.12f, .75f, t), tongue_top, 1 / front, f.tongue_light * sides},
      .depth =
          F4{.94f * smoothstep(.90f, .25f, r),
             std::clamp(.5f + .5f * off / (TONGUE * c.half_width), 0.f, 1.f) * RELIEF_COLUMNS,
             f.lip_wet * clamp01(1 - LIP_WET_ENDS * r2) * wet_[i],
             (1 - (.55f + .10f * f.hood) * r2 * r2) * (1 - BITE_SIDES * f.bite * r2) * f.ambient},
      .rim = F4{rim(f.upper_rim, &Mouth::Column::y_top), rim(f.lower_rim, &Mouth::Column::y_bottom),
                0, 0},
      .lips = F4{mix(16, lips.upper, lit), mix(16, lips.lower, lit), 1 / reach,
                 1 / std::min(.024f * fh_, .35f * gap)},
  };
}

/** Of line art: the teeth are paper, all else is ink, and so is a line along the lips. */
F4 MouthInterior::ink_at(F4 x, F4 y, F4 top, F4 bottom) const {
  const auto teeth = [&](const Layer& layer, float shift) {
    const BilinearTaps<4> at = sample_layer(layer, x, y - shift);
    const F4 alpha = at.inside ? at(3) * (model_.teeth / 255) : splat(0);
    return smoothstep(splat(PAPER_TEETH[0]), splat(PAPER_TEETH[1]), alpha);
  };
  const F4 white = max(teeth(model_.teeth_upper, frame_.upper_shift),
                       teeth(model_.teeth_lower, frame_.lower_shift)),
           line = clamp01(1 + INK_LINE * fh_ - min(y - top, bottom - y));
  const Grade& grade = model_.grade;
  return grade.black + (grade.paper - grade.black) * white * (1 - line);
}

template <Channels CHANNELS>
MouthInterior::Colours MouthInterior::colours_at(F4 x, F4 y, F4 top, F4 bottom) const {
  const Contours& contours = model_.contours;
  const Frame& f = frame_;
  if (model_.grade.line_art) {
    return {ink_at(x, y, top, bottom), splat(128), splat(128)};
  }
  const I4 nearest = to_int(x - contours.left + .5f);
  const Column* columns[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    columns[lane] = &columns_[size_t(std::clamp(nearest[lane], first_, last_))];
  }
  const auto column = [&](F4 Column::* field) {
    return transposed(columns[0]->*field, columns[1]->*field, columns[2]->*field,
                      columns[3]->*field);
  };
  const F4 gap = max(bottom - top, splat(1)), below_top = y - top, above_bottom = bottom - y;
  const auto [throat, relief_column, lip_shine, light] = column(&Column::depth);

  // The throat is dark. Round it are the palate and the cheeks' flesh.
  const F4 high = below_top / gap - THROAT_HEIGHT;
  Colours c = over<CHANNELS>(splat_colour(flesh_), splat_colour(cavity_),
                             throat * clamp01(1 - 1.8f * high * high));

  // The tongue is a mound behind the lower teeth, brightest at its front. Its tip rises for t, d, n
  // and l.
  const auto [tongue, tongue_top, rate, tongue_light] = column(&Column::tongue);
  const F4 down = y - tongue_top;
  if (any((down > -.032f * fh_) & (tongue > 0))) {
    const F4 way = down * rate, along = clamp01(way), past = max(way - 1, splat(0)),
             ridge = max(along * along * (3 - 2 * along) - TONGUE_ROUND * past, splat(0)),
             lit = ridge * ridge * ridge, edge = clamp01(down * (.7f / (.032f * fh_)) + .7f);
    const BilinearTaps<4> relief(relief_.pixels.data(), TongueRelief::WIDTH, TongueRelief::HEIGHT,
                                 relief_column, clamp01(way / TongueRelief::LAST) * RELIEF_ROWS);
    const F4 form = 1 + TONGUE_RELIEF * detail_ * (relief(TongueRelief::LIGHT) / 128 - 1);
    c = over<CHANNELS>(
        c,
        dim<CHANNELS>(splat_colour(tongue_),
                      (TONGUE_BACK + (tongue_front_ - TONGUE_BACK) * lit * form) * tongue_light,
                      dark_),
        tongue * edge);
    if constexpr (CHANNELS == Channels::luma) {
      c.y += f.wet * relief(TongueRelief::SHINE) / 255;
    }
  }

  c = draw_layer<CHANNELS>(c, model_.teeth_lower, x, y - f.lower_shift, f.lower_light, model_.teeth,
                           tinted_, dark_);
  c = draw_layer<CHANNELS>(c, model_.teeth_upper, x, y - f.upper_shift, f.upper_light, model_.teeth,
                           tinted_, dark_);

  // For th the tongue's tip lies on the lower lip, over the lower teeth and the upper teeth's edge.
  if (f.tip > .001f) {
    const F4 t = abs(x - contours.centre) / (TONGUE * contours.half_width),
             at = above_bottom / min(splat(.050f * fh_), .62f * gap);
    c = over<CHANNELS>(
        c,
        dim<CHANNELS>(splat_colour(tongue_),
                      .98f - .30f * smoothstep(splat(.55f), splat(1.05f), at), dark_),
        f.tip * smoothstep(splat(1), splat(.70f), t) *
            smoothstep(splat(1.12f), splat(.80f), at + .35f * t * t));
  }

  // Shadow of the lips, softer with distance from them.
  const auto [upper_y, lower_y, upper_rate, lower_rate] = column(&Column::lips);
  const F4 from_upper = 1 - clamp01(below_top * upper_rate),
           from_lower = 1 - clamp01(above_bottom * lower_rate);
  c = dim<CHANNELS>(c,
                    (1 - f.upper_shadow * from_upper * from_upper) *
                        (1 - LOWER_SHADOW * from_lower * from_lower) * light,
                    dark_);

  // The lips turn inwards: their wet insides fade into what lies behind.
  const auto rims = column(&Column::rim);
  const F4 in_upper = 1 - clamp01(below_top * rims[0]),
           in_lower = 1 - clamp01(above_bottom * rims[1]),
           upper_alpha = INSIDE_OPACITY * in_upper * (1 + f.upper_bulge * (1 - in_upper)),
           lower_alpha = INSIDE_OPACITY * in_lower * (1 + f.lower_bulge * (1 - in_lower));
  if constexpr (CHANNELS == Channels::luma) {
    const F4 from_line = (in_lower - LIP_WET_AT) / LIP_WET_WIDTH;
    c.y = mix(mix(c.y, upper_y, upper_alpha), lower_y, lower_alpha) +
          lip_shine * clamp01(1 - from_line * from_line);
    c.y = graded(c.y, x, y);
  } else {
    c.u = mix(mix(c.u, splat(upper_inside_.u), upper_alpha), splat(lower_inside_.u), lower_alpha);
    c.v = mix(mix(c.v, splat(upper_inside_.v), upper_alpha), splat(lower_inside_.v), lower_alpha);
  }
  return c;
}

F4 MouthInterior::graded(F4 luma, F4 x, F4 y) const {
  const Grade& grade = model_.grade;
  // Positions are above -1024.
  const I4 column = to_int(x + 1024) & (GRAIN_SIDE - 1), row = to_int(y + 1024) & (GRAIN_SIDE - 1);
  const auto grain = [&](int lane) {
    return float(grade.grain[size_t(row[lane] * GRAIN_SIDE + column[lane])]) / 8;
  };
  // Noise is weaker in the dark.
  const F4 strength = clamp01(.3f + (luma - 16) / 120);
  return grade.black + (luma - 16) * contrast_ +
         strength * F4{grain(0), grain(1), grain(2), grain(3)};
}
template MouthInterior::Colours MouthInterior::colours_at<Channels::luma>(F4, F4, F4, F4) const;
template MouthInterior::Colours MouthInterior::colours_at<Channels::chroma>(F4, F4, F4, F4) const;

}  // namespace mouthpiece::face
