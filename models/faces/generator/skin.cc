// Skin: its colour, pores and wrinkles. Amounts were chosen by eye.
#include "skin.h"

namespace {

/** Redness, melanin, and what is drawn on top of them. */
Vec3 colourOf(const Head& head, const Vertex& at, float lip) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  const Vec3 p = at.rest, k = scrambled(p) + Vec3{float(c.seed) * .37f, 0, 0};
  const float front = smoothstep(-.1f, .25f, p.z);
  const float melanin = (fbm(k * 2.2f) - .44f) * .09f + (fbm(k * 7) - .44f) * .08f +
                        (noise(k * 40) - .5f) * .11f + (noise(k * 130) - .5f) * .16f;
  Vec3 albedo = c.skin * (1 - melanin);
  // Blood: cheeks, nose, ears, chin, the wings of the nose, and blotches.
  const float blood =
      front * (.46f * spot(p, .31f, m.noseTip.y + .03f, .21f, .20f) +
               .50f * spot(p, 0, m.noseTip.y, .10f, .10f) +
               .38f * spot(p, m.noseHalf, m.noseBase + .02f, .05f, .06f) +
               .20f * spot(p, 0, m.chin + .10f, .16f, .10f) + .12f * spot(p, 0, .42f, .25f, .12f)) +
      .42f * at.masks[1];
  // Blood vessels show through in patches of every size.
  const float patches =
      .18f * (fbm(k * 3.5f + Vec3{9, 2, 4}) - .44f) + .18f * (fbm(k * 8 + Vec3{2, 8, 5}) - .44f) +
      .19f * (fbm(k * 17 + Vec3{1, 7, 3}) - .44f) + .20f * (fbm(k * 38 + Vec3{4, 1, 8}) - .44f);
  const float flushed = blood * c.blush + patches * (.55f + .45f * c.blush);
  albedo = mix(albedo, albedo * Vec3{1.04f, .80f, .81f}, clampTo(flushed, -.55f, 1.f));
  // The rest of the colour is not even, either: some of it is yellower.
  const float yellow =
      .20f * (fbm(k * 5 + Vec3{3, 3, 9}) - .44f) + .26f * (fbm(k * 14 + Vec3{6, 1, 2}) - .44f);
  albedo = albedo * Vec3{1, 1, clampTo(1 - yellow, .7f, 1.3f)};
  // The forehead and temples are yellower, the beard's area cooler.
  albedo = mix(albedo, albedo * Vec3{1.f, 1.01f, .92f}, .6f * spot(p, 0, .55f, .5f, .22f));
  if (front > 0) {
    const Vec3 w = p - head.eyesAtRest()[p.x > 0 ? 1 : 0].centre;
    const float x = p.x > 0 ? w.x : -w.x;
    // Lids and the skin below the eyes are thin: bluish red.
    const float socket = std::exp(-(sq(w.x / .19f) + sq((w.y + .015f) / .115f))) +
                         .5f * std::exp(-(sq((x + .10f) / .09f) + sq((w.y + .12f) / .05f)));
    albedo = mix(albedo, albedo * Vec3{.84f, .82f, .85f}, front * socket * (.34f + .40f * c.age));
    if (std::fabs(x) < .24f) {
      const float above = w.y - head.lid(true, x);
      albedo = mix(albedo, albedo * Vec3{.58f, .46f, .43f},
                   c.makeup * smoothstep(-.005f, .01f, above) * smoothstep(.10f, .02f, above) *
                       smoothstep(.21f, .13f, std::fabs(x)));
      // The lower lid turns away from the light, and its lashes shade it: it is as dark as a bag.
      const float below = w.y - head.lid(false, x), ends = smoothstep(.25f, .13f, std::fabs(x));
      const float shaded =
          ends * smoothstep(.004f, -.012f, below) *
          (.62f * gaussian(below, -.030f, .034f) + .34f * gaussian(below, -.085f, .05f));
      const float inside =
          .8f * gaussian(x, head.innerCorner() - .012f, .030f) * gaussian(w.y + .012f, 0, .035f);
      albedo = mix(albedo, albedo * Vec3{.56f, .48f, .48f}, std::min(1.f, shaded + inside));
      // The fold over the lid is in shadow.
      const LidFold fold = lidFoldAt(head, x);
      albedo =
          mix(albedo, albedo * Vec3{.52f, .40f, .36f},
              c.lidCrease * gaussian(above, fold.over, .0075f) * smoothstep(.1f, .6f, fold.arch));
      // Lid margins are pink. The roots of the lashes darken the line above them.
      const float edge = length(w) - head.eyesAtRest()[1].radius;
      albedo = mix(albedo, albedo * Vec3{.98f, .70f, .66f}, smoothstep(.016f, .002f, edge) * .7f);
      albedo = mix(albedo, Vec3{.02f, .012f, .01f},
                   gaussian(above, .004f, .012f) * (.52f + .32f * c.lashes) *
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
  albedo = mix(albedo, c.skin * Vec3{.42f, .27f, .22f},
               .75f * smoothstep(.35f, .75f, scattered(k * 2.6f + Vec3{.5f, 0, 0}, .065f)));
  albedo = mix(albedo, albedo * Vec3{.74f, .60f, .52f},
               clamp01(.8f * (c.age - .3f)) *
                   smoothstep(.05f, .75f, scattered(k * 4.5f + Vec3{2, 0, 0}, .26f)) *
                   smoothstep(.40f, .75f, noise(k * 2.3f)));
  if (p.y > -.9f) {
    // A fringe starts from all of the crown: no parting is seen.
    const float amount = c.hair == Hair::kBob ? .97f : .93f;
    albedo = mix(albedo, c.hairRoot * 1.2f + albedo * Vec3{.80f, .95f, 1.08f} * (1.05f - amount),
                 amount * scalpShade(head, p));
  }
  // Hair shades the skin beside it.
  if (p.y > -.3f && p.z > -.1f && !head.isOnEar(p)) {
    const float near = smoothstep(-.13f, .04f, insideHairline(head, p));
    albedo = albedo * (Vec3{1, 1, 1} - Vec3{.24f, .26f, .27f} * near);
  }
  const Vec3 lips = c.lips * (.90f + .20f * noise({p.x * 80, p.y * 12, 2})) *
                    (.88f + .24f * noise({p.x * 150 + 2 * noise(p * 20), p.y * 16, 6})) *
                    (.80f + .44f * fbm(k * 14)) * (1 - .10f * c.age);
  // The upper lip is darker than the lower one, which is redder, and both towards the seam.
  const float above = p.y - head.lips().seam(p.x);
  const float seam = gaussian(above, 0, .022f), over = smoothstep(-.01f, .02f, above);
  const Vec3 shade =
      lips * (Vec3{1, 1, 1} - mix(Vec3{.12f, .27f, .25f}, Vec3{.09f, .20f, .20f}, over) -
              Vec3{.04f, .06f, .06f} * seam);
  // Lips of men are paler beside their beard.
  const float red = mix(.80f, .68f, c.age) - (c.beard > .2f ? .06f : 0.f);
  albedo = mix(albedo, shade, lip * red);
  // Where the lips meet and behind, it is dark and red.
  const Vec3 line =
      mix(Vec3{.52f, .40f, .38f}, Vec3{.9f, .95f, .95f}, clamp01(2 * (c.lipLine - .27f)));
  albedo = mix(albedo, c.lips * line, smoothstep(.25f, .8f, at.masks[2]));
  const float dark = mix(.68f, .25f, clamp01((c.lipLine - .27f) / .63f));
  return albedo * (1 - dark * lip * gaussian(above, 0, .008f));
}

}  // namespace

Surface skinAt(const Head& head, const Vertex& at) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  const Vec3 p = at.rest;
  const bool isFace = p.z > .2f && p.y > -1.3f;
  const float border = .22f * (fbm(rotated(p) * 30) - .44f);
  const float lip = isFace ? smoothstep(.04f, 1.f, std::max(at.masks[0] + border, at.masks[2])) *
                                 head.lips().share(p.x, p.y + .02f * border)
                           : 0;
  Surface out;
  out.albedo = colourOf(head, at, lip);
  const float e = .0024f;
  const Relief here = reliefOf(head, p, lip);
  const auto slope = [&](Vec3 step) {
    const Relief r = reliefOf(head, p + step, lip);
    return (r.folds + r.fine - here.folds - here.fine) / e;
  };
  const Vec3 gradient{slope({e, 0, 0}), slope({0, e, 0}), slope({0, 0, e})};
  // Less light reaches the bottom of pores and folds, and what does is redder.
  // The deep folds of age are dark by their shape alone.
  const float folds = mix(21.f, 6.f, std::min(1.f, 1.6f * c.age)) * here.folds;
  const float cavity = clampTo(mix(54.f, 34.f, lip) * here.fine + folds, -.40f, .06f);
  out.albedo = out.albedo * (Vec3{1, 1, 1} + Vec3{.85f, 1.05f, 1.1f} * cavity);
  out.normal = normalize(at.normal - (gradient - at.normal * dot(gradient, at.normal)));
  // Dark skin shows every glint: there the sheen is even. It makes the highlights of such faces,
  // which in photographs are as bright as those of light ones.
  const float dark = smoothstep(.26f, .05f, c.skin.y);
  // Cheeks are dry.
  const float oily = .70f + .75f * spot(p, 0, m.noseTip.y + .06f, .10f, .20f) +
                     .55f * spot(p, 0, .46f, .28f, .17f) +
                     .12f * spot(p, .32f, m.noseTip.y + .17f, .14f, .10f) +
                     .25f * spot(p, 0, m.chin + .06f, .10f, .08f);
  const float grainy = .42f + .55f * noise(rotated(p) * 45) + .5f * noise(rotated(p) * 120);
  out.specular = (.325f + .20f * dark) * c.gloss * oily * mix(grainy, .945f, .45f * dark);
  out.specular = mix(out.specular, .22f - .04f * dark, lip);
  out.roughness = mix(.56f, .40f, lip);
  // Between the lips nothing shines.
  out.specular *= 1 - .8f * lip * gaussian(p.y, head.lips().seam(p.x), .014f);
  out.specular *= 1 - smoothstep(.2f, .7f, at.masks[2]);
  const Vec3 wet = p - head.eyesAtRest()[p.x > 0 ? 1 : 0].centre;
  if (isFace) {
    // The margins of the lids are wet.
    const float margin = smoothstep(.014f, .002f, length(wet) - head.eyesAtRest()[0].radius);
    out.specular = mix(out.specular, .08f, margin);
    out.roughness = mix(out.roughness, .31f, margin);
    // Nostrils are deeper and wider than those of the mesh.
    const float ax = std::fabs(p.x) - m.nostril.x, tilt = p.y - m.nostril.y - m.nostrilRise * ax;
    const float far = std::sqrt(sq(ax / (m.nostrilHalf + .016f)) +
                                sq((tilt + .004f) / (tilt > -.004f ? .017f : .024f)));
    const float nostril = smoothstep(1.25f, .45f, far);
    out.albedo = out.albedo * (Vec3{1, 1, 1} - Vec3{.76f, .84f, .85f} * nostril);
    out.specular *= 1 - nostril;
  }
  return out;
}
