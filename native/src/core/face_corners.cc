// Removes what a resting mouth leaves beside its corners (see face_corners.h). Colours come from
// the skin round it, the grain from a place near by. Amounts were chosen by eye on photographs.
#include "core/face_corners.h"

#include <algorithm>
#include <cmath>

#include "core/face_model.h"
#include "core/face_outline.h"
#include "core/face_vertices.h"

namespace mouthpiece::face {
namespace {

/** Widest neighbourhood that colours are taken from, share of the face's height. */
constexpr float WIDE = .16f;
/** Of grain: finer than this share of the face's height, and in a beard than so many of these. */
constexpr float FINE = .02f, HAIRS = 3;

/**
 * Continues `in` smoothly to where `weight` is 0: means of neighbourhoods, weighted, from the
 * widest to the narrowest that has enough weight in it.
 */
Grey continued(const Grey& in, const Grey& weight, int widest) {
  Grey product = in;
  for (size_t i = 0; i < in.data.size(); i++) {
    product.data[i] *= weight.data[i];
  }
  Grey out = in;
  bool first = true;
  for (int radius = widest; radius >= 2; radius /= 2) {
    const Grey sum = mean(mean(product, radius), radius), mass = mean(mean(weight, radius), radius);
    for (size_t i = 0; i < in.data.size(); i++) {
      const float value = sum.data[i] / std::max(1e-6f, mass.data[i]);
      out.data[i] = first ? value : mix(out.data[i], value, smoothstep(.05f, .5f, mass.data[i]));
    }
    first = false;
  }
  return out;
}

/** Within so many half widths of the mouth of the outline, background is looked for. */
constexpr float NEAR_OUTLINE = .22f;
/** Skin's hue is as near to its mean, in chroma and in standard deviations. */
constexpr double SAME_HUE = 5, SPREADS = 2.5;

/** A place is replaced wholly where a fifth of its neighbourhood tells: creases are thin lines. */
constexpr float SPREAD = 5;

/** A place beside a corner, in half widths of the mouth. */
struct Beside {
  float side;           // -1 left in the picture, 1 right
  float beyond, below;  // from the lips' outer corner, outwards and down
  float upper, lower;   // on the lips: 0 at the seam, 1 at the outer edges
  float inside;         // from the face's outline, inwards
};

class Corners {
 public:
  explicit Corners(const Model& model) : model_(model), c_(model.contours), outline_(model) {
    constexpr std::array<int, 2> ENDS{MOUTH_LEFT, MOUTH_RIGHT};
    for (size_t i = 0; i < ENDS.size(); i++) {
      const Point p = model.asset.landmark(ENDS[i]);
      const float x = model.frame.to_local(p.x, p.y).x;
      ends_[i] = mix(1, std::clamp(std::abs(x - c_.centre) / c_.half_width, 1.f, 1.2f), .2f);
    }
  }

  Beside at(float x, float y) const {
    const Point p = model_.frame.to_local(x, y);
    const size_t k = size_t(std::clamp(p.x - c_.left, 0.f, float(c_.count - 1)));
    const float seam = c_.seam[k], wn = c_.half_width, u = p.x - c_.centre;
    return {u < 0 ? -1.f : 1.f,
            std::abs(u) / wn - ends_[u < 0 ? 0 : 1],
            (p.y - seam) / wn,
            (seam - p.y) / std::max(2.f, seam - c_.upper_outer[k]),
            (p.y - seam) / std::max(2.f, c_.lower_outer[k] - seam),
            outline_.inside(p) / wn};
  }

 private:
  const Model& model_;
  const Contours& c_;
  Outline outline_;
  std::array<float, 2> ends_{};
};

/** How much of the skin at a place is replaced, 0 to 1. */
float replaced(const Beside& at) {
  // Far from the corner only its line goes: a fold of the cheek stays.
  const float high = mix(1, .6f, smoothstep(.25f, .5f, at.beyond));
  return smoothstep(-.06f, .06f, at.beyond) * smoothstep(.8f, .5f, at.beyond) *
         smoothstep(.36f * high, .16f * high, std::abs(at.below)) *
         smoothstep(.02f, .2f, at.inside);
}

/** How far a place is skin like the one that is looked for, 0 to 1. */
float usable(const Beside& at) {
  const float lips = smoothstep(1.35f, 1.6f, std::max(at.upper, at.lower));
  const float crease = at.beyond > -.1f ? std::max(smoothstep(.1f, .2f, std::abs(at.below)),
                                                   smoothstep(.5f, .7f, at.beyond))
                                        : lips;
  // A head that is turned has little skin beside the far corner. Behind its outline is background.
  return (at.beyond < .1f ? std::min(lips, crease) : crease) * smoothstep(.03f, .12f, at.inside);
}

/**
 * Takes the weight of places near the outline that do not have the skin's hue: landmarks of a head
 * that is turned may have background within them.
 */
void without_background(const std::array<Grey, 3>& picture, const std::vector<Beside>& places,
                        Grey& weight) {
  double mass = 1e-6, u = 0, v = 0, squares = 0;
  const auto each = [&](auto visit) {
    for (size_t i = 0; i < places.size(); i++) {
      visit(i, double(picture[1].data[i]), double(picture[2].data[i]),
            double(weight.data[i] * smoothstep(NEAR_OUTLINE, 2 * NEAR_OUTLINE, places[i].inside)));
    }
  };
  each([&](size_t, double pu, double pv, double w) {
    mass += w, u += w * pu, v += w * pv;
    squares += w * (pu * pu + pv * pv);
  });
  u /= mass, v /= mass;
  const double spread = std::sqrt(std::max(0., squares / mass - u * u - v * v)),
               most = SAME_HUE + SPREADS * spread;
  each([&](size_t i, double pu, double pv, double) {
    const auto far = float(std::hypot(pu - u, pv - v) / most),
               inner = smoothstep(NEAR_OUTLINE, 2 * NEAR_OUTLINE, places[i].inside);
    weight.data[i] *= mix(smoothstep(1.5f, 1, far), 1, inner);
  });
}

}  // namespace

std::array<Grey, 3> bare_corners(const Model& model, const std::array<Grey, 3>& picture, int left,
                                 int top, float clear) {
  const Corners corners(model);
  const float fh = model.face_height, wn = model.contours.half_width;
  const int fine = std::max(1, int(FINE * fh)), wide = std::max(4, int(WIDE * fh));
  const Grey& luma = picture[0];
  const int width = luma.width, height = luma.height;
  Grey weight = luma, zone = luma, tip = luma, evidence = luma;
  std::vector<Beside> places;
  places.reserve(luma.data.size());
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      places.push_back(corners.at(float(left + x), float(top + y)));
    }
  }
  const Grey closed = closing(luma, std::clamp(int(std::lround(.022f * fh)), 1, 12));
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      const size_t i = size_t(y) * size_t(width) + size_t(x);
      const Beside& at = places[i];
      const float dark = (closed.data[i] - luma.data[i]) / 8;
      weight.data[i] = usable(at) * mix(1, std::exp(-dark * dark), clear) + 1e-4f;
      zone.data[i] = replaced(at);
      tip.data[i] = .6f * smoothstep(-.26f, -.1f, at.beyond) * smoothstep(.12f, 0, at.beyond) *
                    smoothstep(.2f, .1f, std::abs(at.below));
    }
  }
  without_background(picture, places, weight);
  std::array<Grey, 3> bare{continued(picture[0], weight, wide), continued(picture[1], weight, wide),
                           continued(picture[2], weight, wide)};
  const Grey smooth = mean(mean(luma, fine), fine);

  // What is dark above and below the line of a crease too is a moustache.
  std::array<float, 2> hair{}, area{1, 1};
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      const size_t i = size_t(y) * size_t(width) + size_t(x);
      const Beside& at = places[i];
      const size_t side = at.side < 0 ? 0 : 1;
      const float share = zone.data[i] * smoothstep(.08f, .14f, std::abs(at.below));
      area[side] += share;
      hair[side] += share * smoothstep(12, 30, bare[0].data[i] - smooth.data[i]);
    }
  }

  // Grain and hair are taken from below the corner: as sharp as those of the place itself.
  const int hairs = std::max(1, int(float(fine) * mix(HAIRS, 1, clear)));
  const Grey even = mean(mean(luma, hairs), hairs);
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      const size_t i = size_t(y) * size_t(width) + size_t(x);
      const float dy = std::abs(bare[0].data[i] - smooth.data[i]),
                  du = std::abs(bare[1].data[i] - picture[1].data[i]),
                  dv = std::abs(bare[2].data[i] - picture[2].data[i]),
                  sharp = std::abs(luma.data[i] - smooth.data[i]);
      evidence.data[i] = smoothstep(3, 9, std::max(dy, sharp) + 2 * du + 2 * dv);
    }
  }
  evidence = mean(evidence, fine);
  const int away = int(.42f * wn);
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      const size_t i = size_t(y) * size_t(width) + size_t(x);
      const Beside& at = places[i];
      const size_t side = at.side < 0 ? 0 : 1;
      const float amount = zone.data[i] * clamp01(SPREAD * evidence.data[i]) *
                           smoothstep(.75f, .5f, hair[side] / area[side]);
      const int below = std::min(y + away, height - 1);
      const size_t from = size_t(below) * size_t(width) + size_t(x);
      bare[0].data[i] +=
          smoothstep(.03f, .12f, places[from].inside) * (luma.data[from] - even.data[from]);
      for (size_t channel = 0; channel < 3; channel++) {
        bare[channel].data[i] =
            amount > 0 ? amount * (bare[channel].data[i] - picture[channel].data[i]) : 0;
      }
      bare[0].data[i] += (1 - amount) * tip.data[i] * (closed.data[i] - luma.data[i]);
    }
  }
  return bare;
}

}  // namespace mouthpiece::face
