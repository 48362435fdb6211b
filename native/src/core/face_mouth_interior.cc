// Colours between the lips, composed from back to front: cavity, tongue, lower teeth, upper teeth,
// then the lips' shadow. All shares and sizes were chosen by eye on the default faces; lengths are
// in units of the face's height.
#include "core/face_mouth_interior.h"

#include <algorithm>

namespace mouthpiece::face {
namespace {

/**
 * Chroma offset of black inside a mouth, where light passes through flesh. 0 in black and white.
 */
constexpr float REDDENING_U = 5, REDDENING_V = 9;
/** Chroma offset of teeth in that light. Without it teeth look grey in the lips' shadow. */
constexpr float WARMTH_U = 5, WARMTH_V = 11;

Colour colour_of(Yuv c) {
  return {float(c.y), float(c.u), float(c.v)};
}

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
Colours dim(const Colours& c, F4 k, float colour) {
  if constexpr (CHANNELS == Channels::luma) {
    return {16 + (c.y - 16) * k, c.u, c.v};
  }
  const float u = 128 - REDDENING_U * colour, v = 128 + REDDENING_V * colour;
  return {c.y, u + (c.u - u) * k, v + (c.v - v) * k};
}

/** Composes a layer in light `light` over `below`. `cover` scales the layer's alpha. */
template <Channels CHANNELS>
Colours draw_layer(const Colours& below, const Layer& layer, F4 x, F4 y, float light, float cover,
                   float colour) {
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
        below, dim<CHANNELS>(Colours{at(0), splat(128), splat(128)}, splat(light), colour), alpha);
  }
  const float warmth = colour * (1.35f - light);
  return over<CHANNELS>(
      below,
      dim<CHANNELS>(Colours{splat(16), at(1) - WARMTH_U * warmth, at(2) + WARMTH_V * warmth},
                    splat(light), colour),
      alpha);
}

/**
 * @param k light: 1 full, 0 none
 * @param colour 0 for a black and white picture, 1 for one in colour
 * @returns the colour in less light: closer to black (16, 128, 128) and slightly redder, because
 * light inside a mouth has passed through flesh
 */
Colour dim(Colour c, float k, float colour) {
  return {16 + (c.y - 16) * k, 128 + (c.u - 128) * k - REDDENING_U * colour * (1 - k),
          128 + (c.v - 128) * k + REDDENING_V * colour * (1 - k)};
}

/** Where the throat is darkest, share of the opening's height from its top. */
constexpr float THROAT_HEIGHT = .42f;
/** Light on the tongue: at its upper edge, on its back, and what its sides lose. */
constexpr float TONGUE_EDGE = .38f, TONGUE_BACK = 1.02f, TONGUE_SIDES = .48f;
/** Highlights on a wet tongue, luma in full light. */
constexpr float WET = 34;

/** Where the tongue shines: 0 to 1, in spots. @param x in units of the face's height */
float wetness(float x) {
  const float spots = std::sin(38 * x + .4f) + .8f * std::sin(67 * x + 2.1f);
  return smoothstep(.2f, 1.8f, spots);
}

}  // namespace

MouthInterior::MouthInterior(const Model& model)
    : model_(model),
      columns_(size_t(model.contours.count)),
      cavity_(colour_of(model.asset.tints.cavity)),
      tongue_(colour_of(model.asset.tints.tongue)),
      tinted_(tinted(model.asset)),
      flesh_(dim(colour_of(model.asset.tints.gums), .40f, tinted_)),
      rim_(dim(colour_of(model.asset.tints.gums), .80f, tinted_)),
      fh_(model.face_height),
      seam_(model.contours.seam[size_t(model.contours.count / 2)]),
      contrast_((235 - model.grade.black) / (235 - 16)) {
  const Contours& c = model.contours;
  for (int i = 0; i < c.count; i++) {
    wet_.push_back(wetness((c.left + float(i) - c.centre) / fh_));
  }
}

void MouthInterior::prepare(const Mouth& mouth) {
  const Contours& c = model_.contours;
  const Articulation& a = mouth.now;
  const float drop = mouth.jaw_drop;
  lower_shift_ =
      .96f * drop - .30f * drop * a.teeth + .010f * fh_ * a.jaw;  // the teeth meet for s and z
  const float tongue_top = seam_ + lower_shift_ - .012f * fh_ -
                           (.062f + .018f * (1 - a.round)) * fh_ * a.jaw -
                           (.045f * fh_ + .55f * drop) * a.ttip - .02f * fh_ * a.tback;
  // Rounded lips cover and shade the teeth. The layer is darkened rather than made transparent,
  // which would look grey.
  const float hood = smoothstep(.1f, .7f, a.round) * (1 - .7f * a.teeth);
  upper_light_ = (model_.asset.teeth_upper ? .92f : 1) * (1 - .50f * hood);
  upper_cover_ = (1 - .45f * hood) * (model_.asset.teeth_upper ? 1 : model_.teeth);
  lower_cover_ = model_.asset.teeth_lower ? 1 : model_.teeth;
  upper_shift_ = -.065f * fh_ * hood;  // rounded lips come forward and down over the teeth
  lower_light_ = (.76f + .10f * a.teeth) * (1 - .75f * hood);
  between_teeth_ = a.tout;
  // Less light comes between rounded lips.
  const float ambient =
      (.88f + .12f * std::max(smoothstep(0, .055f * fh_, mouth.aperture), .6f * a.tuck)) *
      (1 - .38f * hood);
  const float wet =
      WET * (float(model_.asset.tints.tongue.y) - 16) / 100 * smoothstep(1, .4f, model_.softness);
  const float rim = .60f * smoothstep(.02f * fh_, .09f * fh_, mouth.aperture) * (1 - a.tuck);
  const float corner = std::max(2.f, mouth.half_opening),
              tip = smoothstep(.02f, .5f, a.tout) * .96f;
  for (int i = 0; i < c.count; i++) {
    const float x = std::abs(c.left + float(i) - c.centre), r = std::min(1.f, x / corner),
                t = x / (.66f * c.half_width);
    const float width = smoothstep(1.12f, .75f, t);
    columns_[size_t(i)] = {
        .throat = .92f * smoothstep(1.25f, .45f, r),
        .tongue = .97f * width,
        .tongue_top = tongue_top + .045f * fh_ * t * t,
        .tongue_light = (1 - TONGUE_SIDES * std::min(1.f, t * t)) * (1 - .45f * a.round),
        .groove = .10f * smoothstep(.16f, 0, t),
        .tip = tip * smoothstep(1, .70f, t),
        .tip_rise = .35f * t * t,
        .wet = wet * wet_[size_t(i)] * smoothstep(.8f, .4f, t),
        .rim = rim * smoothstep(1.f, .7f, r),
        .shade = (1 - (.38f + .17f * hood) * r * r * r) * ambient,
    };
  }
}

template <Channels CHANNELS>
MouthInterior::Colours MouthInterior::colours_at(F4 x, F4 y, F4 top, F4 bottom) const {
  const Contours& contours = model_.contours;
  const I4 nearest = to_int(x - contours.left + .5f);
  const Column* columns[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    columns[lane] = &columns_[size_t(std::clamp(nearest[lane], 0, contours.count - 1))];
  }
  const auto column = [&](float Column::* field) {
    return F4{columns[0]->*field, columns[1]->*field, columns[2]->*field, columns[3]->*field};
  };
  const F4 gap = max(bottom - top, splat(1)), below_top = y - top, above_bottom = bottom - y;

  // The throat is dark. Round it are the palate and the cheeks' flesh.
  const F4 high = below_top / gap - THROAT_HEIGHT;
  Colours c = over<CHANNELS>(splat_colour(flesh_), splat_colour(cavity_),
                             column(&Column::throat) * clamp01(1 - 1.8f * high * high));

  // The tongue lies behind the lower teeth. Its tip rises for t, d, n and l.
  const F4 t = (y - column(&Column::tongue_top)) / (.032f * fh_), tongue = column(&Column::tongue);
  if (any((t > -1) & (tongue > 0))) {
    const F4 groove = 1 - column(&Column::groove) * smoothstep(splat(.1f), splat(1), t);
    c = over<CHANNELS>(c,
                       dim<CHANNELS>(splat_colour(tongue_),
                                     (TONGUE_EDGE + (TONGUE_BACK - TONGUE_EDGE) *
                                                        smoothstep(splat(-.8f), splat(1.8f), t)) *
                                         column(&Column::tongue_light) * groove,
                                     tinted_),
                       tongue * smoothstep(splat(-1), splat(.4f), t));
    if constexpr (CHANNELS == Channels::luma) {
      const F4 from_ridge = t - 1.5f;
      c.y += column(&Column::wet) * clamp01(1 - from_ridge * from_ridge);
    }
  }

  c = draw_layer<CHANNELS>(c, model_.teeth_lower, x, y - lower_shift_, lower_light_, lower_cover_,
                           tinted_);
  c = draw_layer<CHANNELS>(c, model_.teeth_upper, x, y - upper_shift_, upper_light_, upper_cover_,
                           tinted_);

  // For th the tongue's tip lies on the lower lip, over the lower teeth and the upper teeth's edge.
  if (between_teeth_ > .02f) {
    const F4 at = above_bottom / min(splat(.050f * fh_), .62f * gap);
    c = over<CHANNELS>(
        c,
        dim<CHANNELS>(splat_colour(tongue_),
                      .98f - .30f * smoothstep(splat(.55f), splat(1.05f), at), tinted_),
        column(&Column::tip) *
            smoothstep(splat(1.12f), splat(.80f), at + column(&Column::tip_rise)));
  }

  // The wet inside of the lower lip, before the teeth.
  const F4 rim_height = min(splat(.030f * fh_), .28f * gap);
  c = over<CHANNELS>(c, splat_colour(rim_),
                     column(&Column::rim) * smoothstep(rim_height, splat(-.5f), above_bottom));

  // Shadow of the upper lip and of the lower lip's rim.
  const F4 lip =
      .80f + .20f * smoothstep(splat(-.5f), min(splat(.032f * fh_), .6f * gap), below_top);
  const F4 rim =
      .80f + .20f * smoothstep(splat(-.5f), min(splat(.022f * fh_), .4f * gap), above_bottom);
  c = dim<CHANNELS>(c, lip * rim * column(&Column::shade), tinted_);
  if constexpr (CHANNELS == Channels::luma) {
    c.y = graded(c.y, x, y);
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
