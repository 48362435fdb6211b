// Colours between the lips, from back to front: cavity, tongue, lower teeth, upper teeth, and the shade that the lips throw on them.
#include "core/face_inside.h"

#include <algorithm>

namespace mouthpiece::face {
namespace {

Colour colour_of(Yuv c) { return {float(c.y), float(c.u), float(c.v)}; }

Colour over(Colour below, Colour above, float a) { return {mix(below.y, above.y, a), mix(below.u, above.u, a), mix(below.v, above.v, a)}; }

}  // namespace

Colour dim(Colour c, float k) { return {16 + (c.y - 16) * k, 128 + (c.u - 128) * k - 2.5f * (1 - k), 128 + (c.v - 128) * k + 7 * (1 - k)}; }

template <Channels CHANNELS>
Sample sample(const Layer& layer, float px, float py) {
  const float x = px - layer.left, y = py - layer.top;
  if (!(x >= 0 && y >= 0 && x < float(layer.width - 1) && y < float(layer.height - 1))) return {{16, 128, 128}, 0};
  const int ix = int(x), iy = int(y);
  const float fx = x - float(ix), fy = y - float(iy);
  const uint8_t* a = layer.yuva.data() + 4 * (size_t(iy) * size_t(layer.width) + size_t(ix));
  const uint8_t* b = a + 4 * size_t(layer.width);
  const float w00 = (1 - fx) * (1 - fy), w01 = fx * (1 - fy), w10 = (1 - fx) * fy, w11 = fx * fy;
  const auto channel = [&](int k) { return float(a[k]) * w00 + float(a[k + 4]) * w01 + float(b[k]) * w10 + float(b[k + 4]) * w11; };
  const float alpha = channel(3) * (1 / 255.f);
  if (alpha == 0) return {{16, 128, 128}, 0};
  if constexpr (CHANNELS == Channels::luma) return {{channel(0), 128, 128}, alpha};
  else return {{16, channel(1), channel(2)}, alpha};
}
template Sample sample<Channels::luma>(const Layer&, float, float);
template Sample sample<Channels::chroma>(const Layer&, float, float);

Inside::Inside(const Model& model)
    : model_(model), columns_(size_t(model.contours.count)), cavity_(colour_of(model.asset.tints.cavity)), tongue_(colour_of(model.asset.tints.tongue)),
      flesh_(dim(colour_of(model.asset.tints.gums), .52f)), fh_(model.face_height), seam_(model.contours.seam[size_t(model.contours.count / 2)]) {}

void Inside::prepare(const Mouth& mouth) {
  const Contours& c = model_.contours;
  const Articulation& a = mouth.now;
  const float drop = mouth.jaw_drop;
  lower_shift_ = .96f * drop - .30f * drop * a.teeth;   // teeth together for s and z
  const float tongue_top = seam_ + lower_shift_ + .014f * fh_ - .060f * fh_ * a.jaw - (.045f * fh_ + .55f * drop) * a.ttip - .02f * fh_ * a.tback;
  // Rounded lips cover and shade the teeth. Darkened rather than made transparent, or they would look grey.
  const float hood = smooth(.1f, .7f, a.round) * (1 - .7f * a.teeth);
  upper_light_ = .96f * (1 - .58f * hood);
  upper_cover_ = 1 - .30f * hood;
  upper_shift_ = -.040f * fh_ * hood;   // the lips come forward and down over them
  lower_light_ = .72f * (1 - .80f * hood);
  between_teeth_ = a.tout;
  const float ambient = .84f + .16f * std::max(smooth(0, .055f * fh_, mouth.aperture), .6f * a.tuck);
  const float corner = c.half_width * std::max(.35f, 1 - .42f * a.round + .11f * a.wide), tip = smooth(.02f, .5f, a.tout) * .96f;
  for (int i = 0; i < c.count; i++) {
    const float x = std::abs(c.left + float(i) - c.centre), r = std::min(1.f, x / corner), t = x / (.66f * c.half_width);
    const float width = smooth(1.12f, .75f, t);
    columns_[size_t(i)] = {
        .flesh = .8f * smooth(.45f, 1.f, r),
        .tongue = .95f * width,
        .tongue_top = tongue_top + .030f * fh_ * t * t,
        .groove = .14f * smooth(.16f, 0, t),
        .tip = tip * smooth(1, .70f, t),
        .tip_rise = .35f * t * t,
        .shade = (1 - .45f * r * r * r * r) * ambient,
    };
  }
}

template <Channels CHANNELS>
Colour Inside::at(Point p, float top, float bottom) const {
  const Contours& contours = model_.contours;
  const Column& column = columns_[size_t(std::clamp(int(p.x - contours.left + .5f), 0, contours.count - 1))];
  const float gap = std::max(1.f, bottom - top), below_top = p.y - top, above_bottom = bottom - p.y;

  // The back is dark; towards the corners one sees the cheeks' flesh.
  Colour c = over(dim(cavity_, .55f + .5f * clamp01(below_top / gap)), flesh_, column.flesh);

  // The tongue's soft bed behind the lower teeth, its tip higher for t d n l.
  const float t = (p.y - column.tongue_top) / (.032f * fh_);
  if (column.tongue > 0 && t > -.45f) {
    const float groove = 1 - column.groove * smooth(.1f, 1, t);
    c = over(c, dim(tongue_, (.50f + .34f * clamp01(1 - std::abs(t - .7f) * .5f)) * groove), column.tongue * smooth(-.45f, .45f, t));
  }

  const Sample lower = sample<CHANNELS>(model_.teeth_lower, p.x, p.y - lower_shift_);
  if (lower.a > 0) c = over(c, dim(lower.colour, lower_light_), lower.a);
  const Sample upper = sample<CHANNELS>(model_.teeth_upper, p.x, p.y - upper_shift_);
  if (upper.a > 0) c = over(c, dim(upper.colour, upper_light_), upper.a * upper_cover_);

  // Between the teeth for th: the tip lies on the lower lip, over the lower row and the edge of the upper one.
  if (between_teeth_ > .02f && column.tip > 0) {
    const float at = above_bottom / std::min(.050f * fh_, .62f * gap);
    c = over(c, dim(tongue_, .98f - .30f * smooth(.55f, 1.05f, at)), column.tip * smooth(1.12f, .80f, at + column.tip_rise));
  }

  // Shade of the upper lip and of the lower one's rim.
  const float lip = .70f + .30f * smooth(-.5f, std::min(.040f * fh_, .6f * gap), below_top);
  const float rim = .80f + .20f * smooth(-.5f, std::min(.022f * fh_, .4f * gap), above_bottom);
  return dim(c, lip * rim * column.shade);
}
template Colour Inside::at<Channels::luma>(Point, float, float) const;
template Colour Inside::at<Channels::chroma>(Point, float, float) const;

}  // namespace mouthpiece::face
