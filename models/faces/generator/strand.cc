// Light on a strand of hair. Amounts were chosen by eye.
#include "shade.h"

Vec3 shadeStrand(const Studio& studio, const HairOcclusion& hair, Vec3 p, Vec3 t, Vec3 view,
                 Vec3 colour, float gloss, bool onSkin) {
  const Vec3 key = studio.keyDirection(), kKey = studio.keyColour(), kFill{.28f, .31f, .34f},
             kRim{1.35f, 1.38f, 1.45f};
  const float light = hair.light(p), ambientLight = hair.ambient(p);
  const auto sine = [](float cosine) { return std::sqrt(std::max(0.f, 1 - cosine * cosine)); };
  // Diffuse: J. T. Kajiya and T. L. Kay 1989. Highlights are shifted along the strand as in
  // S. R. Marschner et al. 2003.
  const auto lobe = [&](Vec3 l, float shift, float exponent) {
    const Vec3 h = normalize(l + view);
    return std::pow(sine(clampTo(dot(t, h) + shift, -1, 1)), exponent);
  };
  Vec3 col = colour * kKey * (.72f * sine(dot(t, key)) * light);
  col = col + colour * kFill * (.6f * sine(dot(t, studio.fillDirection())) * ambientLight) +
        colour * Vec3{.39f, .40f, .425f} * (.78f * ambientLight);
  if (onSkin) {
    return col * .8f;
  }
  const Vec3 tint = mix(colour, Vec3{1, 1, 1}, .10f);
  const Vec3 warm{std::min(.75f, colour.x * 3.2f), std::min(.75f, colour.y * 3.2f),
                  std::min(.75f, colour.z * 3.2f)};
  col = col + kKey * tint * (.20f * gloss * lobe(key, .06f, 110.f) * light);
  col = col + kKey * warm * (.26f * gloss * lobe(key, -.10f, 20.f) * light);
  // Transmission of light from behind.
  const float behind = clamp01(-dot(view, studio.rimDirection()) * .5f + .5f);
  col = col + kRim * (colour * 1.6f + Vec3{.014f, .014f, .014f}) *
                  (.85f * gloss * lobe(studio.rimDirection(), 0, 14.f) * behind * ambientLight *
                   ambientLight);
  return col;
}
