// Colours between the lips, from back to front: cavity, tongue, lower teeth, upper teeth, and the shade that the lips throw on them.
#include "core/face_inside.h"

#include <algorithm>

namespace mouthpiece::face {
namespace {

Colour colour_of(Yuv c) { return {float(c.y), float(c.u), float(c.v)}; }

/** A colour under less light: towards black (16, 128, 128), hue kept. */
Colour dim(Colour c, float k) { return {16 + (c.y - 16) * k, 128 + (c.u - 128) * k, 128 + (c.v - 128) * k}; }

Colour over(Colour below, Colour above, float a) { return {mix(below.y, above.y, a), mix(below.u, above.u, a), mix(below.v, above.v, a)}; }

}  // namespace

Sample sample(const Layer& layer, float px, float py) {
  const float x = px - layer.left, y = py - layer.top;
  if (!(x >= 0 && y >= 0 && x < float(layer.width - 1) && y < float(layer.height - 1))) return {{16, 128, 128}, 0};
  const int ix = int(x), iy = int(y);
  const float fx = x - float(ix), fy = y - float(iy);
  const uint8_t* a = layer.yuva.data() + 4 * (size_t(iy) * size_t(layer.width) + size_t(ix));
  const uint8_t* b = a + 4 * size_t(layer.width);
  const float w00 = (1 - fx) * (1 - fy), w01 = fx * (1 - fy), w10 = (1 - fx) * fy, w11 = fx * fy;
  const auto channel = [&](int k) { return float(a[k]) * w00 + float(a[k + 4]) * w01 + float(b[k]) * w10 + float(b[k + 4]) * w11; };
  return {{channel(0), channel(1), channel(2)}, channel(3) * (1 / 255.f)};
}

Inside::Inside(const Model& model, const Mouth& mouth) : model_(model), mouth_(mouth) {
  const Contours& c = model.contours;
  const Articulation& a = mouth.now;
  fh_ = model.face_height;
  wn_ = c.half_width;
  seam_ = c.seam[size_t(c.count / 2)];
  corner_ = wn_ * std::max(.35f, 1 - .42f * a.round + .11f * a.wide);
  const float raised = .30f * mouth.jaw_drop * a.teeth;   // teeth together for s and z
  lower_shift_ = .96f * mouth.jaw_drop - raised;
  tip_ = seam_ + lower_shift_ + .022f * fh_ - .035f * fh_ * a.jaw - (.045f * fh_ + .55f * mouth.jaw_drop) * a.ttip - .02f * fh_ * a.tback;
  // Rounded lips shade the teeth. They get darker, never transparent.
  upper_light_ = 1 - .62f * smooth(.15f, .8f, a.round) * (1 - .7f * a.teeth);
  lower_light_ = .80f * (1 - .70f * smooth(.1f, .7f, a.round) * (1 - .7f * a.teeth));
  opened_ = smooth(0, .055f * fh_, mouth.aperture);
  ambient_ = .78f + .22f * opened_;
  cavity_ = colour_of(model.asset.tints.cavity);
  tongue_ = colour_of(model.asset.tints.tongue);
}

Colour Inside::at(Point p, float top, float bottom) const {
  const Articulation& a = mouth_.now;
  const float x = p.x - model_.contours.centre;
  const float gap = std::max(1.f, bottom - top), down = clamp01((p.y - top) / gap);

  Colour c = dim(cavity_, .55f + .5f * down);

  // Tongue: a soft bed behind the lower teeth, its tip higher for t d n l.
  const float xn = x / (wn_ * .66f), ax = std::abs(xn);
  if (ax < 1.12f) {
    const float t = (p.y - tip_ - .030f * fh_ * xn * xn) / (.032f * fh_);
    const float alpha = smooth(-.45f, .45f, t) * smooth(1.12f, .75f, ax);
    if (alpha > 0) {
      const float groove = 1 - .14f * smooth(.16f, 0, ax) * smooth(.1f, 1, t);
      c = over(c, dim(tongue_, (.50f + .34f * clamp01(1 - std::abs(t - .7f) * .5f)) * groove), alpha * .95f);
    }
  }

  const Sample lower = sample(model_.teeth_lower, p.x, p.y - lower_shift_);
  if (lower.a > 0) c = over(c, dim(lower.colour, lower_light_), lower.a);

  // Between the teeth for th: the tip over the lower row, under the edge of the upper one.
  if (a.tout > .02f && ax < 1) {
    const float at = (p.y - (seam_ + .030f * fh_)) / (.030f * fh_), q = at * at;
    const float alpha = smooth(1.5f, .6f, q) * smooth(1, .65f, ax) * smooth(.02f, .5f, a.tout);
    c = over(c, dim(tongue_, .92f - .18f * clamp01(at)), alpha * .92f);
  }

  const Sample upper = sample(model_.teeth_upper, p.x, p.y);
  if (upper.a > 0) c = over(c, dim(upper.colour, upper_light_), upper.a);

  // Shade: of the upper lip, of the lower one's rim, and towards the corners.
  const float r = std::min(1.f, std::abs(x) / corner_), r2 = r * r;
  const float lip = .66f + .34f * smooth(-.5f, .040f * fh_, p.y - top);
  const float rim = .74f + .26f * smooth(-.5f, .022f * fh_, bottom - p.y);
  return dim(c, lip * rim * (1 - .55f * r2 * r2) * ambient_);
}

}  // namespace mouthpiece::face
