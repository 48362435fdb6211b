// Builds the relief of a face (see face_relief.h). Amounts and sizes were chosen by eye on
// photographs, paintings and the default faces.
#include "core/face_relief.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/face_corners.h"
#include "core/face_grey.h"
#include "core/face_model.h"
#include "core/face_pucker.h"
#include "core/face_pursed.h"

namespace mouthpiece::face {
namespace {

constexpr int CELL = Relief::CELL;
/** Thickness of an upper lip that is not thin, and of one that protrudes; face heights. */
constexpr float FULL_LIP = .060f, FULL_PUCKER = .068f;
/** Luma of the skin above the lip, share of the lower lip's, when it is and is not under hair. */
constexpr std::array<float, 2> HAIRY{.68f, .88f};
/** How far dark grain on the skin is from its surroundings, luma: in a drawing, in a photograph. */
constexpr std::array<float, 2> TEXTURE{.4f, 2};
/** Most of the lower lip's colour that a thin or pale upper lip takes when it protrudes. */
constexpr float MOST_RED = .8f;
/** Luma of the upper lip: share of that of the lower one, and most of that of the skin above it. */
constexpr float SHADED = .86f, DARKER = .84f;

/**
 * Red that is added to the upper lip has the lower one's detail, so many times, bounded to so much
 * luma, taken from these shares of that lip's thickness; and is lighter at its outer edge than at
 * the line between the lips by this, at a luma of 150.
 */
constexpr float OWN_DETAIL = 1.6f, MOST_DETAIL = 25, TURNED_LIGHT = 110;
constexpr std::array<float, 2> DETAIL_FROM{.25f, .85f};

/**
 * Luma of skin from which on the shade of hollows is less, at which this share is left, and the
 * share. On bright, even skin it looked like dirt.
 */
constexpr std::array<float, 2> BRIGHT{150, 195};
constexpr float FAINT = .4f;

/** A bell round `centre`: 1 there, 0 at a distance of two `width`s. */
float bell(float x, float centre, float width) {
  const float t = (x - centre) / (2 * width);
  return t * t < 1 ? (1 - t * t) * (1 - t * t) : 0;
}

/** A place on the skin round the mouth, in half widths of the mouth but for `chin`. */
struct SkinPlace {
  float side, r, below;  // from the middle of the seam, across (r: either way) and down
  float nose;            // the nose's base, down
  float chin;            // 0 at the lower lip's edge, 1 at the chin's
  float inside;          // 1 on the face, 0 at its outline and beyond
};

/** Changes of luma for lips that round, spread and press and a jaw that drops, at a luma of 150. */
using SkinLight = std::array<float, Relief::KINDS>;

/**
 * The light on cheeks, folds and chin. `dent`, -1 to 1, is the relief of bunched skin; `textured`
 * is 0 for a drawing, which has no folds at the corners.
 */
SkinLight skin_light(const SkinPlace& at, float dent, float textured) {
  // The fold runs from the nose's wing past the corner.
  const float down = (at.below - at.nose) / (.35f - at.nose), fold = .78f + .55f * down;
  const float along = smoothstep(-.15f, .25f, down) * smoothstep(1.15f, .7f, down);
  const float from = at.r - fold;
  return {at.inside * (textured * gathered(at.side, at.below) -
                       9 * bell(at.r, 1.5f, .17f) * bell(at.below, -.05f, .4f)),
          at.inside * (along * (13 * bell(from, .22f, .16f) - 18 * bell(from, -.01f, .08f)) -
                       7 * bell(at.r, 1.12f, .07f) * bell(at.below, -.03f, .13f)),
          smoothstep(.62f, .4f, at.r) *
              (4 * dent * bell(at.chin, .58f, .2f) - 8 * bell(at.chin, .16f, .1f)),
          -15 * at.inside * bell(at.r, 1.45f, .24f) * bell(at.below, .3f, .42f)};
}

/** Relief of bunched skin at (u, v) in half widths of the mouth: a sum of waves, -1 to 1. */
float dents(float u, float v) {
  return .4f * (std::sin(11 * u + 4 * v) + std::sin(13 * v - 5 * u + 1.3f) +
                std::sin(15 * u - 12 * v + 2.1f));
}

}  // namespace

bool Relief::near(const Layer& layer, int x, int y, int across, int down) const {
  constexpr int MARGIN = 6;
  const int cells = width / CELL;
  const auto index = [](int at) { return (at + CELL * 64) / CELL - 64; };  // rounds down
  const int i0 = std::max(0, index(x - MARGIN)),
            i1 = std::min(cells - 1, index(x + across + MARGIN)),
            j0 = std::max(0, index(y - MARGIN)),
            j1 = std::min(height / CELL - 1, index(y + down + MARGIN));
  for (int j = j0; j <= j1; j++) {
    for (int i = i0; i <= i1; i++) {
      if (layer.cells[size_t(j * cells + i)]) {
        return true;
      }
    }
  }
  return false;
}

void build_relief(Model& model) {
  const Asset& asset = model.asset;
  const Contours& c = model.contours;
  const float wn = c.half_width, fh = model.face_height;
  Relief& relief = model.relief;
  const Point middle = model.frame.to_picture(c.centre, c.seam[size_t(c.count / 2)]);
  const auto edge = [](float at, int most) { return std::clamp(int(at) / CELL * CELL, 0, most); };
  relief.left = edge(middle.x - 2.1f * wn, asset.width - CELL);
  relief.top = edge(middle.y - 1.2f * wn, asset.height - CELL);
  relief.width = edge(middle.x + 2.1f * wn + CELL, asset.width) - relief.left;
  relief.height = edge(middle.y + 1.4f * wn + CELL, asset.height) - relief.top;
  relief.width = std::max(relief.width, CELL);
  relief.height = std::max(relief.height, CELL);

  const size_t pixels = size_t(relief.width) * size_t(relief.height);
  Grey skin{relief.width, relief.height, std::vector<float>(pixels)}, u = skin, v = skin;
  for (int y = 0; y < relief.height; y++) {
    for (int x = 0; x < relief.width; x++) {
      const size_t at = size_t(relief.top + y) * size_t(asset.width) + size_t(relief.left + x),
                   chroma = size_t((relief.top + y) / 2) * size_t(asset.width / 2) +
                            size_t((relief.left + x) / 2);
      skin.at(x, y) = asset.luma[at];
      u.at(x, y) = asset.u[chroma];
      v.at(x, y) = asset.v[chroma];
    }
  }
  const int radius = std::clamp(int(std::lround(.022f * fh)), 1, 12);
  const Grey closed = closing(skin, radius);

  struct Place {
    float beyond, below, r, upper, lower;
    float thick;  // of the upper lip, pixels
    SkinPlace skin;
    Pursed::Place pursed;
  };
  const auto place = [&](int x, int y) {
    const Point p = model.frame.to_local(float(relief.left + x), float(relief.top + y));
    const float column = std::clamp(p.x - c.left, 0.f, float(c.count - 1));
    const size_t k = size_t(column);
    const float seam = c.seam[k], side = (p.x - c.centre) / wn, r = std::abs(side),
                below = (p.y - seam) / wn, outline = c.outline[p.x > c.centre ? 1 : 0],
                upper = (seam - p.y) / std::max(2.f, seam - c.upper_outer[k]),
                lower = (p.y - seam) / std::max(2.f, c.lower_outer[k] - seam);
    return Place{r - 1,
                 below,
                 r,
                 upper,
                 lower,
                 seam - c.upper_outer[k],
                 {side, r, below, (c.nose - seam) / wn,
                  (p.y - c.lower_outer[k]) / std::max(4.f, c.chin[k] - c.lower_outer[k]),
                  smoothstep(.95f * outline, .7f * outline, r)},
                 {column, side, p.y - seam, upper, lower}};
  };
  // In a beard dark lines are everywhere: there a crease is not distinguished.
  double ambient = 0;
  int count = 1;
  for (int y = 0; y < relief.height; y++) {
    for (int x = 0; x < relief.width; x++) {
      const Place at = place(x, y);
      if (at.beyond > -.1f && at.beyond < .6f && std::abs(at.below) > .45f &&
          std::abs(at.below) < .8f) {
        ambient += double(closed.data[size_t(y) * size_t(relief.width) + size_t(x)]) -
                   double(skin.at(x, y));
        count++;
      }
    }
  }
  const float clear = smoothstep(16, 7, float(ambient / count)),
              textured = smoothstep(TEXTURE[0], TEXTURE[1], float(ambient / count));
  const std::array<Grey, 3> corners =
      bare_corners(model, {skin, u, v}, relief.left, relief.top, clear);

  // Protruding lips turn outwards: they show red that the portrait hides.
  struct Mean {
    Colour sum{0, 0, 0};
    float mass = 1e-3f;
    void add(Colour c, float w) {
      sum = {sum.y + w * c.y, sum.u + w * c.u, sum.v + w * c.v};
      mass += w;
    }
    Colour colour() const { return {sum.y / mass, sum.u / mass, sum.v / mass}; }
  } lower, upper, bare;
  for (int y = 0; y < relief.height; y++) {
    for (int x = 0; x < relief.width; x++) {
      const Place at = place(x, y);
      const Colour here{skin.at(x, y), u.at(x, y), v.at(x, y)};
      const float middle_part = smoothstep(.7f, .4f, at.r);
      lower.add(here, middle_part * bell(at.lower, .45f, .2f));
      upper.add(here, middle_part * bell(at.upper, .5f, .2f));
      bare.add(here, middle_part * bell(at.upper, 1.8f, .2f));
    }
  }
  Colour red = lower.colour();
  model.contours.moustache = smoothstep(HAIRY[1], HAIRY[0], bare.colour().y / std::max(1.f, red.y));
  red.y = std::min(SHADED * red.y, std::max(DARKER * bare.colour().y, .7f * red.y));
  // An upper lip is lost where it is as pale as the skin above it, and the lower one is not.
  const float contrast = red.v - bare.colour().v,
              lack = smoothstep(3, 7, contrast) *
                     smoothstep(.2f, .7f, (red.v - upper.colour().v) / std::max(1.f, contrast));
  // Lips that are both as pale as light skin show some of the red of their insides.
  const float pale = clear * tinted(asset) * smoothstep(105, 150, bare.colour().y) *
                     smoothstep(14, 5, std::max(contrast, upper.colour().v - bare.colour().v));
  const float taller = std::max(0.f, FULL_PUCKER * fh - Pucker(c, fh, 1, 0).upper());
  const float thin = MOST_RED * clear * (1 - c.moustache) *
                     std::max(smoothstep(FULL_LIP, .5f * FULL_LIP, c.upper_thick / fh), lack);

  // A lip without a colour of its own is hair or a black outline: red is added over these.
  const Grey ground = mean(closed, 2 * radius);
  const Pursed pursed(model, {skin, u, v}, relief.left, relief.top, red, thin);
  // The corners of some mouths at rest are wide shadows.
  const Grey wider = closing(skin, 2 * radius), wide_u = mean(u, 2 * radius),
             wide_v = mean(v, 2 * radius);
  const Grey smooth = mean(skin, std::max(2, int(.06f * wn)));
  const auto lower_detail = [&](float column, float up) {
    const auto k = size_t(std::clamp(column, 0.f, float(c.count - 1)));
    const Point at = model.frame.to_picture(
        c.left + column, mix(c.seam[k], c.lower_outer[k], mix(DETAIL_FROM[0], DETAIL_FROM[1], up)));
    const auto x = size_t(std::clamp(int(at.x) - relief.left, 0, relief.width - 1)),
               y = size_t(std::clamp(int(at.y) - relief.top, 0, relief.height - 1)),
               i = y * size_t(relief.width) + x;
    return std::clamp(skin.data[i] - smooth.data[i], -MOST_DETAIL, MOST_DETAIL);
  };
  const float over_dark = 45 * lack;
  // Young skin folds less.
  const float folds = .45f + .8f * model.grade.age;
  for (Relief::Layer& layer : relief.layers) {
    layer.y.assign(pixels, 128);
    layer.u.assign(pixels / 4, 128);
    layer.v = layer.u;
    layer.cells.assign(pixels / (CELL * CELL), 0);
  }
  relief.skin_cells.assign(pixels / (CELL * CELL), 0);
  relief.skin.fill(std::vector<int8_t>(pixels, 0));
  for (int y = 0; y < relief.height; y++) {
    for (int x = 0; x < relief.width; x++) {
      const Place at = place(x, y);
      const float luma = skin.at(x, y), light = luma / 150;
      const size_t i = size_t(y) * size_t(relief.width) + size_t(x);
      const float sides = smoothstep(.9f, .45f, at.r);
      // The lower lip catches the light from above; the skin below it lies in its shadow.
      const float lips =
          light * (18 * bell(at.lower, .5f, .22f) * smoothstep(.75f, .2f, at.r) -
                   20 * bell(at.lower, 1.35f, .22f) * sides +
                   14 * bell(at.upper, 1.1f, .2f) * smoothstep(.6f, .2f, at.r) -
                   28 * bell(at.upper, .3f, .25f) * sides -
                   6 * bell(at.r, .98f, .12f) * smoothstep(.3f, .1f, std::abs(at.below)));
      // The skin beside the corners is bare whenever lips are round.
      const Colour bare_skin{luma + corners[0].data[i], u.data[i] + corners[1].data[i],
                             v.data[i] + corners[2].data[i]},
          filled{mix(bare_skin.y, mix(closed.data[i], wider.data[i], smoothstep(.75f, .95f, at.r)),
                     clear),
                 wide_u.data[i], wide_v.data[i]},
          here = pursed.without_line(at.pursed, bare_skin, filled);
      const float creases = light * pursed.creases(at.pursed, luma - smooth.data[i]);
      // Where the upper lip's red is added; not over hair, which is darker.
      const float rise = -at.below * wn,
                  height = at.thick * smoothstep(1, .8f, at.r) +
                           taller * std::sqrt(std::max(0.f, 1 - at.r * at.r / .81f));
      const float reddened =
          thin * smoothstep(height + 2, height - 1.5f, rise) * smoothstep(-1.5f, .5f, rise) *
          smoothstep(2, 6, height) *
          smoothstep(45 + over_dark, 25 + over_dark, red.y - mix(luma, ground.data[i], lack));
      // That red is as uneven as the lower lip, and a lip that turns outwards is round.
      const float up = clamp01(rise / std::max(1.f, height)),
                  lit = red.y + TURNED_LIGHT * light * (up - .45f) +
                        (reddened > 0 ? OWN_DETAIL * lower_detail(at.pursed.column, up) : 0.f);
      const float turned =
          pale * smoothstep(1.1f, .8f, std::max(at.upper, at.lower)) * smoothstep(1, .7f, at.r);
      const size_t cell = size_t(y / CELL * (relief.width / CELL) + x / CELL);
      // The border has no change: tiles beyond it continue it.
      const bool border = x == 0 || y == 0 || x + 2 >= relief.width || y + 2 >= relief.height;
      const size_t half = size_t(y / 2) * size_t(relief.width / 2) + size_t(x / 2);
      const auto set = [&](size_t kind, Colour change) {
        Relief::Layer& layer = relief.layers[kind];
        const auto put = [&](float value, uint8_t& to) {
          if (std::abs(value) >= 2.5f && !border) {
            to = uint8_t(std::clamp(value + 128.5f, 0.f, 255.f));
            layer.cells[cell] = 1;
          }
        };
        put(change.y, layer.y[i]);
        if (x % 2 == 0 && y % 2 == 0) {
          put(change.u, layer.u[half]);
          put(change.v, layer.v[half]);
        }
      };
      const auto turn = [&](float from, float without, float to) {
        return without - from + reddened * (to - without);
      };
      set(Relief::PROTRUDED, {lips + creases + turn(bare_skin.y, here.y, lit) - 6 * light * turned,
                              turn(bare_skin.u, here.u, red.u) - turned,
                              turn(bare_skin.v, here.v, red.v) + 4 * turned});
      set(Relief::CORNERS, {corners[0].data[i], corners[1].data[i], corners[2].data[i]});
      const SkinLight change =
          skin_light(at.skin, at.r < .62f ? dents(at.r, at.below) : 0, textured);
      const float hollow = light * mix(1, FAINT, smoothstep(BRIGHT[0], BRIGHT[1], smooth.data[i]));
      const std::array<float, Relief::KINDS> skins{
          hollow * change[Relief::ROUND], hollow * folds * change[Relief::SPREAD],
          hollow * change[Relief::PRESS], hollow * change[Relief::JAW]};
      for (size_t kind = 0; kind < Relief::KINDS; kind++) {
        const float bounded = std::clamp(skins[kind], -127.f, 127.f);
        const auto value = int8_t(std::abs(bounded) < 1.5f ? 0 : std::lround(bounded));
        relief.skin[kind][i] = value;
        relief.skin_cells[cell] |= value == 0 ? 0 : uint8_t(1u << kind);
      }
    }
  }
}

}  // namespace mouthpiece::face
