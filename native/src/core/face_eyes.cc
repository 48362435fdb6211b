// Lids come down as a curtain of the closed eye's texture with the lashes at its edge; gaze slides the iris under the lids. No skin is stretched.
#include "core/face_eyes.h"

#include <algorithm>
#include <span>

namespace mouthpiece::face {
namespace {

struct EyePoints {
  int left, right;                       // corners as the viewer sees them
  std::array<int, 7> upper, lower;       // lid margins from left to right
};
constexpr EyePoints EYES[2] = {
    {33, 133, {246, 161, 160, 159, 158, 157, 173}, {7, 163, 144, 145, 153, 154, 155}},
    {362, 263, {398, 384, 385, 386, 387, 388, 466}, {382, 381, 380, 374, 373, 390, 249}},
};

/** Above the opening the lid's skin reaches this share of the opening's height; below it the lower lid that share. */
constexpr float ABOVE = .55f, SAG = .10f, BESIDE = .10f;

float along(const std::array<float, Eye::SAMPLES>& curve, float t) {
  const float at = clamp01(t) * (Eye::SAMPLES - 1);
  const int i = std::min(int(at), Eye::SAMPLES - 2);
  return mix(curve[size_t(i)], curve[size_t(i) + 1], at - float(i));
}

float plane_at(const uint8_t* data, int width, int height, float x, float y) {
  const float cx = std::clamp(x, 0.f, float(width - 1)), cy = std::clamp(y, 0.f, float(height - 1));
  const int ix = std::min(int(cx), width - 2), iy = std::min(int(cy), height - 2);
  const float fx = cx - float(ix), fy = cy - float(iy);
  const uint8_t* a = data + size_t(iy) * size_t(width) + size_t(ix);
  const uint8_t* b = a + width;
  return mix(mix(a[0], a[1], fx), mix(b[0], b[1], fx), fy);
}

Colour picture_at(const Asset& asset, float x, float y) {
  const float cx = (x - .5f) / 2, cy = (y - .5f) / 2;
  return {plane_at(asset.luma, asset.width, asset.height, x, y), plane_at(asset.u, asset.width / 2, asset.height / 2, cx, cy), plane_at(asset.v, asset.width / 2, asset.height / 2, cx, cy)};
}

Layer lid_layer(const Asset& asset, const Eye& eye, const Patch& patch) {
  Layer layer;
  layer.left = float(eye.x0);
  layer.top = float(eye.y0);
  layer.width = eye.x1 - eye.x0;
  layer.height = eye.y1 - eye.y0;
  layer.yuva.resize(size_t(layer.width) * size_t(layer.height) * 4);
  const Point normal{-eye.axis.y, eye.axis.x};
  for (int y = 0; y < layer.height; y++) {
    for (int x = 0; x < layer.width; x++) {
      uint8_t* out = layer.yuva.data() + 4 * (size_t(y) * size_t(layer.width) + size_t(x));
      const int px = eye.x0 + x, py = eye.y0 + y, qx = px - patch.x, qy = py - patch.y;
      if (patch && qx >= 0 && qy >= 0 && qx < patch.width && qy < patch.height) {
        const size_t at = size_t(qy) * size_t(patch.width) + size_t(qx), half = size_t(qy / 2) * size_t(patch.width / 2) + size_t(qx / 2);
        out[0] = patch.luma[at];
        out[1] = patch.u[half];
        out[2] = patch.v[half];
        out[3] = patch.alpha[at];
      } else if (!patch) {
        // Skin from above the crease runs down into skin from under the eye.
        const float dx = float(px) - eye.corner.x, dy = float(py) - eye.corner.y;
        const float t = (dx * eye.axis.x + dy * eye.axis.y) / eye.length, v = dx * normal.x + dy * normal.y;
        const float crease = along(eye.upper, t) - ABOVE * eye.height - 2, under = along(eye.lower, t) + .45f * eye.height + 2;
        const auto skin = [&](float depth) {
          const float u = std::clamp(t, .08f, .92f) * eye.length;
          return picture_at(asset, eye.corner.x + u * eye.axis.x + depth * normal.x, eye.corner.y + u * eye.axis.y + depth * normal.y);
        };
        const float k = clamp01((v - crease) / std::max(1.f, under - crease));
        const Colour a = skin(crease), b = skin(under);
        out[0] = uint8_t(mix(a.y, b.y, k));
        out[1] = uint8_t(mix(a.u, b.u, k));
        out[2] = uint8_t(mix(a.v, b.v, k));
        out[3] = uint8_t(255 * smooth(crease - 4, crease + 2, v) * smooth(under + 3, under - 2, v) * smooth(-.14f, .02f, t) * smooth(1.14f, .98f, t));
      }
    }
  }
  return layer;
}

}  // namespace

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
      return MonotoneCurve(std::move(line));
    };
    const MonotoneCurve upper = curve(points.upper), lower = curve(points.lower);
    eye.height = 0;
    for (int i = 0; i < Eye::SAMPLES; i++) {
      const float x = eye.length * float(i) / (Eye::SAMPLES - 1);
      eye.upper[size_t(i)] = upper(x);
      eye.lower[size_t(i)] = std::max(upper(x), lower(x));
      eye.height = std::max(eye.height, eye.lower[size_t(i)] - eye.upper[size_t(i)]);
    }
    eye.height = std::clamp(eye.height, 2.f, eye.length);
    const float cx = (left.x + right.x) / 2, cy = (left.y + right.y) / 2, rx = .64f * eye.length + 3, ry = 1.3f * eye.height + 8;
    const auto clamp_to = [](float value, int size) { return std::clamp(int(value), 0, size); };
    eye.x0 = clamp_to(cx - rx, asset.width) & ~1;
    eye.x1 = clamp_to(cx + rx, asset.width);
    eye.y0 = clamp_to(cy - ry, asset.height) & ~1;
    eye.y1 = clamp_to(cy + ry, asset.height);
    eye.lid = lid_layer(asset, eye, side == 0 ? asset.lid_left : asset.lid_right);
  }
}

Gaze::Gaze(const Asset& asset, const Eye& eye, float blink, float x, float y)
    : asset_(asset), eye_(eye), blink_(blink), x_(x), y_(y), cover_(clamp01(blink * 4)) {}

bool Gaze::at(Point s, Colour& out) const {
  const float dx = s.x - eye_.corner.x, dy = s.y - eye_.corner.y;
  const float t = (dx * eye_.axis.x + dy * eye_.axis.y) / eye_.length;
  if (t < -BESIDE || t > 1 + BESIDE) return false;
  const float v = -dx * eye_.axis.y + dy * eye_.axis.x;
  const float upper = along(eye_.upper, t), lower = along(eye_.lower, t), height = eye_.height;
  const float crease = upper - ABOVE * height - 2, closed = lower + SAG * height * 4 * clamp01(t) * clamp01(1 - t);
  if (v < crease - 3 || v > closed + 4) return false;

  bool changed = false;
  Colour c{0, 0, 0};
  // Gaze: whole in the middle of the opening, nothing at its rim.
  if ((x_ != 0 || y_ != 0) && v > upper && v < lower && t > 0 && t < 1) {
    const float rim = .22f * height;
    const float k = smooth(0, rim, v - upper) * smooth(0, rim, lower - v) * smooth(0, .18f, t) * smooth(1, .82f, t);
    c = picture_at(asset_, s.x - k * x_, s.y - k * y_);
    changed = true;
  }
  if (blink_ <= 0) {
    out = c;
    return changed;
  }
  if (!changed) c = picture_at(asset_, s.x, s.y);
  const float edge = mix(upper, closed, blink_), ends = smooth(-BESIDE, .04f, t) * smooth(1 + BESIDE, .96f, t);
  // The lid's skin between crease and edge shows the closed lid from crease to lash line.
  const float stretch = (closed - crease) / std::max(1.f, edge - crease), from = crease + (v - crease) * stretch;
  const float back = std::min(from, closed) - v;
  const Sample lid = sample(eye_.lid, s.x - back * eye_.axis.y, s.y + back * eye_.axis.x);
  const float alpha = lid.a * smooth(-2.5f, 3.5f, v - crease) * smooth(.9f, -.9f, v - edge) * ends * cover_;
  c = {mix(c.y, lid.colour.y, alpha), mix(c.u, lid.colour.u, alpha), mix(c.v, lid.colour.v, alpha)};
  // Shadow of the lid on the eye, then the lashes at its edge.
  if (v > edge && v < lower) c.y = 16 + (c.y - 16) * (1 - .25f * cover_ * smooth(.35f * height, 0, v - edge));
  const float across = (v - edge) / (.06f * height + .85f);
  const float lash = .62f * cover_ * std::exp(-across * across) * ends * (.35f + .65f * std::sqrt(4 * clamp01(t) * clamp01(1 - t)));
  out = {mix(c.y, 34, lash), mix(c.u, 127, lash), mix(c.v, 130, lash)};
  return true;
}

}  // namespace mouthpiece::face
