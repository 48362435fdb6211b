// Layers of the teeth, painted in the portrait's tint. Teeth cut out of a smile look pasted in, and
// end where the photograph showed no more. Shapes and shades were chosen by eye.
#include <algorithm>
#include <array>

#include "core/face_model.h"
#include "core/face_mouth_interior.h"
#include "core/face_vertices.h"

namespace mouthpiece::face {
namespace {

struct Sample {
  Colour colour;
  float a;  // alpha, 0 to 1
};

/** A row of painted teeth. */
struct Row {
  bool upper;
  float edge;         // y of the biting edge; the row extends `height` away from it
  float left, right;  // half widths on both sides of the middle, pixels
  float height;
  float line;  // half the width of the lines between teeth, pixels
};

/** From -1 to 1: how tooth `k` of a side differs from its neighbours, in the property `which`. */
float difference(const Row& row, int k, bool left, int which) {
  const auto seed = uint32_t(k * 8 + which * 64 + (left ? 1 : 0) + (row.upper ? 2 : 0));
  const uint32_t mixed = (seed * 2654435761u) ^ 0x9e3779b9u, hashed = mixed * 2246822519u;
  return float(hashed >> 8) / float(1u << 23) - 1;
}

/**
 * Teeth of one side, from the middle: where each ends, share of the row's half width; how far its
 * edge lies behind the first one's, share of the row's height; and how pointed it is.
 */
struct Tooth {
  float end, shorter, pointed;
};
constexpr int TEETH = 7;
constexpr std::array<Tooth, TEETH> UPPER{{{.235f, 0, 0},
                                          {.41f, .06f, 0},
                                          {.545f, .02f, .06f},
                                          {.66f, .06f, .03f},
                                          {.77f, .08f, .02f},
                                          {.88f, .10f, 0},
                                          {1.06f, .12f, 0}}},
    LOWER{{{.19f, 0, 0},
           {.38f, .01f, 0},
           {.57f, .03f, .07f},
           {.75f, .10f, .04f},
           {.90f, .15f, 0},
           {1.05f, .18f, 0},
           {1.2f, .18f, 0}}};
/**
 * How far the edges of a row rise towards its ends, share of its height. Those of the upper teeth
 * follow the lower lip (the smile arc: D. M. Sarver, The importance of incisor positioning in the
 * esthetic smile, 2001) and leave the corners of the mouth dark; a straight row looks like a strip
 * of paper (docs/faces-judged.md, round 32).
 */
constexpr float UPPER_CURVE = .7f, LOWER_CURVE = .10f;
/** How round the corners of the two incisors of a side are, and those of all other teeth. */
constexpr std::array<float, 2> ROUND{.12f, .05f};
/**
 * A turned head shows more of the side that is near and less of the other: by how much, in units of
 * how far the lips' middle is from that of the mouth (half widths).
 */
constexpr float NEARER = .9f, FARTHER = .5f;
/**
 * Light at the side teeth has passed through flesh. Share of a tooth's chroma that shade leaves,
 * and the chroma offset there of a tooth of luma 216.
 */
constexpr float SHADE_COLOUR = .4f, SHADE_U = -4, SHADE_V = 7;
/** Luma of teeth from which on highlights are weaker, and at which they are half. */
constexpr std::array<float, 2> WHITE{205, 230};
/** Less light reaches the side teeth: exp(-FALL x^POWER), x in half widths of the row. */
constexpr float UPPER_FALL = 1.3f, LOWER_FALL = 1.9f, FALL_POWER = 2.3f;

/**
 * How much of its shape each property of a dentition takes or adds at most: of `shorter`, `pointed`
 * and the curve, of how round corners are, of a first incisor's width and of the row's half width,
 * of the gaps' depth and of the light. Rows that are less even than UPPER and LOWER looked broken.
 */
constexpr float LEVEL = .06f, BLUNT = .055f, FLAT = .10f, SQUARE = .06f, WIDER = .07f,
                ASIDE = .012f, GAPS = .5f, LIGHT = .05f;

/** In a drawing teeth are one row: shares of the gaps' depth and of the highlights that it has. */
constexpr float DRAWN_GAPS = .35f, DRAWN_WET = .4f;

/** @param px, py position in the mouth's coordinates */
Sample paint_tooth(const Model& model, const Row& row, float px, float py) {
  const float age = model.grade.age;
  const Dentition& own = model.dentition;
  const auto& teeth = row.upper ? UPPER : LOWER;
  const float side = px < model.contours.middle ? row.left : row.right,
              x = (px - model.contours.middle) / side - ASIDE * own.aside, ax = std::abs(x);
  const auto end_of = [&](int k) {
    return teeth[size_t(k)].end * (k == 0 ? 1 + WIDER * own.wide : 1);
  };
  int k = 0;
  while (k < TEETH - 1 && ax >= end_of(k)) {
    k++;
  }
  const auto differs = [&](int which) { return difference(row, k, x < 0, which); };
  const Tooth tooth = teeth[size_t(k)];
  const float start = k > 0 ? end_of(k - 1) : 0, middle = (start + end_of(k)) / 2,
              half = (end_of(k) - start) / 2, u = (ax - middle) / half, u2 = u * u;
  const float away = (py - row.edge) * (row.upper ? -1.f : 1.f) / row.height;
  // Edges are round when they are young, and worn, uneven and tilted later.
  const float worn = (.018f + .04f * age) * differs(0) + (.015f + .03f * age) * differs(1) * u;
  const float shorter = tooth.shorter - (row.upper && k == 1 ? LEVEL * own.level : 0),
              curve = (row.upper ? UPPER_CURVE : LOWER_CURVE) - FLAT * own.flat,
              pointed = tooth.pointed - (k == 2 ? BLUNT * own.blunt : 0);
  const float d =
      away - shorter - curve * ax * ax - worn - pointed * (1 - .5f * age) * std::abs(u) -
      (ROUND[row.upper && k < 2 ? 0 : 1] - SQUARE * own.square) * (1 - .5f * age) * u2 * u2;
  const float alpha = smoothstep(-.06f, .08f, d) * smoothstep(1.06f, .86f, ax);
  if (alpha <= 0) {
    return {{0, 0, 0}, 0};
  }
  // Teeth touch in their middle. The gaps are deeper at the gum and where their corners are round.
  const float g = (1 - std::abs(u)) * half * side / row.line,
              gap = (model.grade.drawn ? DRAWN_GAPS : 1) *
                    ((k < 2 ? .14f : .10f) + .06f * age +
                     (k < 2 ? .18f : .10f) * smoothstep(.30f, 0, d) +
                     .10f * smoothstep(.4f, .8f, away));
  const Yuv t = model.asset.tints.teeth, q = model.asset.tints.gums;
  // A wet highlight down each tooth, clearest on one.
  const float shine = (u + .25f) / .30f, low = (d - .38f) / .26f,
              wet = (k == 0   ? (x < 0 ? .33f : .24f)
                     : k == 1 ? .15f
                              : .08f) *
                    (model.grade.drawn ? DRAWN_WET : 1) * (1 - .4f * age) *
                    (1 - .5f * smoothstep(WHITE[0], WHITE[1], float(t.y)));
  const float fall = std::exp(-(row.upper ? UPPER_FALL : LOWER_FALL) * std::pow(ax, FALL_POWER));
  const float shade =
      fall *
      (1 - .14f * std::abs(u) * u2 - .05f * u - .22f * clamp01(away - .6f) +
       (.035f + .03f * age) * differs(2) + wet * std::exp(-shine * shine - low * low)) *
      (1 - gap * (1 + GAPS * own.gaps) * std::exp(-g * g));
  const float gum = smoothstep(.82f, 1.f, away - .10f * (1 - u2) + .05f);
  // Enamel becomes thinner: what is below it is darker and yellower.
  const float old = (1 - .20f * age) * (1 + LIGHT * own.light),
              colour = (float(t.y) - 16) / 200 * tinted(model.asset), yellow = colour * age * fall,
              red = colour * (1 - fall);
  const float tone = mix(shade, 1, SHADE_COLOUR);
  // Thin at its edge, the enamel shows the dark behind it.
  const float clear = (row.upper ? .14f : .20f) * smoothstep(.16f, 0, d);
  return {{alpha * (16 + mix((float(t.y) - 16) * shade * old * (1 - clear),
                             (float(q.y) - 16) * .85f * fall, gum)),
           alpha * (128 + mix((float(t.u) - 128) * tone - 5 * yellow + SHADE_U * red,
                              (float(q.u) - 128) * .85f * fall, gum)),
           alpha * (128 + mix((float(t.v) - 128) * tone + 2.5f * yellow + SHADE_V * red,
                              (float(q.v) - 128) * .85f * fall, gum))},
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
  for (int y = 0; y < layer.height; y++) {
    for (int x = 0; x < layer.width; x++, out += 4) {
      const Sample s = source(layer.left + float(x), layer.top + float(y));
      out[0] = to_byte(s.colour.y);
      out[1] = to_byte(s.colour.u);
      out[2] = to_byte(s.colour.v);
      out[3] = to_byte(s.a * 255);
    }
  }
  return layer;
}

/**
 * Cuts off the transparent rows above and below, which would cost time in each frame. One of each
 * is kept for interpolation.
 */
void trim(Layer& layer) {
  const auto row = [&](int y) {
    return layer.yuva.begin() + std::ptrdiff_t(4) * std::ptrdiff_t(y) * layer.width;
  };
  const auto is_clear = [&](int y) {
    for (auto pixel = row(y); pixel < row(y + 1); pixel += 4) {
      if (pixel[3] > 0) {
        return false;
      }
    }
    return true;
  };
  int first = 0, last = layer.height - 1;
  while (first < last && is_clear(first)) {
    first++;
  }
  while (last > first && is_clear(last)) {
    last--;
  }
  first = std::max(0, first - 1);
  last = std::min(layer.height - 1, last + 1);
  layer.yuva.erase(row(last + 1), layer.yuva.end());
  layer.yuva.erase(layer.yuva.begin(), row(first));
  layer.top += float(first);
  layer.height = last + 1 - first;
}

/**
 * How much teeth are sharpened in portraits of this softness and less, and the softness from which
 * on they are not. A layer is sampled between its pixels in each frame, which softens it.
 */
constexpr float SHARPENED = 1.5f, SHARP = .4f, SOFT = .9f;

/** Sharpens luma by its difference from the mean of the neighbours, and the edges of the opacity.
 */
void sharpen(Layer& layer, float amount) {
  const std::vector<uint8_t> from = layer.yuva;
  for (int y = 1; y < layer.height - 1; y++) {
    for (int x = 1; x < layer.width - 1; x++) {
      const auto at = [&](int dx, int dy) {
        return from.data() + (size_t(y + dy) * size_t(layer.width) + size_t(x + dx)) * 4;
      };
      float sum = 0, mass = 1e-3f;
      for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
          const float weight = float(at(dx, dy)[3]) * (dx != 0 && dy != 0 ? .5f : 1.f);
          sum += weight * float(at(dx, dy)[0]);
          mass += weight;
        }
      }
      const float luma = at(0, 0)[0], alpha = float(at(0, 0)[3]) / 255;
      uint8_t* to = layer.yuva.data() + (size_t(y) * size_t(layer.width) + size_t(x)) * 4;
      to[0] = to_byte(alpha > 0 ? luma + SHARPENED * amount * (luma - sum / mass) : luma);
      to[3] = to_byte(255 * mix(alpha, smoothstep(.15f, .85f, alpha), amount));
    }
  }
}

/**
 * Teeth have one size in all adults, and smiles do not make them wider: above this width of the
 * mouth, in distances between the eyes, their width follows this power of its inverse.
 */
constexpr float WIDE_MOUTH = .6f, NARROWER = .6f;

/** Paints with nine samples per pixel, so that edges are as soft as the portrait's. */
Layer painted(const Model& model, bool upper) {
  const Contours& c = model.contours;
  const float fh = model.face_height, seam = c.seam[size_t(c.count / 2)];
  const float own = std::pow(std::min(1.f, WIDE_MOUTH / c.by_eyes), NARROWER),
              half_width = c.teeth_half_width * own * (upper ? 1.25f : .74f),
              turn = (c.middle - c.centre) / c.half_width;
  const Row row{.upper = upper,
                .edge = seam + biting_edge(model, upper) * fh,
                .left = half_width * (1 + (turn > 0 ? NEARER : FARTHER) * turn),
                .right = half_width * (1 - (turn > 0 ? FARTHER : NEARER) * turn),
                .height = (upper ? .095f : .075f) * fh,
                .line = .64f + .32f * model.softness};
  const float spread = .1f + .25f * model.softness;
  Layer layer = make_layer(model, [&](float x, float y) {
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
  sharpen(layer, smoothstep(SOFT, SHARP, model.softness));
  trim(layer);
  return layer;
}

struct Growth {
  float baby, child;
};
/**
 * Distance from the bridge of the nose to the chin, in distances between the eyes' outer corners
 * and in widths of the face: of a baby without teeth, and of a child with them. A face is a baby's
 * where both are small. From the growth of these distances (L. G. Farkas, Anthropometry of the
 * Head and Face, 1994) and of FaceMesh's landmarks, which are nearer to an adult's: a photographed
 * baby measured 1.047 and .725, MakeHuman's 1.01 and .71. Of 340 portraits of children and adults
 * the smallest measured 1.052 and .704 (a girl of about four), and 1.067 and .726. The bounds lie
 * close together, since teeth that are half there look like a black slot.
 */
constexpr Growth BY_EYES{1.047f, 1.052f}, BY_WIDTH{.725f, .745f};
/**
 * Height of the brows over the upper lids, in distances from the bridge of the nose to the chin. A
 * baby's brows are high: .258. Adults who look from under their brows and pictures that were
 * squeezed have short faces, too: some twenty of 2400 portraits, which measured .133 to .217.
 */
constexpr Growth BY_BROWS{.24f, .235f};

/** How much more of the upper teeth the lip leaves free at most, share of the face's height. */
constexpr float SHOWN = .007f;

}  // namespace

float biting_edge(const Model& model, bool upper) {
  // With age the upper lip covers more of the teeth, and the lower one less.
  const float age = model.grade.age;
  const float shown = SHOWN * model.dentition.shown;
  return upper ? .029f - .015f * age + shown : -.006f - .006f * age;
}

void build_teeth(Model& model) {
  const Asset& asset = model.asset;
  const auto span = [&](int from, int to) {
    return std::max(1.f, distance(asset.landmark(from), asset.landmark(to)));
  };
  const auto grown = [](Growth growth, float proportion) {
    return smoothstep(growth.baby, growth.child, proportion);
  };
  const float height = model.face_height,
              brows = (span(LEFT_BROW[2], LEFT_LID[4]) + span(RIGHT_BROW[2], RIGHT_LID[4])) / 2;
  model.teeth = std::max({grown(BY_EYES, height / span(EYE_LEFT, EYE_RIGHT)),
                          grown(BY_WIDTH, height / span(CHEEK_LEFT, CHEEK_RIGHT)),
                          grown(BY_BROWS, brows / height)});
  model.dentition = dentition_of(model);
  model.teeth_upper = painted(model, true);
  model.teeth_lower = painted(model, false);
}

}  // namespace mouthpiece::face
