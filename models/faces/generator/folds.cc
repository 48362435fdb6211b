// The relief of cloth: folds that move the surface, and seams, puckers, wrinkles and threads that
// turn its normal. Positions are the body's, in decimetres; amounts were chosen by eye.
#include "cloth.h"

namespace {

/** Where garments are sewn, and where they pull, on the side of positive x. */
struct Cut {
  /** Height of the armpit, and its distance from the middle. */
  float armpitX, armpitY;
  /** Distance of the sleeve's seam from the middle at the top of the shoulder. */
  float seam;
};

Cut cutOf(const Character& c) {
  const float w = c.sculpt.shoulders;
  return {.76f * w, -2.80f, .84f * w};
}

/** How strong wrinkles and seams are. */
constexpr float kWrinkles = .6f, kSeams = .8f;

/** A ridge about 0: a soft crest, and a hollow beside it. */
float ridge(float across, float width) {
  return gaussian(across, 0, width) - .45f * gaussian(across, 1.9f * width, 1.3f * width);
}

/** Crests where a noise crosses its middle. @returns 0 to 1 */
float crests(Vec3 p) {
  return sq(1 - std::min(1.f, 3.2f * std::fabs(noise(p) - .5f)));
}

/** @returns how far a point is outside the seam of the sleeve; negative on the body */
float outsideSeam(const Cut& cut, Vec3 p) {
  // Straight down from the shoulder, bent towards the body in front, and out to the armpit.
  const float down = clamp01((-1.75f - p.y) / (-1.75f - cut.armpitY));
  const float x = mix(cut.seam, cut.armpitX + .08f, down * down) - .07f * std::sin(3.14f * down);
  return std::fabs(p.x) - x;
}

}  // namespace

float foldsAt(const Head& head, Vec3 p) {
  const Character& c = head.character();
  const Cut cut = cutOf(c);
  const float side = p.x > 0 ? 1.f : -1.f, ax = std::fabs(p.x), own = float(c.seed);
  const Vec3 q = p + Vec3{own, 0, 0};
  const int mineOf = int(c.seed) + (p.x > 0 ? 40 : 80);
  const float bent = noise(q * 1.6f) - .5f, fine = noise(q * 4.1f) - .5f;
  const float outside = outsideSeam(cut, p), onBody = smoothstep(.10f, -.15f, outside);
  const float inFront = smoothstep(-.75f, -.25f, p.z);
  float h = 0;
  // From the armpit, like spokes, over the chest and towards the collar.
  const float dx = cut.armpitX + .10f - ax, dy = p.y - cut.armpitY;
  const float far = std::sqrt(dx * dx + dy * dy), turn = std::atan2(dy, dx);
  constexpr float kSpokes[] = {.16f, .52f, .86f, 1.16f, 1.40f};
  for (size_t i = 0; i < 5; i++) {
    const float mine = hash(mineOf, int(i), 7);
    const float at = kSpokes[i] + .16f * (mine - .5f) + .24f * bent * far + .10f * fine;
    const float ends = .95f + 1.1f * hash(mineOf, int(i), 9);
    const float width = .055f + .05f * hash(mineOf, int(i), 3);
    h += (.074f + .056f * mine) * ridge((turn - at) * far, width * (.7f + .6f * far)) *
         smoothstep(.12f, .35f, far) * smoothstep(ends, .25f * ends, far) * onBody * inFront;
  }
  // From the collar down, spreading.
  const float down = std::max(.05f, -1.25f - p.y), fan = ax / (.40f + .55f * down);
  h += .060f * (crests({3.1f * side * fan + 1.37f * own, .55f * p.y + .8f * bent, 4}) - .35f) *
       smoothstep(.2f, .5f, down) * smoothstep(1.35f, .6f, down) * onBody * inFront;
  // Across the upper arm and down to its inside: short, where the sleeve is loose.
  const float slope = p.y - .75f * (ax - cut.seam);
  const Vec3 sleeve{1.3f * ax + float(mineOf), 2.3f * slope + 1.9f * bent + .8f * fine, p.z};
  h += .034f * (crests(sleeve) - .3f) * smoothstep(0.f, .18f, outside) *
       smoothstep(-1.75f, -2.25f, p.y);
  // What is left: broad and shallow.
  h += .07f * (fbm({q.x * 1.5f, q.y * .9f, q.z}) - .44f);
  return h;
}

float reliefAt(const Head& head, Vec3 p) {
  const Character& c = head.character();
  const Cut cut = cutOf(c);
  const float side = p.x > 0 ? 1.f : -1.f, ax = std::fabs(p.x), own = float(c.seed) + 3 * side;
  float h = 0;
  // The seam of the sleeve: a groove, a stitched edge beside it, and puckers across it.
  const float outside = outsideSeam(cut, p), isLow = smoothstep(-1.45f, -1.65f, p.y);
  const float pucker = noise({own, 9 * (p.y - p.z), 3}) - .5f;
  h += kSeams * isLow *
       (-.0085f * gaussian(outside, 0, .011f) + .0040f * gaussian(outside, -.030f, .014f) +
        .0075f * pucker * gaussian(outside, .03f, .07f));
  // The seam on top of the shoulder, from the collar to the sleeve, a little to the front.
  const float top = p.z - (-.30f - .16f * smoothstep(.4f, 1.5f, ax));
  const float onTop =
      smoothstep(.45f, .60f, ax) * smoothstep(.02f, -.02f, outside) * smoothstep(-2.2f, -2.0f, p.y);
  h += kSeams * onTop * (-.0080f * gaussian(top, 0, .012f) + .0040f * gaussian(top, .03f, .016f));
  // Small wrinkles, lengthwise to the pull, where cloth is creased: near the armpit and the elbow.
  const float creased = smoothstep(-1.7f, -2.4f, p.y) * smoothstep(.5f, 1.2f, ax) +
                        .25f * smoothstep(-1.5f, -1.8f, p.y);
  const Vec3 w{3.f * ax + own, 6.5f * (p.y - .55f * (outside > 0 ? ax : -ax)), 3 * p.z};
  const float bend = noise(w * .35f);
  h += kWrinkles * .010f * creased * (crests(w + Vec3{0, 2.2f * bend, 0}) - .3f);
  return h;
}

Thread threadAt(const Head& head, Clothes clothes, Vec3 p, bool isRib) {
  const Character& c = head.character();
  const float ax = std::fabs(p.x);
  if (isRib) {
    const float u = 165.f * std::atan2(p.x, p.z + .9f) + 45.f * p.x;
    return {.8f * std::sin(u) + .2f * std::sin(220.f * p.y), .22f * std::cos(u),
            .04f * std::cos(220.f * p.y)};
  }
  // Along the surface: over the chest, round the arm, and over the shoulder to the back.
  const float arm = smoothstep(c.sculpt.shoulders - .45f, c.sculpt.shoulders, ax);
  const float back = p.z + .45f;
  const float x = p.x - std::copysign(.8f * arm * back, p.x), y = p.y - .9f * (1 - arm) * back;
  if (clothes == Clothes::kShirt || clothes == Clothes::kBlazer || clothes == Clothes::kTee) {
    // Woven cloth and jersey are even: their threads are as fine as a pixel.
    const float slub = noise({x * 14, y * 130, 3}) + noise({x * 130, y * 14, 8}) - 1;
    const float much = clothes == Clothes::kTee ? .35f : 1.f;
    return {much * slub, .08f * much * slub, .06f * much * slub};
  }
  // A knit: columns of stitches, each a V; columns and rows are a little uneven.
  const float wale = x * 38 + .35f * noise(p * 5), row = y * 48 + .5f * noise(p * 6);
  const float column = wale - std::floor(wale) - .5f;
  const float leg = row + 1.1f * std::fabs(column);
  const float stitch = leg - std::floor(leg) - .5f;
  const float gap = std::max(gaussian(std::fabs(column), .5f, .13f), gaussian(column, 0, .10f));
  return {.35f - .9f * gap - .9f * sq(2 * stitch), -.30f * std::sin(12.566f * column),
          -.22f * stitch};
}
