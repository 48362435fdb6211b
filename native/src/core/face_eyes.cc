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
  const auto whole = [](float value, int size) { return std::clamp(int(std::floor(value)), 0, size); };
  const int x0 = whole(eye.lid_area.x0 - 2, asset.width), y0 = whole(eye.lid_area.y0 - 2, asset.height);
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

/** The colour of the upper lid's margin in the portrait, so that lashes drawn match lashes photographed. */
Colour lash_colour(const Asset& asset, const Eye& eye) {
  Colour sum{0, 0, 0};
  int count = 0;
  for (int i = Eye::SAMPLES / 5; i < Eye::SAMPLES * 4 / 5; i++, count++) {
    Colour darkest{255, 128, 128};
    for (float v = -.12f * eye.height - 1; v <= .12f * eye.height + 1; v += .5f) {
      const float u = eye.length * float(i) / (Eye::SAMPLES - 1), w = eye.upper[size_t(i)] + v;
      const Colour c = picture_at(asset, eye.corner.x + u * eye.axis.x - w * eye.axis.y, eye.corner.y + u * eye.axis.y + w * eye.axis.x);
      if (c.y < darkest.y) darkest = c;
    }
    sum = {sum.y + darkest.y, sum.u + darkest.u, sum.v + darkest.v};
  }
  return {std::clamp(sum.y / float(count), 24.f, 110.f), sum.u / float(count), sum.v / float(count)};
}

/** Round the opening from share `left` to `right` of its length, `above` and `below` it. */
Area area_of(const Eye& eye, float left, float right, float above, float below) {
  Area area{1e9f, 1e9f, -1e9f, -1e9f};
  for (int i = 0; i < Eye::SAMPLES; i++) {
    const float t = mix(left, right, float(i) / (Eye::SAMPLES - 1));
    for (const float v : {along(eye.upper, t) - above, along(eye.lower, t) + below}) {
      const float x = eye.corner.x + t * eye.length * eye.axis.x - v * eye.axis.y, y = eye.corner.y + t * eye.length * eye.axis.y + v * eye.axis.x;
      area = {std::min(area.x0, x), std::min(area.y0, y), std::max(area.x1, x), std::max(area.y1, y)};
    }
  }
  return area;
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
    eye.opening = area_of(eye, 0, 1, 0, 0);
    eye.lid_area = area_of(eye, -BESIDE, 1 + BESIDE, ABOVE * eye.height + 5, SAG * eye.height + 4);
    eye.lash = lash_colour(asset, eye);
    eye.lid = lid_layer(asset, eye, side == 0 ? asset.lid_left : asset.lid_right);
  }
}

Gaze::Gaze(const Asset& asset, const Eye& eye, float blink, float droop, float x, float y)
    : asset_(asset), eye_(eye), blink_(blink), droop_(droop * eye.height), x_(x), y_(y), cover_(smooth(0, .09f, blink)) {}

bool Gaze::look(Point s, Look& out) const {
  const float dx = s.x - eye_.corner.x, dy = s.y - eye_.corner.y;
  const float t = (dx * eye_.axis.x + dy * eye_.axis.y) / eye_.length;
  if (t < -BESIDE || t > 1 + BESIDE) return false;
  const float v = -dx * eye_.axis.y + dy * eye_.axis.x, height = eye_.height, bend = 4 * clamp01(t) * clamp01(1 - t);
  const float upper = along(eye_.upper, t), lower = along(eye_.lower, t), crease = upper - ABOVE * height - 2;
  const float drooped = upper + droop_ * bend;
  out = {};

  // A mood moves the upper lid a little: what is between crease and lower lid gives way.
  float t2 = t, v2 = v;
  if (droop_ != 0 && v > crease - 3 && v < lower) {
    v2 -= droop_ * bend * (v < drooped ? smooth(crease - 3, drooped, v) : smooth(std::min(lower, drooped + .6f * height), drooped, v));
    out.elsewhere = true;
  }
  // Gaze: the iris slides under the lids, which stay: a place between them keeps its share of the way from lid to lid.
  if ((x_ != 0 || y_ != 0) && v2 > upper && v2 < lower && t > 0 && t < 1) {
    const float ends = smooth(0, .22f, t) * smooth(1, .78f, t), share = (v2 - upper) / (lower - upper);
    t2 = t - ends * x_ / eye_.length;
    v2 = mix(along(eye_.upper, t2), along(eye_.lower, t2), share) - 4 * share * (1 - share) * ends * y_;
    out.elsewhere = true;
  }
  out.from = {eye_.corner.x + t2 * eye_.length * eye_.axis.x - v2 * eye_.axis.y, eye_.corner.y + t2 * eye_.length * eye_.axis.y + v2 * eye_.axis.x};
  if (blink_ <= 0) return out.elsewhere;

  const float closed = lower + SAG * height * bend;
  if (v < crease - 3 || v > closed + 4) return out.elsewhere;
  const float edge = mix(drooped, closed, blink_), ends = smooth(-BESIDE, .04f, t) * smooth(1 + BESIDE, .96f, t);
  // The lid's skin between crease and edge shows the closed lid from crease to lash line.
  const float stretch = (closed - crease) / std::max(1.f, edge - crease), from = crease + (v - crease) * stretch;
  const float down = std::min(from, closed) - v;
  out.lid = {s.x - down * eye_.axis.y, s.y + down * eye_.axis.x};
  const float shown = cover_ * sample<Channels::luma>(eye_.lid, out.lid.x, out.lid.y).a;   // nothing where the lid's layer has nothing, as behind dark glasses
  out.covered = shown * smooth(-2.5f, 3.5f, v - crease) * smooth(.9f, -.9f, v - edge) * ends;
  if (v > edge && v < lower) out.light = 1 - .25f * shown * smooth(.35f * height, 0, v - edge);
  const float across = (v - edge) / (.06f * height + .85f);
  if (std::abs(across) < 3) out.lash = .75f * shown * std::exp(-across * across) * ends * (.35f + .65f * std::sqrt(bend));
  return true;
}

float Gaze::luma(const Look& look, float plain) const {
  float y = look.elsewhere ? plane_at(asset_.luma, asset_.width, asset_.height, look.from.x, look.from.y) : plain;
  if (look.covered > 0) y = mix(y, sample<Channels::luma>(eye_.lid, look.lid.x, look.lid.y).colour.y, look.covered);
  return mix(16 + (y - 16) * look.light, eye_.lash.y, look.lash);
}

void Gaze::chroma(const Look& look, float& u, float& v) const {
  if (look.elsewhere) {
    const float x = (look.from.x - .5f) / 2, y = (look.from.y - .5f) / 2;
    u = plane_at(asset_.u, asset_.width / 2, asset_.height / 2, x, y);
    v = plane_at(asset_.v, asset_.width / 2, asset_.height / 2, x, y);
  }
  if (look.covered > 0) {
    const Colour lid = sample<Channels::chroma>(eye_.lid, look.lid.x, look.lid.y).colour;
    u = mix(u, lid.u, look.covered);
    v = mix(v, lid.v, look.covered);
  }
  u = mix(128 + (u - 128) * look.light, eye_.lash.u, look.lash);
  v = mix(128 + (v - 128) * look.light, eye_.lash.v, look.lash);
}

}  // namespace mouthpiece::face
