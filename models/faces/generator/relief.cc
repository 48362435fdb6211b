// The relief of skin: folds, wrinkles, pores and the furrows of lips. Amounts were chosen by eye.
#include "skin.h"

namespace {

/** A crease: narrow at its bottom, with a soft shoulder. */
float crease(float across, float width) {
  return gaussian(across, 0, width) - .35f * gaussian(across, 1.8f * width, 1.6f * width);
}

/** Lines where a noise crosses its middle. @returns 1 on a line to 0 */
float lines(Vec3 p, float width) {
  return smoothstep(width, 0.f, std::fabs(noise(p) - .5f));
}

/** The fold over the upper lid, bags and lines below the eye, and crow's feet. */
float aroundEyes(const Head& head, Vec3 p, float wobble) {
  const Character& c = head.character();
  const float a = c.age, side = p.x > 0 ? 1.f : -1.f;
  const Vec3 eye = head.eyesAtRest()[p.x > 0 ? 1 : 0].centre;
  const float ex = side * (p.x - eye.x), inner = head.innerCorner(), outer = head.outerCorner();
  const LidFold fold = lidFoldAt(head, ex);
  const float arch = fold.arch;
  const float x = clampTo(ex, inner, outer);
  float h = 0;
  const float above = p.y - eye.y - head.lid(true, x);
  h -= c.lidCrease * .0170f * crease(above - fold.over, .0085f) * smoothstep(0.f, .45f, arch);
  // Below: the edge of the bag, then lines that follow the lid.
  const float below = p.y - eye.y - head.lid(false, x);
  h -= (.0016f + .0050f * a) * crease(below + .052f + .02f * arch + wobble * .4f, .011f) * arch;
  for (int i = 0; i < 4; i++) {
    const float y = -.020f - (.020f + .006f * float(i)) * float(i);
    h -= (.0006f + .0042f * a) * crease(below - y - wobble * .5f, .0052f) *
         smoothstep(.1f, .6f, arch) * (.3f + noise({p.x * 9, float(i) * 5, 2}));
  }
  for (int i = 0; i < 5; i++) {
    const float y = .035f + (float(i) - 2.f) * (.017f + .34f * std::max(0.f, ex - outer)) + wobble;
    h -= (.0010f + .0062f * a) * crease(p.y - eye.y - y + .045f, .0060f) *
         smoothstep(outer - .005f, outer + .04f, ex) *
         smoothstep(outer + .12f + .12f * a, outer + .06f, ex) *
         (.5f + .6f * noise({float(i) * 7, side, ex * 9}));
  }
  // From the inner corner obliquely over the cheek, where the lid's skin meets it.
  const float along = (ex - inner) / (outer - inner), trough = below + .085f + .075f * along;
  h -= (.0030f + .0035f * a) * crease(trough + wobble * .6f, .020f) *
       smoothstep(-.10f, .08f, along) * smoothstep(.95f, .35f, along);
  return h;
}

/** From the wing of the nose past the corner of the mouth, below it, and the philtrum. */
float aroundMouth(const Head& head, Vec3 p, float wobble) {
  const Landmarks& m = head.landmarks();
  const float a = head.character().age, ax = std::fabs(p.x);
  float h = 0;
  const float down = clamp01((m.noseBase - p.y) / (m.noseBase - m.mouth.y + .06f));
  const float line = m.noseHalf + .03f + (m.mouthHalf + .085f - m.noseHalf - .03f) * down;
  h -= (.0066f + .0120f * a) * crease(ax - line - wobble * .4f, .026f - .008f * a) *
       smoothstep(0.f, .12f, down) * smoothstep(m.mouth.y - .12f, m.mouth.y + .02f, p.y);
  h -= (.0022f + .0105f * a) * crease(ax - m.mouthHalf - .03f - .18f * (m.mouth.y - p.y), .012f) *
       smoothstep(m.mouth.y - .02f, m.mouth.y - .08f, p.y) *
       smoothstep(m.mouth.y - .32f, m.mouth.y - .18f, p.y);
  // The groove below the nose, between two ridges.
  const float groove = smoothstep(m.lipTop - .015f, m.lipTop + .015f, p.y) *
                       smoothstep(m.noseBase + .0f, m.noseBase - .05f, p.y);
  h += groove * (.0068f * gaussian(ax, .050f, .019f) - .0066f * gaussian(ax, 0, .025f));
  // Dimples at the corners, and the hollow between lip and chin.
  h -= .004f * gaussian(ax, m.mouthHalf + .018f, .016f) * gaussian(p.y, m.mouth.y, .022f);
  h -= .0105f * gaussian(p.y, m.lipBottom - .055f, .034f) * smoothstep(.24f, .05f, ax);
  // The pads beside the chin, and the dip between them.
  h -= .0030f * gaussian(ax, 0, .022f) * gaussian(p.y, m.chin + .10f, .07f);
  // The groove that sets off the wing of the nose.
  const float wx = ax - m.wing + .058f, wy = p.y - m.nostril.y - .034f;
  const float round = std::sqrt(sq(wx) + sq(wy));
  h -= .0130f * crease(round - .062f, .014f) * smoothstep(-.2f, .5f, wx / std::max(.01f, round)) *
       smoothstep(-.055f, -.02f, wy);
  // Old lips have lines across their border.
  const float rim = gaussian(p.y, m.lipTop + .03f, .05f) + .7f * gaussian(p.y, m.lipBottom, .04f);
  h -= .0046f * a * rim * smoothstep(m.mouthHalf + .04f, m.mouthHalf - .04f, ax) *
       lines({p.x * 26 + .6f * noise(p * 30), p.y * 4, 7}, .10f);
  return h;
}

float foldsOf(const Head& head, Vec3 p) {
  const float a = head.character().age, ax = std::fabs(p.x), wobble = .025f * (noise(p * 5) - .5f);
  if (p.z < 0) {
    return 0;
  }
  float h = aroundEyes(head, p, wobble) + aroundMouth(head, p, wobble);
  // Forehead.
  for (int i = 0; i < 5; i++) {
    // Each line wanders, is broken, and is deep here and shallow there.
    const float n = float(i), wander = noise({p.x * 3.2f, n * 5, 1}) - .5f;
    const float y = .37f + .075f * n + .020f * hash(i, 3, 7) - .06f * sq(ax) + 1.8f * wobble +
                    .070f * wander + .012f * (noise({p.x * 17, n * 7, 5}) - .5f);
    const float broken =
        smoothstep(.30f, .75f, noise({p.x * 4, n * 3, 3})) * (.5f + noise({p.x * 11, n * 9, 6}));
    h -= (.0005f + .0040f * a) * crease(p.y - y, .0150f) * smoothstep(.46f, .20f, ax) * broken;
  }
  // Between the brows.
  h -= (.0003f + .0045f * a) * gaussian(ax, .055f + .1f * (p.y - .25f), .010f) *
       smoothstep(.14f, .20f, p.y) * smoothstep(.36f, .28f, p.y);
  return h;
}

/** Fine wrinkles that run across the pull of the muscles below. */
float fineWrinkles(float a, Vec3 p) {
  const float ax = std::fabs(p.x);
  const Vec3 q{ax + .05f * noise(p * 6), p.y + .05f * noise(p * 6 + Vec3{5, 5, 5}), p.z};
  const float down = q.y + .9f * q.x, out = q.x - .9f * q.y;
  const float cheek = spot(p, .50f, -.28f, .24f, .34f);
  const float net = .8f * lines({down * 30, out * 9, 1}, .12f) +
                    .6f * lines({down * 10, out * 34, 4}, .12f) +
                    .5f * lines(rotated(q) * 34, .12f);
  const float neck = smoothstep(-.95f, -1.15f, p.y);
  return -a * (.0011f * cheek + .0009f + .0006f * neck) * net -
         a * .0022f * neck * lines({p.x * 3, p.y * 13, 2}, .14f);
}

}  // namespace

LidFold lidFoldAt(const Head& head, float x) {
  const float inner = head.innerCorner(), outer = head.outerCorner();
  const float from = (x - .5f * (inner + outer)) / (.625f * (outer - inner));
  const float arch = std::sqrt(clamp01(1 - sq(from)));
  return {arch, .024f + .016f * arch - .010f * head.character().age};
}

float scattered(Vec3 p, float radius) {
  const int X = int(std::floor(p.x)), Y = int(std::floor(p.y)), Z = int(std::floor(p.z));
  float best = 9;
  for (int k = -1; k <= 1; k++) {
    for (int j = -1; j <= 1; j++) {
      for (int i = -1; i <= 1; i++) {
        const int a = X + i, b = Y + j, c = Z + k;
        const Vec3 at{float(a) + hash(a, b, c), float(b) + hash(a + 57, b, c),
                      float(c) + hash(a, b + 91, c)};
        best = std::min(best, dot(p - at, p - at));
      }
    }
  }
  return smoothstep(radius, 0.f, std::sqrt(best));
}

Relief reliefOf(const Head& head, Vec3 p, float lip) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  const Vec3 k = scrambled(p);
  const float coarse = spot(p, 0, m.noseTip.y + .05f, .13f, .12f) +
                       .8f * spot(p, .24f, m.noseTip.y + .04f, .15f, .17f) +
                       .5f * spot(p, 0, .45f, .3f, .16f) + .4f * spot(p, 0, m.chin, .15f, .12f);
  // Pores, and unevenness.
  const float pores =
      -.0024f * (.45f + coarse) * scattered(k * 66, .45f) -
      .0011f * (.3f + coarse) * scattered(k * 104 + Vec3{7, 1, 3}, .48f) +
      (noise(k * 41) - .5f) * .0015f + (noise(k * 62) - .5f) * .0009f +
      (noise(k * 24) - .5f) * .0022f + (noise(k * 9) - .5f) * .0036f +
      (noise(k * 31) - .5f) * .0024f * spot(p, 0, m.chin + .08f, .16f, .12f) +
      (noise({p.x * 5 + k.x, p.y * 17, p.z * 5}) - .5f) * .0042f * spot(p, 0, .42f, .36f, .18f);
  const float furrows = (noise({p.x * 85, p.y * 8, 5}) - .5f) * .0030f -
                        .0016f * lines({p.x * 60 + noise(p * 18), p.y * 7, 8}, .16f) +
                        (noise({p.x * 40, p.y * 14, 9}) - .5f) * .0022f +
                        (noise(k * 60) - .5f) * .0014f;
  Relief out;
  out.folds = (1 - lip) * foldsOf(head, p);
  out.fine = mix(pores * (1 + .3f * c.age) + fineWrinkles(c.age, p), furrows, lip);
  return out;
}
