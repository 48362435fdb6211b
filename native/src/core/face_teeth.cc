// Layers of the teeth: the asset's patches resampled into the mouth's coordinates, or teeth painted
// in the portrait's tint. Shapes and shades of painted teeth were chosen by eye.
#include <algorithm>

#include "core/face_model.h"
#include "core/face_mouth_interior.h"

namespace mouthpiece::face {
namespace {

struct Sample {
  Colour colour;
  float a;  // alpha, 0 to 1
};

/** Bilinear sample of a patch at a position in the picture. */
Sample sample_patch(const Patch& patch, float px, float py) {
  const float x = px - float(patch.x), y = py - float(patch.y);
  if (!(x >= 0 && y >= 0 && x < float(patch.width - 1) && y < float(patch.height - 1))) {
    return {{16, 128, 128}, 0};
  }
  const auto plane = [](const uint8_t* data, int stride, int height, float u, float v) {
    const int ix = std::min(int(u), stride - 1), iy = std::min(int(v), height - 1),
              nx = std::min(ix + 1, stride - 1), ny = std::min(iy + 1, height - 1);
    const float fx = u - float(ix), fy = v - float(iy);
    const auto at = [&](int col, int row) {
      return float(data[size_t(row) * size_t(stride) + size_t(col)]);
    };
    return mix(mix(at(ix, iy), at(nx, iy), fx), mix(at(ix, ny), at(nx, ny), fx), fy);
  };
  // A chroma sample lies in the middle of its four luma pixels.
  const float cx = std::max(0.f, (x - .5f) / 2), cy = std::max(0.f, (y - .5f) / 2);
  return {{plane(patch.luma, patch.width, patch.height, x, y),
           plane(patch.u, patch.width / 2, patch.height / 2, cx, cy),
           plane(patch.v, patch.width / 2, patch.height / 2, cx, cy)},
          plane(patch.alpha, patch.width, patch.height, x, y) / 255};
}

/** A row of painted teeth. */
struct Row {
  bool upper;
  float edge;        // y of the biting edge; the row extends `height` away from it
  float half_width;  // pixels
  float height;
};

/** From -1 to 1: how tooth `k` of a side differs from its neighbours, in the property `which`. */
float difference(const Row& row, int k, bool left, int which) {
  const auto seed = uint32_t(k * 8 + which * 64 + (left ? 1 : 0) + (row.upper ? 2 : 0));
  const uint32_t mixed = (seed * 2654435761u) ^ 0x9e3779b9u, hashed = mixed * 2246822519u;
  return float(hashed >> 8) / float(1u << 23) - 1;
}

/** @param px, py position in the mouth's coordinates */
Sample paint_tooth(const Model& model, const Row& row, float px, float py) {
  static constexpr float UPPER_EDGES[] = {0, .27f, .50f, .72f, .90f, 1.04f},
                         LOWER_EDGES[] = {0, .19f, .38f, .60f, .80f, .96f};
  static constexpr float UPPER_ARCH[] = {0, .055f, .02f, .09f, .17f},
                         LOWER_ARCH[] = {0, .02f, .05f, .12f, .20f};
  const float age = model.grade.age;
  const float* edges = row.upper ? UPPER_EDGES : LOWER_EDGES;
  const float x = (px - model.contours.centre) / row.half_width, ax = std::abs(x);
  int k = 0;
  while (k < 4 && ax >= edges[k + 1]) {
    k++;
  }
  const auto own = [&](int which) { return difference(row, k, x < 0, which); };
  const float middle = (edges[k] + edges[k + 1]) / 2, half = (edges[k + 1] - edges[k]) / 2,
              u = (ax - middle) / half, u2 = u * u;
  const float away = (py - row.edge) * (row.upper ? -1.f : 1.f) / row.height;
  // Edges are round when they are young, and worn, uneven and tilted later.
  const float worn = (.02f + .04f * age) * own(0) + (.015f + .03f * age) * own(1) * u;
  const float d = away - (row.upper ? UPPER_ARCH : LOWER_ARCH)[k] - worn -
                  (row.upper ? .10f : .05f) * (1 - .5f * age) * u2 * u2;
  const float alpha = smoothstep(-.06f, .10f, d) * smoothstep(1.06f, .92f, ax);
  if (alpha <= 0) {
    return {{0, 0, 0}, 0};
  }
  const float g = (1 - std::abs(u)) / .09f, shine = (u + .2f) / .35f, low = (d - .32f) / .22f;
  const float shade =
      (1 - .10f * std::abs(u) * u2 - .30f * ax * ax - .22f * clamp01(away - .6f) +
       (.035f + .03f * age) * own(2) + .07f * std::exp(-shine * shine - low * low)) *
      (1 - (.12f + .10f * age) * std::exp(-g * g));
  const float gum = smoothstep(.82f, 1.f, away - .10f * (1 - u2) + .05f);
  const Yuv t = model.asset.tints.teeth, q = model.asset.tints.gums;
  // Enamel becomes thinner: what is below it is darker and yellower.
  const float old = 1 - .14f * age, yellow = (float(t.y) - 16) / 200 * age * tinted(model.asset);
  // Thin at its edge, the enamel shows the dark behind it.
  const float clear = row.upper ? .10f * smoothstep(.16f, 0, d) : 0;
  return {
      {alpha *
           (16 + mix((float(t.y) - 16) * shade * old * (1 - clear), (float(q.y) - 16) * .85f, gum)),
       alpha * (128 + mix((float(t.u) - 128) * shade - 7 * yellow, (float(q.u) - 128) * .85f, gum)),
       alpha *
           (128 + mix((float(t.v) - 128) * shade + 2 * yellow, (float(q.v) - 128) * .85f, gum))},
      alpha};
}

template <class Source>
Layer make_layer(const Model& model, Source source) {
  const Contours& c = model.contours;
  const float fh = model.face_height, seam = c.seam[size_t(c.count / 2)];
  Layer layer;
  layer.left = std::floor(c.centre - 1.25f * c.half_width);
  layer.top = std::floor(seam - .22f * fh);
  layer.width = std::min(1024, int(2.5f * c.half_width) + 2);
  layer.height = std::min(1024, int(.40f * fh) + 2);
  layer.yuva.resize(size_t(layer.width) * size_t(layer.height) * 4);
  uint8_t* out = layer.yuva.data();
  const auto byte = [](float value) { return uint8_t(std::clamp(value + .5f, 0.f, 255.f)); };
  for (int y = 0; y < layer.height; y++) {
    for (int x = 0; x < layer.width; x++, out += 4) {
      const Sample s = source(layer.left + float(x), layer.top + float(y));
      out[0] = byte(s.colour.y);
      out[1] = byte(s.colour.u);
      out[2] = byte(s.colour.v);
      out[3] = byte(s.a * 255);
    }
  }
  return layer;
}

Layer from_patch(const Model& model, const Patch& patch) {
  return make_layer(model, [&](float x, float y) {
    const Point p = model.frame.to_picture(x, y);
    return sample_patch(patch, p.x, p.y);
  });
}

/** Paints with nine samples per pixel, so that edges are as soft as the portrait's. */
Layer painted(const Model& model, bool upper) {
  const Contours& c = model.contours;
  const float fh = model.face_height, seam = c.seam[size_t(c.count / 2)], age = model.grade.age;
  // With age the upper lip covers more of the teeth, and the lower one less.
  const Row row{.upper = upper,
                .edge = seam + (upper ? .026f - .014f * age : -.006f - .006f * age) * fh,
                .half_width = c.teeth_half_width * (upper ? .94f : .74f),
                .height = (upper ? .095f : .075f) * fh};
  const float spread = .30f + .6f * model.softness;
  return make_layer(model, [&](float x, float y) {
    Sample sum{{0, 0, 0}, 0};  // colours times alpha
    for (const float oy : {-spread, 0.f, spread}) {
      for (const float ox : {-spread, 0.f, spread}) {
        const Sample s = paint_tooth(model, row, x + ox, y + oy);
        sum = {{sum.colour.y + s.colour.y, sum.colour.u + s.colour.u, sum.colour.v + s.colour.v},
               sum.a + s.a};
      }
    }
    if (sum.a == 0) {
      return Sample{{16, 128, 128}, 0};
    }
    return Sample{{sum.colour.y / sum.a, sum.colour.u / sum.a, sum.colour.v / sum.a}, sum.a / 9};
  });
}

/**
 * Teeth photographed in a smile hang too low when the lips close over them. Moves the layer up
 * until the biting edge is at most 3 % of the face's height below the lip line.
 */
void seat_upper(const Model& model, Layer& layer) {
  const Contours& c = model.contours;
  const float seam = c.seam[size_t(c.count / 2)], lowest = seam + .030f * model.face_height;
  int edge = 0;
  const int left = std::max(0, int(c.centre - .25f * c.half_width - layer.left)),
            right = std::min(layer.width, int(c.centre + .25f * c.half_width - layer.left));
  for (int y = 0; y < layer.height; y++) {
    int opaque = 0;
    for (int x = left; x < right; x++) {
      opaque += layer.yuva[4 * (size_t(y) * size_t(layer.width) + size_t(x)) + 3] > 127;
    }
    if (opaque * 2 > right - left) {
      edge = y;
    }
  }
  layer.top -= std::max(0.f, layer.top + float(edge) - lowest);
}

struct Growth {
  float baby, child;
};
/**
 * Distance from the bridge of the nose to the chin, in distances between the eyes' outer corners
 * and in widths of the face: of a baby without teeth, and of a child with them. A face is a baby's
 * where both are small. From the growth of these distances (L. G. Farkas, Anthropometry of the
 * Head and Face, 1994) and of FaceMesh's landmarks, which are nearer to an adult's: 153 portraits
 * of teenagers and adults measured 1.04 and .73 at least, MakeHuman's baby 1.01 and .71.
 */
constexpr Growth BY_EYES{1.f, 1.04f}, BY_WIDTH{.705f, .73f};
/** Vertices of the FaceMesh topology. */
constexpr int EYE_LEFT = 33, EYE_RIGHT = 263, CHEEK_LEFT = 234, CHEEK_RIGHT = 454;

/** @returns the distance between two landmarks, pixels, 1 at least */
float span(const Asset& asset, int from, int to) {
  const Point a = asset.landmark(from), b = asset.landmark(to);
  return std::max(1.f, std::hypot(b.x - a.x, b.y - a.y));
}

}  // namespace

void build_teeth(Model& model) {
  const Asset& asset = model.asset;
  const auto grown = [&](Growth growth, int left, int right) {
    return smoothstep(growth.baby, growth.child, model.face_height / span(asset, left, right));
  };
  model.teeth =
      std::max(grown(BY_EYES, EYE_LEFT, EYE_RIGHT), grown(BY_WIDTH, CHEEK_LEFT, CHEEK_RIGHT));
  model.teeth_upper =
      asset.teeth_upper ? from_patch(model, asset.teeth_upper) : painted(model, true);
  seat_upper(model, model.teeth_upper);
  model.teeth_lower =
      asset.teeth_lower ? from_patch(model, asset.teeth_lower) : painted(model, false);
}

}  // namespace mouthpiece::face
