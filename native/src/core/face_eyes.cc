// A lid closes by drawing the closed eye's texture over the eye, with lashes at its edge. Gaze
// moves the iris over the eyeball, and the lids follow it up and down. The skin beyond them is not
// stretched. Shares without another source were chosen by eye on the default faces.
#include "core/face_eyes.h"

#include <algorithm>
#include <span>

#include "core/face_grey.h"
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

/** How far above an eye the lid's crease is, share of the eye's height. */
constexpr float CREASE = .55f;
/** How far the lids follow an iris up and down, shares of its way. */
constexpr float UPPER_FOLLOWS = .9f, LOWER_FOLLOWS = .4f;
/**
 * Opening of an eye, share of its length, that heavy lids do not lower any more, and from which
 * they lower it in full: eyes that a smile has narrowed would be closed.
 */
constexpr float NARROWEST = .16f, WIDE = .34f;
/** Softness of portraits that are as sharp as lashes are drawn, pixels. */
constexpr float SHARP = .8f;

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
        const float crease = sample_curve(eye.upper, t) - CREASE * eye.height - 2,
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

/** Blurs the layer as the portrait is: lashes were drawn into it. @param sigma pixels */
void soften(Layer& layer, float sigma) {
  if (sigma < SHARP) {
    return;
  }
  Grey plane{layer.width, layer.height, std::vector<float>(layer.yuva.size() / 4)};
  for (size_t channel = 0; channel < 4; channel++) {
    for (size_t i = 0; i < plane.data.size(); i++) {
      plane.data[i] = layer.yuva[4 * i + channel];
    }
    blur(plane, sigma);
    for (size_t i = 0; i < plane.data.size(); i++) {
      layer.yuva[4 * i + channel] = to_byte(plane.data[i]);
    }
  }
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
    eye.lid_area = area_of(eye, -EYE_BESIDE, 1 + EYE_BESIDE, EYE_ABOVE * eye.length + 5,
                           std::max(EYE_SAG * eye.height + 4, EYE_STRETCHED * eye.height));
    eye.lash = lash_colour(asset, eye);
    eye.lid = lid_layer(asset, eye, side == 0 ? asset.lid_left : asset.lid_right);
    soften(eye.lid, std::hypot(model.softness, model.blur));
  }
  build_irises(model);
}

EyeOverlay::EyeOverlay(const Asset& asset, const Eye& eye, float blink, float droop, Point shift)
    : state_{
          asset, eye,   blink, smoothstep(0, .09f, blink), smoothstep(.05f, .8f, blink), 0, .75f, 0,
          0,     shift, 0} {
  const float shut = smoothstep(.75f, 1, blink);
  state_.below = (EYE_LASHES * eye.height + 1) * shut;
  state_.lash *= 1 - .5f * shut;
  // Of a narrow slit a bright white would be a strip.
  state_.shade = mix(.25f, .65f, smoothstep(.3f, .85f, blink));
  const float down = shift.y * eye.axis.x - shift.x * eye.axis.y,
              room = clamp01((eye.height / eye.length - NARROWEST) / (WIDE - NARROWEST));
  state_.droop = (droop > 0 ? droop * room : droop) * eye.height + UPPER_FOLLOWS * down;
  state_.sink = LOWER_FOLLOWS * down;
}

}  // namespace mouthpiece::face
