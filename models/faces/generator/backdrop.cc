// The wall behind the head, out of focus.
#include "shade.h"

Vec3 backdrop(const Character& c, float u, float v) {
  // A lamp on a plain wall: its glow is behind the shoulder on the side away from the key lamp.
  const float x = u + .35f * c.lightSide, y = v + .10f;
  const float glow = std::exp(-(sq(x * .62f) + sq(y * .70f)));
  const Vec3 wall = mix(c.backdropDark, c.backdropLight, .15f + .75f * glow);
  // What is far out of focus on it: broad and faint.
  const Vec3 at{u * .9f + float(c.seed), v * .5f, 3};
  return wall * (1 + .16f * (fbm(at) - .44f));
}
