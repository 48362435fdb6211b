// A lid closes by drawing the closed eye's texture over the eye, with lashes at its edge. Gaze
// moves the iris over the eyeball, and the lids follow it up and down. The skin beyond them is not
// stretched. Shares without another source were chosen by eye on the default faces.
#include "core/face_eyes.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/face_iris.h"

namespace mouthpiece::face {
namespace {

struct EyePoints {
  int left, right;                  // corners, left and right in the picture
  std::array<int, 7> upper, lower;  // lid margins, left to right
};
constexpr EyePoints EYES[2] = {
    {33, 133, {246, 161, 160, 159, 158, 157, 173}, {7, 163, 144, 145, 153, 154, 155}},
    {362, 263, {398, 384, 385, 386, 387, 388, 466}, {382, 381, 380, 374, 373, 390, 249}},
};

/**
 * Extent of the lid beyond the opening: above and below it as shares of its height (the lower lid
 * sags when the eye closes), beside it as a share of its length.
 */
constexpr float ABOVE = .55f, SAG = .10f, BESIDE = .10f;
/** How far the lids follow an iris up and down, shares of its way. */
constexpr float UPPER_FOLLOWS = .9f, LOWER_FOLLOWS = .4f;
/** How far from a lid's margin what it moves is stretched, share of the eye's height. */
constexpr float STRETCHED = .6f;
/** Over how many pixels an iris fades at a lid's margin; how far below it the iris shows through.
 */
constexpr float MARGIN_FADE = 1.5f, WET_MARGIN = 3;

float plane_at(const uint8_t* data, int width, int height, float x, float y) {
  const float cx = std::clamp(x, 0.f, float(width - 1)), cy = std::clamp(y, 0.f, float(height - 1));
  const int ix = std::min(int(cx), width - 2), iy = std::min(int(cy), height - 2);
  const float fx = cx - float(ix), fy = cy - float(iy);
  const uint8_t* a = data + size_t(iy) * size_t(width) + size_t(ix);
  const uint8_t* b = a + width;
  return mix(mix(a[0], a[1], fx), mix(b[0], b[1], fx), fy);
}

Layer lid_layer(const Asset& asset, const Eye& eye, const Patch& patch) {
  Layer layer;
  const auto whole = [](float value, int size) {
    return std::clamp(int(std::floor(value)), 0, size);
  };
  const int x0 = whole(eye.lid_area.x0 - 2, asset.width),
            y0 = whole(eye.lid_area.y0 - 2, asset.height);
  layer.left = float(x0);
  layer.top = float(y0);
  layer.width = whole(eye.lid_area.x1 + 4, asset.width) - x0;
  layer.height = whole(eye.lid_area.y1 + 4, asset.height) - y0;
  layer.yuva.resize(size_t(layer.width) * size_t(layer.height) * 4);
  const Point normal{-eye.axis.y, eye.axis.x};
  for (int y = 0; y < layer.height; y++) {
    for (int x = 0; x < layer.width; x++) {
      uint8_t* out = layer.yuva.data() + 4 * (size_t(y) * size_t(layer.width) + size_t(x));
      const int px = x0 + x, py = y0 + y, qx = px - patch.x, qy = py - patch.y;
      if (patch && qx >= 0 && qy >= 0 && qx < patch.width && qy < patch.height) {
        const size_t at = size_t(qy) * size_t(patch.width) + size_t(qx),
                     half = size_t(qy / 2) * size_t(patch.width / 2) + size_t(qx / 2);
        out[0] = patch.luma[at];
        out[1] = patch.u[half];
        out[2] = patch.v[half];
        out[3] = patch.alpha[at];
      } else if (!patch) {
        // Without a patch: skin above the crease fades into skin below the eye.
        const float dx = float(px) - eye.corner.x, dy = float(py) - eye.corner.y;
        const float t = (dx * eye.axis.x + dy * eye.axis.y) / eye.length,
                    v = dx * normal.x + dy * normal.y;
        const float crease = sample_curve(eye.upper, t) - ABOVE * eye.height - 2,
                    under = sample_curve(eye.lower, t) + .45f * eye.height + 2;
        const auto skin = [&](float depth) {
          const float u = std::clamp(t, .08f, .92f) * eye.length;
          return picture_at(asset, eye.corner.x + u * eye.axis.x + depth * normal.x,
                            eye.corner.y + u * eye.axis.y + depth * normal.y);
        };
        const float k = clamp01((v - crease) / std::max(1.f, under - crease));
        const Colour a = skin(crease), b = skin(under);
        out[0] = uint8_t(mix(a.y, b.y, k));
        out[1] = uint8_t(mix(a.u, b.u, k));
        out[2] = uint8_t(mix(a.v, b.v, k));
        out[3] = uint8_t(255 * smoothstep(crease - 4, crease + 2, v) *
                         smoothstep(under + 3, under - 2, v) * smoothstep(-.14f, .02f, t) *
                         smoothstep(1.14f, .98f, t));
      }
    }
  }
  return layer;
}

/** @returns the colour of the upper lid's margin in the portrait, so that drawn lashes match it */
Colour lash_colour(const Asset& asset, const Eye& eye) {
  Colour sum{0, 0, 0};
  int count = 0;
  for (int i = Eye::SAMPLES / 5; i < Eye::SAMPLES * 4 / 5; i++, count++) {
    Colour darkest{255, 128, 128};
    for (float v = -.12f * eye.height - 1; v <= .12f * eye.height + 1; v += .5f) {
      const float u = eye.length * float(i) / (Eye::SAMPLES - 1), w = eye.upper[size_t(i)] + v;
      const Colour c = picture_at(asset, eye.corner.x + u * eye.axis.x - w * eye.axis.y,
                                  eye.corner.y + u * eye.axis.y + w * eye.axis.x);
      if (c.y < darkest.y) {
        darkest = c;
      }
    }
    sum = {sum.y + darkest.y, sum.u + darkest.u, sum.v + darkest.v};
  }
  return {std::clamp(sum.y / float(count), 24.f, 110.f), sum.u / float(count),
          sum.v / float(count)};
}

/** @returns the area round the opening, from share `left` to `right` of its length */
Area area_of(const Eye& eye, float left, float right, float above, float below) {
  Area area{1e9f, 1e9f, -1e9f, -1e9f};
  for (int i = 0; i < Eye::SAMPLES; i++) {
    const float t = mix(left, right, float(i) / (Eye::SAMPLES - 1));
    for (const float v : {sample_curve(eye.upper, t) - above, sample_curve(eye.lower, t) + below}) {
      const float x = eye.corner.x + t * eye.length * eye.axis.x - v * eye.axis.y,
                  y = eye.corner.y + t * eye.length * eye.axis.y + v * eye.axis.x;
      area = {std::min(area.x0, x), std::min(area.y0, y), std::max(area.x1, x),
              std::max(area.y1, y)};
    }
  }
  return area;
}

}  // namespace

float sample_curve(const std::array<float, Eye::SAMPLES>& curve, float t) {
  const float at = clamp01(t) * (Eye::SAMPLES - 1);
  const int i = std::min(int(at), Eye::SAMPLES - 2);
  return mix(curve[size_t(i)], curve[size_t(i) + 1], at - float(i));
}

Colour picture_at(const Asset& asset, float x, float y) {
  const float cx = (x - .5f) / 2, cy = (y - .5f) / 2;
  return {plane_at(asset.luma, asset.width, asset.height, x, y),
          plane_at(asset.u, asset.width / 2, asset.height / 2, cx, cy),
          plane_at(asset.v, asset.width / 2, asset.height / 2, cx, cy)};
}

void build_eyes(Model& model) {
  const Asset& asset = model.asset;
  for (size_t side = 0; side < 2; side++) {
    Eye& eye = model.eyes[side];
    const EyePoints& points = EYES[side];
    const Point left = asset.landmark(points.left), right = asset.landmark(points.right);
    eye.length = std::max(4.f, std::hypot(right.x - left.x, right.y - left.y));
    eye.corner = left;
    eye.axis = {(right.x - left.x) / eye.length, (right.y - left.y) / eye.length};
    const auto curve = [&](std::span<const int> margin) {
      std::vector<Point> line{{0, 0}};
      for (const int index : margin) {
        const Point p = asset.landmark(index);
        const float dx = p.x - left.x, dy = p.y - left.y;
        line.push_back({dx * eye.axis.x + dy * eye.axis.y, -dx * eye.axis.y + dy * eye.axis.x});
      }
      line.push_back({eye.length, 0});
      return MonotoneCurve(line);
    };
    const MonotoneCurve upper = curve(points.upper), lower = curve(points.lower);
    eye.height = 0;
    for (int i = 0; i < Eye::SAMPLES; i++) {
      const float x = eye.length * float(i) / (Eye::SAMPLES - 1);
      eye.upper[size_t(i)] = upper(x);
      eye.lower[size_t(i)] = std::max(upper(x), lower(x));
      eye.height = std::max(eye.height, eye.lower[size_t(i)] - eye.upper[size_t(i)]);
    }
    for (size_t i = 0; i < Eye::SAMPLES; i++) {
      const size_t next = std::min<size_t>(i + 1, Eye::SAMPLES - 1);
      eye.margins[i] = {eye.upper[i], eye.lower[i], eye.upper[next], eye.lower[next]};
    }
    eye.height = std::clamp(eye.height, 2.f, eye.length);
    eye.opening = area_of(eye, 0, 1, 0, 0);
    eye.lid_area = area_of(eye, -BESIDE, 1 + BESIDE, ABOVE * eye.height + 5,
                           std::max(SAG * eye.height + 4, STRETCHED * eye.height));
    eye.lash = lash_colour(asset, eye);
    eye.lid = lid_layer(asset, eye, side == 0 ? asset.lid_left : asset.lid_right);
  }
  build_irises(model);
}

EyeOverlay::EyeOverlay(const Asset& asset, const Eye& eye, float blink, float droop, Point shift)
    : asset_(asset), eye_(eye), blink_(blink), shift_(shift), cover_(smoothstep(0, .09f, blink)) {
  const float down = shift.y * eye.axis.x - shift.x * eye.axis.y;
  droop_ = droop * eye.height + UPPER_FOLLOWS * down;
  sink_ = LOWER_FOLLOWS * down;
}

namespace {

/** The lids' margins at four shares of the eye's length. */
struct Margins {
  F4 upper, lower;
};
Margins sample_margins(const Eye& eye, F4 t) {
  const F4 at = clamp01(t) * float(Eye::SAMPLES - 1);
  const I4 whole = to_int(at), i = whole < Eye::SAMPLES - 2 ? whole : I4{} + (Eye::SAMPLES - 2);
  // Both margins at a sample and at the next: a row for each pixel, then a column for each number.
  const auto row = [&](int lane) {
    F4 out;
    std::memcpy(&out, eye.margins[size_t(i[lane])].data(), sizeof out);
    return out;
  };
  const F4 a = row(0), b = row(1), c = row(2), d = row(3);
  const F4 upper_ab = __builtin_shufflevector(a, b, 0, 4, 2, 6),
           upper_cd = __builtin_shufflevector(c, d, 0, 4, 2, 6),
           lower_ab = __builtin_shufflevector(a, b, 1, 5, 3, 7),
           lower_cd = __builtin_shufflevector(c, d, 1, 5, 3, 7);
  const F4 share = at - to_float(i);
  const auto between = [&](F4 ab, F4 cd) {
    return mix(__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
               __builtin_shufflevector(ab, cd, 2, 3, 6, 7), share);
  };
  return {between(upper_ab, upper_cd), between(lower_ab, lower_cd)};
}

}  // namespace

bool EyeOverlay::sample(F4 x, F4 y, Sample& out) const {
  const float ax = eye_.axis.x, ay = eye_.axis.y, length = eye_.length, height = eye_.height;
  const F4 dx = x - eye_.corner.x, dy = y - eye_.corner.y;
  const F4 t = (dx * ax + dy * ay) / length, v = dy * ax - dx * ay;
  const I4 beside = (t >= -BESIDE) & (t <= 1 + BESIDE);
  if (!any(beside)) {
    return false;
  }
  const F4 bend = 4 * clamp01(t) * clamp01(1 - t);
  const auto [upper, lower] = sample_margins(eye_, t);
  const F4 crease = upper - ABOVE * height - 2, drooped = upper + droop_ * bend,
           sunk = max(drooped, lower + sink_ * bend);

  // A mood lowers or raises the upper lid, and both follow the iris. What lies beside a margin is
  // compressed or stretched.
  const bool moves_lids = droop_ != 0 || sink_ != 0;
  const F4 reach = splat(STRETCHED * height);
  I4 stretched{};
  if (moves_lids) {
    stretched = beside & (v > crease - 3) & (v < (sink_ != 0 ? sunk + reach : lower));
  }
  const F4 margin = sunk + eye_.iris.below * bend;
  I4 between{};
  if (moves_iris()) {
    between = (v > drooped - 1) & (v < margin + WET_MARGIN) & (t > 0) & (t < 1);
  }
  const F4 closed = lower + SAG * height * bend;
  I4 under_lid{};
  if (blink_ > 0) {
    under_lid = beside & (v >= crease - 3) & (v <= closed + 4);
  }
  out.elsewhere = stretched | between;
  out.touched = out.elsewhere | under_lid;
  if (!any(out.touched)) {
    return false;
  }

  F4 v2 = v;
  if (moves_lids) {
    const F4 share = smoothstep(v < drooped ? crease - 3 : min(lower, drooped + reach), drooped, v),
             share_below =
                 smoothstep(v < sunk ? max(drooped, sunk - reach) : sunk + reach, sunk, v);
    v2 = stretched ? v - bend * (droop_ * share + sink_ * share_below) : v;
  }
  out.bared = out.ball = splat(0);
  if (any(between)) {
    const F4 half = splat(MARGIN_FADE / 2);
    out.bared = between ? splat(1) : splat(0);
    out.ball = out.bared * smoothstep(drooped, drooped + MARGIN_FADE, v) *
               smoothstep(margin + half, margin - half, v);
    out.iris_x = x - shift_.x;
    out.iris_y = y - shift_.y;
  }
  out.from_x = eye_.corner.x + t * length * ax - v2 * ay;
  out.from_y = eye_.corner.y + t * length * ay + v2 * ax;
  if (blink_ <= 0) {
    return true;
  }

  const F4 edge = mix(drooped, closed, splat(blink_)),
           ends = smoothstep(splat(-BESIDE), splat(.04f), t) *
                  smoothstep(splat(1 + BESIDE), splat(.96f), t);
  // The lid's skin between crease and edge shows the closed lid from crease to lash line.
  const F4 stretch = (closed - crease) / max(splat(1), edge - crease),
           down = min(crease + (v - crease) * stretch, closed) - v;
  out.lid_x = x - down * ay;
  out.lid_y = y + down * ax;
  const BilinearTaps<4> lid = sample_layer(eye_.lid, x, y);
  const I4 has_lid = under_lid & lid.inside;
  // The layer is transparent where glasses cover the eye: they stay in front of the moving lid.
  const F4 shown = has_lid ? cover_ / 255 * lid(3) : splat(0);
  out.covered = shown * smoothstep(splat(-2.5f), splat(3.5f), v - crease) *
                smoothstep(splat(.9f), splat(-.9f), v - edge) * ends;
  const I4 shaded = (v > edge) & (v < lower);
  out.light =
      shaded ? 1 - .25f * shown * smoothstep(splat(.35f * height), splat(0), v - edge) : splat(1);
  const F4 across = (v - edge) / (.06f * height + .85f),
           bell = clamp01(1 - across * across * (1 / 4.5f)), squared = bell * bell;
  out.lash = .75f * shown * squared * squared * ends * (1 - .65f * (1 - bend) * (1 - bend));
  return true;
}

/** @returns the opacity of a layer of the eyeball, of which `share` is visible between the lids */
static F4 opacity(const BilinearTaps<4>& layer, F4 share) {
  return layer.inside ? share * layer(3) / 255 : splat(0);
}

F4 EyeOverlay::luma(const Sample& sample, F4 plain) const {
  F4 y = plain;
  if (any(sample.elsewhere)) {
    y = sample.elsewhere ? BilinearTaps<1>(asset_.luma, asset_.width, asset_.height, sample.from_x,
                                           sample.from_y)()
                         : y;
  }
  if (any(sample.bared > 0)) {
    const BilinearTaps<4> white = sample_layer(eye_.iris.white, sample.from_x, sample.from_y),
                          disc = sample_layer(eye_.iris.disc, sample.iris_x, sample.iris_y);
    y = mix(y, white(0), opacity(white, sample.bared));
    y = mix(y, disc(0), opacity(disc, sample.ball));
  }
  if (blink_ <= 0) {
    return y;
  }
  if (any(sample.covered > 0)) {
    y = mix(y, sample_layer(eye_.lid, sample.lid_x, sample.lid_y)(0), sample.covered);
  }
  return mix(16 + (y - 16) * sample.light, splat(eye_.lash.y), sample.lash);
}

void EyeOverlay::chroma(const Sample& sample, F4& u, F4& v) const {
  if (any(sample.elsewhere)) {
    const F4 x = (sample.from_x - .5f) / 2, y = (sample.from_y - .5f) / 2;
    u = sample.elsewhere ? BilinearTaps<1>(asset_.u, asset_.width / 2, asset_.height / 2, x, y)()
                         : u;
    v = sample.elsewhere ? BilinearTaps<1>(asset_.v, asset_.width / 2, asset_.height / 2, x, y)()
                         : v;
  }
  if (any(sample.bared > 0)) {
    const BilinearTaps<4> white = sample_layer(eye_.iris.white, sample.from_x, sample.from_y),
                          disc = sample_layer(eye_.iris.disc, sample.iris_x, sample.iris_y);
    const F4 bare = opacity(white, sample.bared), over = opacity(disc, sample.ball);
    u = mix(mix(u, white(1), bare), disc(1), over);
    v = mix(mix(v, white(2), bare), disc(2), over);
  }
  if (blink_ <= 0) {
    return;
  }
  if (any(sample.covered > 0)) {
    const BilinearTaps<4> lid = sample_layer(eye_.lid, sample.lid_x, sample.lid_y);
    u = mix(u, lid(1), sample.covered);
    v = mix(v, lid(2), sample.covered);
  }
  u = mix(128 + (u - 128) * sample.light, splat(eye_.lash.u), sample.lash);
  v = mix(128 + (v - 128) * sample.light, splat(eye_.lash.v), sample.lash);
}

}  // namespace mouthpiece::face
