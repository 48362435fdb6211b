// Skin: its colour, pores and wrinkles. Amounts were chosen by eye.
#include "shade.h"

namespace {

/** A Gaussian about a point of the face, seen from the front. */
float spot(Vec3 p, float x, float y, float rx, float ry) {
  return std::exp(-sq((std::fabs(p.x) - x) / rx) - sq((p.y - y) / ry));
}

/** Rotates against the noise's lattice, whose layers would be visible as rings. */
Vec3 rotated(Vec3 q) {
  return {.64f * q.x + .77f * q.y, -.51f * q.x + .42f * q.y + .75f * q.z,
          .58f * q.x - .48f * q.y + .66f * q.z};
}

/** @returns how near the closest of some scattered points is: 1 at one, 0 away from all */
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

/** A crease: narrow at its bottom, with a soft shoulder. */
float crease(float across, float width) {
  return gaussian(across, 0, width) - .35f * gaussian(across, 1.8f * width, 1.6f * width);
}

/** @returns the height of wrinkles at a point, decimetres; negative in a wrinkle */
float wrinkles(const Head& head, Vec3 p) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  const float a = c.age, ax = std::fabs(p.x), wobble = .025f * (noise(p * 5) - .5f);
  if (p.z < 0) {
    return 0;
  }
  float h = 0;
  // Forehead.
  for (int i = 0; i < 4; i++) {
    const float y = .42f + .095f * float(i) - .10f * sq(ax) + 1.6f * wobble;
    const float broken = smoothstep(.25f, .6f, noise({p.x * 5, float(i) * 3, 3}));
    h -= std::max(0.f, a - .12f) * .0060f * crease(p.y - y, .010f) * smoothstep(.42f, .22f, ax) *
         broken;
  }
  // Between the brows.
  h -= std::max(0.f, a - .1f) * .006f * gaussian(ax, .055f + .1f * (p.y - .25f), .009f) *
       smoothstep(.14f, .20f, p.y) * smoothstep(.36f, .28f, p.y);
  // Crow's feet, and fine lines below the eye.
  const float ex = ax - head.eyesAtRest()[1].centre.x, outer = head.outerCorner();
  for (int i = 0; i < 4; i++) {
    const float y = .06f + (float(i) - 1.5f) * (.022f + .35f * std::max(0.f, ex - outer)) + wobble;
    h -= std::max(0.f, a - .05f) * .0046f * crease(p.y - y, .0065f) *
         smoothstep(outer + .01f, outer + .05f, ex) * smoothstep(outer + .19f, outer + .09f, ex);
  }
  for (int i = 0; i < 3; i++) {
    const float y = head.lid(false, clampTo(ex, -.12f, .12f)) + .07f - .03f - .030f * float(i + 1);
    h -= (.0012f + .0030f * a) * crease(p.y - y - wobble * .4f, .006f) *
         smoothstep(outer + .03f, outer - .05f, std::fabs(ex)) * (.5f + noise(p * 12));
  }
  // From the wing of the nose past the corner of the mouth, and below it.
  const float down = clamp01((m.noseBase - p.y) / (m.noseBase - m.mouth.y + .06f));
  const float line = m.noseHalf + .03f + (m.mouthHalf + .075f - m.noseHalf - .03f) * down;
  h -= (.0022f + .0075f * a) * crease(ax - line - wobble * .4f, .020f - .006f * a) *
       smoothstep(0.f, .12f, down) * smoothstep(m.mouth.y - .12f, m.mouth.y + .02f, p.y);
  h -= .006f * a * crease(ax - m.mouthHalf - .03f - .18f * (m.mouth.y - p.y), .012f) *
       smoothstep(m.mouth.y - .02f, m.mouth.y - .08f, p.y) *
       smoothstep(m.mouth.y - .28f, m.mouth.y - .16f, p.y);
  // Fine lines over the whole face.
  const float loose = noise({p.x * 26, p.y * 70, p.z * 26}) + .6f * noise(rotated(p) * 55);
  return h + (.0004f + .0011f * a) * (loose - .8f);
}

/** @returns the height of pores and small irregularities, or of the furrows of lips */
float relief(const Head& head, Vec3 p, float lip) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  const Vec3 k = rotated(p);
  const float coarse = spot(p, 0, m.noseTip.y + .05f, .13f, .12f) +
                       .7f * spot(p, .22f, m.noseTip.y + .06f, .14f, .16f) +
                       .5f * spot(p, 0, .45f, .3f, .16f);
  const float pores = -.0011f * (.5f + coarse) * scattered(k * 62, .42f) +
                      (noise(k * 150) - .5f) * .0008f + (noise(k * 75) - .5f) * .0010f +
                      (noise(k * 22) - .5f) * .0022f + (noise(k * 9) - .5f) * .0040f;
  const float furrows = (noise({p.x * 95, p.y * 9, 5}) - .5f) * .0034f +
                        (noise({p.x * 45, p.y * 16, 9}) - .5f) * .0030f +
                        (noise(k * 60) - .5f) * .0016f;
  return mix(pores * (1 + .3f * c.age) + wrinkles(head, p), furrows, lip);
}

/** Redness, melanin, and what is drawn on top of them. */
Vec3 colourOf(const Head& head, const Vertex& at, float lip) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  const Vec3 p = at.rest, k = rotated(p) + Vec3{float(c.seed) * .37f, 0, 0};
  const float front = smoothstep(-.1f, .25f, p.z);
  const float melanin = (fbm(k * 2.2f) - .44f) * .28f + (fbm(k * 7) - .44f) * .26f +
                        (noise(k * 40) - .5f) * .11f + (noise(k * 130) - .5f) * .11f;
  Vec3 albedo = c.skin * (1 - melanin);
  // Blood: cheeks, nose, ears, chin, the wings of the nose, and blotches.
  const float blood =
      front * (.95f * spot(p, .30f, m.noseTip.y + .04f, .17f, .17f) +
               .80f * spot(p, 0, m.noseTip.y, .09f, .085f) +
               .55f * spot(p, m.noseHalf, m.noseBase + .02f, .05f, .06f) +
               .35f * spot(p, 0, m.chin + .10f, .14f, .09f) + .25f * spot(p, 0, .42f, .25f, .12f)) +
      .85f * at.masks[1] + .9f * (fbm(k * 5 + Vec3{9, 2, 4}) - .44f) +
      1.0f * (fbm(k * 16 + Vec3{1, 7, 3}) - .44f);
  albedo = mix(albedo, albedo * Vec3{1.06f, .76f, .72f}, clampTo(blood * c.blush, -.3f, 1.2f));
  // The forehead and temples are yellower, the beard's area cooler.
  albedo = mix(albedo, albedo * Vec3{1.f, 1.01f, .92f}, .6f * spot(p, 0, .55f, .5f, .22f));
  if (front > 0) {
    const Vec3 w = p - head.eyesAtRest()[p.x > 0 ? 1 : 0].centre;
    const float x = p.x > 0 ? w.x : -w.x;
    // Lids and the skin below the eyes are thin: bluish red.
    const float socket = std::exp(-(sq(w.x / .19f) + sq((w.y + .015f) / .115f))) +
                         .5f * std::exp(-(sq((x + .10f) / .09f) + sq((w.y + .12f) / .05f)));
    albedo = mix(albedo, albedo * Vec3{.84f, .74f, .76f}, front * socket * (.34f + .40f * c.age));
    if (std::fabs(x) < .24f) {
      const float above = w.y - head.lid(true, x);
      albedo = mix(albedo, albedo * Vec3{.58f, .46f, .43f},
                   c.makeup * smoothstep(-.005f, .01f, above) * smoothstep(.10f, .02f, above) *
                       smoothstep(.21f, .13f, std::fabs(x)));
      // Lid margins are pink. The roots of the lashes darken the line above them.
      const float edge = length(w) - head.eyesAtRest()[1].radius;
      albedo = mix(albedo, albedo * Vec3{.98f, .70f, .66f}, smoothstep(.016f, .002f, edge) * .7f);
      albedo = mix(albedo, Vec3{.02f, .012f, .01f},
                   gaussian(above, .004f, .010f) * (.35f + .3f * c.lashes) *
                       smoothstep(head.outerCorner() + .02f, head.outerCorner() - .03f, x) *
                       smoothstep(head.innerCorner() + .01f, head.innerCorner() + .08f, x));
    }
    if (c.freckles > 0) {
      const float where = std::exp(-(sq(p.x / .40f) + sq((p.y - m.noseTip.y - .12f) / .16f)));
      const float fleck = scattered(k * 21, .30f) * smoothstep(.3f, .6f, noise(k * 9)) +
                          .6f * scattered(k * 43 + Vec3{3, 3, 3}, .33f);
      albedo = mix(albedo, albedo * Vec3{.66f, .50f, .38f},
                   clamp01(c.freckles * fleck * (.12f + where) * front));
    }
    const float beard = c.beard > 0 ? beardMask(head, p) : 0;
    albedo = mix(albedo, albedo * Vec3{.66f, .68f, .74f},
                 beard * std::min(.8f, .25f + c.beard) * (.7f + .6f * noise(k * 60)));
  }
  // Moles, and spots of age.
  albedo = mix(albedo, c.skin * Vec3{.30f, .20f, .17f},
               .75f * smoothstep(.55f, .8f, scattered(k * 3.1f + Vec3{.5f, 0, 0}, .055f)));
  albedo = mix(albedo, albedo * Vec3{.74f, .60f, .52f},
               clamp01(1.2f * (c.age - .3f)) *
                   smoothstep(.25f, .55f, scattered(k * 7 + Vec3{2, 0, 0}, .28f)) *
                   (.4f + .6f * noise(k * 4)));
  if (p.y > -.9f) {
    albedo = mix(albedo, c.hairRoot * 1.2f + albedo * .30f, .75f * scalpShade(head, p));
  }
  const Vec3 lips = c.lips * (.84f + .32f * noise({p.x * 80, p.y * 12, 2})) *
                    (.84f + .36f * fbm(k * 14)) * (1 - .10f * c.age);
  albedo = mix(albedo, lips, lip * mix(.80f, .62f, c.age));
  // Where the lips meet and behind, it is dark and red.
  const Vec3 line =
      mix(Vec3{.52f, .40f, .38f}, Vec3{.9f, .95f, .95f}, clamp01(2 * (c.lipLine - .27f)));
  return mix(albedo, c.lips * line, smoothstep(.25f, .8f, at.masks[2]));
}

}  // namespace

Shaded shadeSkin(const Head& head, const Studio& studio, const Vertex& at, Vec3 view, int samples,
                 Random& random) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  const Vec3 p = at.rest;
  const bool isFace = p.z > .2f && p.y > -1.3f;
  const float border = .22f * (fbm(rotated(p) * 30) - .44f);
  const float lip =
      isFace ? smoothstep(.14f, .90f, std::max(at.masks[0] + border, at.masks[2])) : 0;
  Shaded out;
  out.isSkin = true;
  out.albedo = colourOf(head, at, lip);
  const float e = .0022f, h = relief(head, p, lip);
  const Vec3 gradient =
      Vec3{relief(head, p + Vec3{e, 0, 0}, lip) - h, relief(head, p + Vec3{0, e, 0}, lip) - h,
           relief(head, p + Vec3{0, 0, e}, lip) - h} *
      (1 / e);
  const auto bumped = [&](float amount) {
    const Vec3 g = gradient * amount;
    return normalize(at.normal - (g - at.normal * dot(g, at.normal)));
  };
  Gloss gloss{.56f, .36f, .62f, 1};
  const float oily = .55f + .55f * spot(p, 0, m.noseTip.y + .06f, .10f, .20f) +
                     .35f * spot(p, 0, .46f, .26f, .16f) +
                     .25f * spot(p, .30f, m.noseTip.y + .16f, .12f, .10f);
  gloss.amount =
      c.gloss * oily * (.5f + .6f * noise(rotated(p) * 45) + .3f * noise(rotated(p) * 110));
  if (lip > 0) {
    gloss = {mix(gloss.rough1, .46f, lip), mix(gloss.rough2, .33f, lip), .6f,
             mix(gloss.amount, .80f, lip)};
  }
  const Vec3 wet = p - head.eyesAtRest()[p.x > 0 ? 1 : 0].centre;
  const float margin = smoothstep(.014f, .002f, length(wet) - head.eyesAtRest()[0].radius);
  if (isFace && margin > 0) {
    gloss = {mix(gloss.rough1, .25f, margin), .2f, .5f, mix(gloss.amount, 1.6f, margin)};
  }
  const Lighting light =
      studio.light(at.at, at.normal, bumped(.75f), bumped(1.25f), view, gloss, samples, random);
  // Closed lips touch: what the rays find between them is not a hole.
  const float inside = smoothstep(.2f, .7f, at.masks[2]);
  out.diffuse = light.diffuse + Vec3{1, .85f, .82f} * (c.lipLine * inside);
  out.added = light.specular * (1 - inside);
  // Ears let light through from behind.
  const float behind = clamp01(dot(studio.rimDirection(), at.normal) * -.5f + .5f);
  out.added = out.added + c.skin * Vec3{.55f, .10f, .05f} * (at.masks[1] * behind * .09f);
  // Fine hairs catch light at the outline.
  const float graze = std::pow(1 - clamp01(dot(at.normal, view)), 4.f);
  out.added = out.added + c.skin * (light.diffuse * (graze * .22f));
  return out;
}
