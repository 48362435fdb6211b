// The layers of an iris. Where lids cover it, its colour is that of its visible part at the same
// distance from the centre. Shares were chosen by eye on the default faces and on photographs.
#include "core/face_eyeball.h"

#include <cmath>
#include <vector>

namespace mouthpiece::face {
namespace {

/** The rim of the white that moves with an iris: where it begins to fade, and over what width. */
constexpr float RIM = 1.05f, RIM_FADE = .12f;

/** The colours of an iris by the distance from its centre, half a pixel apart. */
class RadialColours {
 public:
  RadialColours(const EyeView& view, Point centre, float radius)
      : colours_(size_t(2 * radius) + 2) {
    std::vector<std::vector<Colour>> rings(colours_.size());
    for (float v = -radius; v <= radius; v += .5f) {
      for (float u = -radius; u <= radius; u += .5f) {
        const size_t ring = size_t(2 * std::hypot(u, v));
        if (ring < rings.size() && view.shows(centre.x + u, centre.y + v)) {
          rings[ring].push_back(view.at(centre.x + u, centre.y + v));
        }
      }
    }
    Colour last{0, 128, 128};
    for (size_t i = rings.size(); i-- > 0;) {
      std::vector<Colour>& ring = rings[i];
      if (!ring.empty()) {
        const auto middle = ring.begin() + ptrdiff_t(ring.size() / 2);
        std::nth_element(ring.begin(), middle, ring.end(),
                         [](const Colour& a, const Colour& b) { return a.y < b.y; });
        last = *middle;
      }
      colours_[i] = last;
    }
  }
  const Colour& at(float distance) const {
    return colours_[std::min(size_t(2 * distance), colours_.size() - 1)];
  }

 private:
  std::vector<Colour> colours_;
};

/** @returns a transparent layer round an iris */
Layer layer_round(const Asset& asset, Point centre, float reach) {
  const auto whole = [](float value, int size) {
    return std::clamp(int(std::floor(value)), 0, size);
  };
  const int x0 = whole(centre.x - reach - 1, asset.width),
            y0 = whole(centre.y - reach - 1, asset.height);
  Layer layer;
  layer.left = float(x0);
  layer.top = float(y0);
  layer.width = whole(centre.x + reach + 3, asset.width) - x0;
  layer.height = whole(centre.y + reach + 3, asset.height) - y0;
  layer.yuva.resize(size_t(layer.width) * size_t(layer.height) * 4);
  return layer;
}

/** Calls `colour(u, v, out)` for each pixel of a layer; `out` takes Y, U, V and A. */
template <class Function>
void fill(Layer& layer, const EyeView& view, const Function& colour) {
  for (int y = 0; y < layer.height; y++) {
    for (int x = 0; x < layer.width; x++) {
      const Point p = view.to_eye(layer.left + float(x), layer.top + float(y));
      colour(p.x, p.y, layer.yuva.data() + 4 * (size_t(y) * size_t(layer.width) + size_t(x)));
    }
  }
}

void put(uint8_t* out, const Colour& colour, float alpha) {
  const float values[4] = {colour.y, colour.u, colour.v, 255 * alpha};
  for (size_t c = 0; c < 4; c++) {
    out[c] = uint8_t(std::clamp(values[c] + .5f, 0.f, 255.f));
  }
}

}  // namespace

Layer iris_disc(const Asset& asset, const EyeView& view, const Iris& iris) {
  const float fade = std::max(1.f, RIM_FADE * iris.radius), edge = RIM * iris.radius;
  const RadialColours radial(view, iris.centre, edge + fade);
  Layer layer = layer_round(asset, view.to_picture(iris.centre.x, iris.centre.y), edge + fade);
  const Eye& eye = view.eye();
  fill(layer, view, [&](float u, float v, uint8_t* out) {
    const float distance = std::hypot(u - iris.centre.x, v - iris.centre.y);
    Colour colour = view.at(u, v);
    if (!view.shows(u, v)) {
      colour = radial.at(distance);
      // The shade of the lid goes on above it.
      const float margin = view.upper(u) + std::max(1.f, LASHES * eye.height) + .5f,
                  below = std::hypot(u - iris.centre.x, margin - iris.centre.y);
      if (v < margin && view.shows(u, margin) && below < edge) {
        const float shade = view.at(u, margin).y / std::max(1.f, radial.at(below).y);
        colour.y *= std::clamp(shade, .5f, 1.1f);
      }
    }
    put(out, colour, smoothstep(edge + fade, edge, distance));
  });
  return layer;
}

Layer iris_white(const Asset& asset, const EyeView& view, const Iris& iris) {
  const float fade = std::max(1.f, RIM_FADE * iris.radius), edge = RIM * iris.radius + fade;
  Layer layer = layer_round(asset, view.to_picture(iris.centre.x, iris.centre.y), edge + fade);
  const Eye& eye = view.eye();
  const float least = .1f * eye.length;
  // Row by row, from beside the iris: what is as near to both lids as the pixel.
  fill(layer, view, [&](float u, float v, uint8_t* out) {
    const float top = view.upper(u), bottom = view.lower(u);
    const float share = clamp01((v - top) / std::max(1.f, bottom - top)),
                half = std::sqrt(
                           std::max(0.f, edge * edge - (v - iris.centre.y) * (v - iris.centre.y))) +
                       1;
    const auto beside = [&](float sign) {
      Colour sum{0, 0, 0};
      for (int i = 0; i < 3; i++) {
        const float from = std::clamp(iris.centre.x + sign * (half + float(i)), .04f * eye.length,
                                      .96f * eye.length);
        const Colour c = view.at(from, mix(view.upper(from), view.lower(from), share));
        sum = {sum.y + c.y / 3, sum.u + c.u / 3, sum.v + c.v / 3};
      }
      return sum;
    };
    const float left = iris.centre.x - half, right = iris.centre.x + half;
    float k = clamp01((u - left) / (right - left));
    if (left < least) {
      k = 1;
    } else if (right > eye.length - least) {
      k = 0;
    }
    const Colour a = beside(-1), b = beside(1);
    put(out, {mix(a.y, b.y, k), mix(a.u, b.u, k), mix(a.v, b.v, k)},
        smoothstep(edge + fade, edge, std::hypot(u - iris.centre.x, v - iris.centre.y)) *
            smoothstep(top - 1, top + .5f, v) * smoothstep(bottom + 3, bottom + 1, v));
  });
  return layer;
}

}  // namespace mouthpiece::face
