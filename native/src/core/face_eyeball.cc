// The layers of an iris. Where lids cover it, its colour is that of its visible part at the same
// distance from the centre. Shares were chosen by eye on the default faces and on photographs.
#include "core/face_eyeball.h"

#include <cmath>
#include <vector>

namespace mouthpiece::face {
namespace {

/** The rim of the white that moves with an iris: where it begins to fade, and over what width. */
constexpr float RIM = 1.05f, RIM_FADE = .12f;
/** Of the colours of an iris, those so far from its centre are free of the white, in its radii. */
constexpr float INNER = .86f;
/** How far from the corners the white is looked at, share of the eye's length. */
constexpr float FROM_CORNER = .12f;
/** The brightest of the white, but for gleams: this share of it is darker. */
constexpr float BRIGHTEST = .6f;
/** How much redder than the white a corner is: where it begins, and certainly is. */
constexpr float REDDER[2] = {7, 18};
/** How much darker the white is at a corner, and under the upper lid. */
constexpr float CORNER_SHADE = .3f, LID_SHADE = .4f;
/** Least light on a shaded part of the white, share of that where the white is seen. */
constexpr float DARKEST = .45f;
/** Trust in a colour that cannot be that of the white, 0..1. */
constexpr float LEAST_TRUST = .02f;

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
    out[c] = to_byte(values[c]);
  }
}

/** @returns the luma of the skin below the eye: as much light falls on the white above it */
float light_at(const EyeView& view, float u) {
  const Eye& eye = view.eye();
  float sum = 0;
  int count = 0;
  for (float du = -.06f; du <= .07f; du += .03f) {
    for (float d = .35f; d < .7f; d += .1f, count++) {
      const float at = u + du * eye.length;
      sum += view.at(at, view.lower(at) + d * eye.height).y;
    }
  }
  return sum / float(count);
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
    const bool is_seen = view.shows(u, v);
    if (!is_seen) {
      colour = radial.at(std::min(distance, INNER * iris.radius));
      // The shade of the lid goes on above it.
      const float margin = view.upper(u) + std::max(1.f, LASHES * eye.height) + .5f,
                  below = std::hypot(u - iris.centre.x, margin - iris.centre.y);
      if (v < margin && view.shows(u, margin) && below < edge) {
        const float shade = view.at(u, margin).y / std::max(1.f, radial.at(below).y);
        colour.y *= std::clamp(shade, .5f, 1.1f);
      }
    }
    // Under lids and lashes, and at the corners, there is no rim of the white: it would be a bright
    // ring.
    put(out, colour,
        is_seen ? smoothstep(edge + fade, edge, distance)
                : smoothstep(iris.radius + .5f * fade, iris.radius - .5f * fade, distance));
  });
  return layer;
}

White white_beside(const EyeView& view, const Iris& iris) {
  const Eye& eye = view.eye();
  const float edge = RIM * iris.radius + std::max(1.f, RIM_FADE * iris.radius);
  struct Seen : Colour {
    float u;
  };
  std::vector<Seen> found;
  for (float u = FROM_CORNER * eye.length; u <= (1 - FROM_CORNER) * eye.length; u += .5f) {
    for (float v = view.upper(u); v <= view.lower(u); v += .5f) {
      if (view.shows(u, v) && std::hypot(u - iris.centre.x, v - iris.centre.y) > edge) {
        found.push_back({view.at(u, v), u});
      }
    }
  }
  // The palest half: lids and the inner corner are redder, and lashes are darker.
  const auto paleness = [](const Colour& c) { return c.y - 2 * std::max(0.f, c.v - 128); };
  std::sort(found.begin(), found.end(),
            [&](const Colour& a, const Colour& b) { return paleness(a) > paleness(b); });
  found.resize((found.size() + 1) / 2);
  White white;
  for (const Seen& one : found) {
    white.light += light_at(view, one.u) / float(found.size());
  }
  white.samples = int(found.size());
  if (found.empty()) {
    return white;
  }
  const auto quantile = [&](float Colour::* channel, float share) {
    const auto at = found.begin() + ptrdiff_t(share * float(found.size() - 1));
    std::nth_element(found.begin(), at, found.end(),
                     [&](const Colour& a, const Colour& b) { return a.*channel < b.*channel; });
    return (*at).*channel;
  };
  white.brightest = quantile(&Colour::y, BRIGHTEST);
  white.typical = {quantile(&Colour::y, .5f), quantile(&Colour::u, .5f), quantile(&Colour::v, .5f)};
  return white;
}

Layer iris_white(const Asset& asset, const EyeView& view, const Iris& iris, const White& white) {
  const float fade = std::max(1.f, RIM_FADE * iris.radius), edge = RIM * iris.radius + fade;
  Layer layer = layer_round(asset, view.to_picture(iris.centre.x, iris.centre.y), edge + fade);
  const Eye& eye = view.eye();
  // How much a colour is that of the white, 0..1: no corner, no lash, no gleam.
  const auto trust = [&](const Colour& c, float light) {
    if (white.samples == 0) {
      return 1.f;
    }
    return smoothstep(REDDER[1], REDDER[0], c.v - white.typical.v) *
           smoothstep(.12f * white.typical.y, .3f * white.typical.y, c.y) *
           smoothstep(1.4f * light * white.brightest, 1.15f * light * white.brightest, c.y);
  };
  const auto light_on = [&](float u) {
    return std::clamp(light_at(view, u) / std::max(1.f, white.light), DARKEST, 1.f);
  };
  // The eyeball is round: it is darker at its corners.
  const auto roundness = [&](float u) {
    const float corner = std::clamp(std::min(u, eye.length - u) / eye.length, 0.f, 1.f);
    return 1 - CORNER_SHADE * smoothstep(.35f, 0, corner);
  };
  // In a glance to the side the iris touches a corner: no white is bared there.
  const auto bared = [&](float k) {
    const float room_a = iris.centre.x - iris.radius,
                room_b = eye.length - iris.centre.x - iris.radius;
    return k < .5f ? 1 - smoothstep(.25f * iris.radius, 0, room_a) * smoothstep(.5f, .25f, k)
                   : 1 - smoothstep(.25f * iris.radius, 0, room_b) * smoothstep(.5f, .75f, k);
  };
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
    const float left = iris.centre.x - half, right = iris.centre.x + half, light_a = light_on(left),
                light_b = light_on(right), light = light_on(u) * roundness(u);
    Colour a = beside(-1), b = beside(1);
    const float trust_a = trust(a, light_a), trust_b = trust(b, light_b),
                seen = std::max(trust_a, trust_b), k = clamp01((u - left) / (right - left)),
                weight_a = (1 - k) * (trust_a + LEAST_TRUST),
                weight_b = k * (trust_b + LEAST_TRUST), from_b = weight_b / (weight_a + weight_b);
    a.y *= std::min(1.f, light / (light_a * roundness(left)));
    b.y *= std::min(1.f, light / (light_b * roundness(right)));
    // What is seen of it on neither side has its usual colour in the shade of the lids, except the
    // margin of the lower one, which is no white.
    const float shade = light * (1 - LID_SHADE * smoothstep(.4f * eye.height, 0, v - top)) *
                        (1 - .5f * LID_SHADE * smoothstep(.2f * eye.height, 0, bottom - v)),
                own = std::max(seen, smoothstep(bottom - 1.5f, bottom, v)),
                brightest = mix(shade * white.brightest, 255, seen),
                luma = std::min(brightest, mix(a.y, b.y, from_b));
    put(out,
        {mix(shade * white.typical.y, luma, own), mix(white.typical.u, mix(a.u, b.u, from_b), own),
         mix(white.typical.v, mix(a.v, b.v, from_b), own)},
        smoothstep(edge + fade, edge, std::hypot(u - iris.centre.x, v - iris.centre.y)) * bared(k) *
            smoothstep(top - 1, top + .5f, v) * smoothstep(bottom + 3, bottom + 1, v));
  });
  return layer;
}

}  // namespace mouthpiece::face
