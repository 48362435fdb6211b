// The head's shape: a skull of blended ellipsoids, to which features are added or from which they
// are subtracted. Positions and sizes were chosen by eye.
#include "head.h"

namespace {

constexpr float kSeamY = -.520f;
constexpr Vec3 kNeckPivot{0, -.75f, -.15f};

/**
 * @returns whether a feature within `radius` of `centre`, blended over `k`, can change distance d
 */
bool near(Vec3 p, Vec3 centre, float radius, float d, float k) {
  return length(p - centre) - radius < std::max(d, 0.f) + k;
}

}  // namespace

Head::Head(const Character& character) : c_(character), eyeRadius_(.163f) {
  cosYaw_ = std::cos(c_.yaw);
  sinYaw_ = std::sin(c_.yaw);
  cosPitch_ = std::cos(c_.pitch);
  sinPitch_ = std::sin(c_.pitch);
  cosRoll_ = std::cos(c_.roll);
  sinRoll_ = std::sin(c_.roll);
}

Vec3 Head::toHead(Vec3 p) const {
  const float w = smoothstep(-1.55f, -.85f, p.y);
  if (w == 0) {
    return p;
  }
  Vec3 q = p - kNeckPivot;
  q = {cosRoll_ * q.x + sinRoll_ * q.y, -sinRoll_ * q.x + cosRoll_ * q.y, q.z};
  q = {cosYaw_ * q.x - sinYaw_ * q.z, q.y, sinYaw_ * q.x + cosYaw_ * q.z};
  q = {q.x, cosPitch_ * q.y + sinPitch_ * q.z, -sinPitch_ * q.y + cosPitch_ * q.z};
  return mix(p, q + kNeckPivot, w);
}

Vec3 Head::fromHead(Vec3 p) const {
  const float w = smoothstep(-1.55f, -.85f, p.y);
  Vec3 q = p - kNeckPivot;
  q = {q.x, cosPitch_ * q.y - sinPitch_ * q.z, sinPitch_ * q.y + cosPitch_ * q.z};
  q = {cosYaw_ * q.x + sinYaw_ * q.z, q.y, -sinYaw_ * q.x + cosYaw_ * q.z};
  q = {cosRoll_ * q.x - sinRoll_ * q.y, sinRoll_ * q.x + cosRoll_ * q.y, q.z};
  return mix(p, q + kNeckPivot, w);
}

Vec3 Head::eyeCentre(bool right) const {
  return {right ? .285f : -.285f, .070f, .545f};
}

float Head::upperLid(float x) const {
  const float a = eyeHalfWidth();
  // The highest point is nearer to the nose; the outer half falls more slowly.
  const float t = (x + .012f) / (a + (x > -.012f ? .012f : -.012f));
  const float arch = 1 - std::pow(std::fabs(clampTo(t, -1.2f, 1.2f)), x > 0 ? 2.3f : 2.0f);
  return (.066f * c_.eyeOpen * c_.eyeSize) * arch - .010f + (c_.eyeTilt + .03f) * x -
         .022f * c_.age * std::max(0.f, x / a);
}

float Head::lowerLid(float x) const {
  const float a = eyeHalfWidth();
  const float t = (x - .02f) / (a + (x > .02f ? -.02f : .02f));
  const float arch = 1 - std::pow(std::fabs(clampTo(t, -1.2f, 1.2f)), 2.2f);
  return (-.052f * mix(1, c_.eyeOpen, .5f) * c_.eyeSize) * arch - .010f + (c_.eyeTilt + .03f) * x -
         .022f * c_.age * std::max(0.f, x / a);
}

float Head::skull(Vec3 p) const {
  const Vec3 q{std::sqrt(sq(p.x) + .0009f), p.y, p.z};  // smooth in the plane of symmetry
  const float j = c_.jawWidth, L = c_.faceLength;
  float d = ellipsoid(p, {0, .30f, -.12f}, {.700f, .790f, .860f});
  d = smin(d, ellipsoid(p, {0, .52f, .10f}, {.58f, .50f, .60f}), .20f);                 // forehead
  d = smin(d, ellipsoid(p, {0, -.24f * L, .17f}, {.535f * j, .66f * L, .565f}), .26f);  // face
  d = smin(d,
           capsule(q, {.46f * j, -.36f * L, -.02f}, {.13f * c_.chin, -.80f * L, .44f},
                   .155f * c_.jawHeight, .105f),
           .22f);  // jaw line
  d = smin(d, ellipsoid(p, {0, -.815f * L, .505f}, {.150f * c_.chin, .115f, .115f}), .17f);  // chin
  d = smin(d, ellipsoid(q, {.375f, -.095f, .415f}, {.185f * c_.cheekbone, .140f, .185f}),
           .24f);  // cheekbone
  d = smin(d,
           ellipsoid(q, {.330f, -.365f * L, .400f},
                     {.165f * c_.cheekFat, .200f * c_.cheekFat, .170f * c_.cheekFat}),
           .24f);  // cheek
  if (c_.age > 0) {
    d = smin(d,
             ellipsoid(q, {.34f * j, -.63f * L, .27f},
                       {.12f * c_.age + .02f, .13f * c_.age + .02f, .14f}),
             .16f);  // jowl
  }
  return d;
}

float Head::nose(Vec3 p) const {
  const Vec3 q{std::fabs(p.x), p.y, p.z};
  const float w = c_.noseWidth, z = .045f * (c_.noseLength - 1);
  float n =
      capsule(p, {0, .17f, .655f + .02f * c_.noseBridge}, {0, -.16f, .815f + z}, .040f, .058f);
  n = smin(n, ellipsoid(p, {0, -.225f, .850f + z}, {.078f * w, .068f, .070f}), .075f);      // tip
  n = smin(n, ellipsoid(q, {.104f * w, -.258f, .762f}, {.050f * w, .052f, .078f}), .045f);  // wings
  n = smin(n, capsule(p, {0, -.285f, .83f + z}, {0, -.315f, .74f}, .026f, .03f),
           .035f);  // columella
  return n;
}

float Head::seamOffset(Vec3 p) const {
  const float x = p.x / (.235f * c_.mouthWidth);
  const float seam = kSeamY + (.030f * c_.smile) * std::min(2.f, x * x) -
                     .006f * gaussian(x, 0, .22f) + .005f * gaussian(std::fabs(x), .33f, .22f);
  return p.y - seam;
}

namespace {

/** Heights of the lips' outer contours above the seam; x in half widths of the mouth. */
float upperContour(const Character& c, float x) {
  const float ax = std::fabs(x);
  if (ax >= 1) {
    return 0;
  }
  return .058f * c.lipUpper * std::pow(1 - ax * ax, .85f) *
         (1 - .20f * gaussian(x, 0, .13f) + .07f * gaussian(ax, .24f, .16f)) * (1 - .25f * ax);
}

float lowerContour(const Character& c, float x) {
  const float ax = std::fabs(x);
  if (ax >= 1) {
    return 0;
  }
  return .082f * c.lipLower * std::pow(1 - std::pow(ax, 2.2f), .9f);
}

}  // namespace

float Head::lipMask(Vec3 p) const {
  if (p.z < .3f) {
    return 0;
  }
  const float x = p.x / (.235f * c_.mouthWidth), s = seamOffset(p);
  const float up = upperContour(c_, x), lo = lowerContour(c_, x);
  if (std::fabs(x) >= 1) {
    return 0;
  }
  return smoothstep(up + .006f, up - .006f, s) * smoothstep(-lo - .010f, -lo + .010f, s) *
         smoothstep(1.f, .90f, std::fabs(x));
}

float Head::mouth(Vec3 p, float d) const {
  d = smin(d, ellipsoid(p, {0, -.50f, .505f}, {.250f, .215f, .195f}), .17f);  // muzzle
  if (p.z < .3f || p.y > -.25f || p.y < -.95f) {
    return d;
  }
  const float x = p.x / (.235f * c_.mouthWidth), ax = std::fabs(x), s = seamOffset(p);
  const float up = upperContour(c_, x), lo = lowerContour(c_, x);
  float h = 0;
  if (ax < 1.f) {
    const float body = std::pow(1 - ax * ax, .5f);
    // The lips are rounded ridges, highest near the seam. The upper one turns outwards at its
    // border.
    const float tu = s / std::max(.012f, up), tl = -s / std::max(.012f, lo);
    h += body * .026f * mix(.7f, 1.f, c_.lipUpper - .3f) * smoothstep(-.25f, .32f, tu) *
         smoothstep(1.28f, .45f, tu);
    h += body * .036f * mix(.7f, 1.f, c_.lipLower - .3f) * smoothstep(-.2f, .40f, tl) *
         smoothstep(1.30f, .50f, tl);
    h += .009f * body * gaussian(x, 0, .16f) * gaussian(tu, .25f, .3f);  // tubercle
  }
  // The seam is a valley of nearly constant width. The corners are dimples.
  h -= .024f * gaussian(s, 0, .0120f) * smoothstep(1.12f, .80f, ax);
  h -= .012f * gaussian(ax, 1.02f, .13f) * gaussian(s, 0, .045f);
  // The philtrum, and the hollow below the lower lip.
  h -= .013f * gaussian(p.x, 0, .024f) * smoothstep(up + .0f, up + .05f, s) *
       smoothstep(-.315f, -.36f, p.y);
  h += .006f * gaussian(std::fabs(p.x), .042f, .020f) * smoothstep(up - .01f, up + .03f, s) *
       smoothstep(-.315f, -.37f, p.y);
  h -= .026f * gaussian(p.y, kSeamY - .150f, .050f) * gaussian(p.x, 0, .16f);
  return d - h;
}

float Head::lids(Vec3 p, float d) const {
  const bool right = p.x > 0;
  const Vec3 centre = eyeCentre(right);
  const Vec3 w = p - centre;
  const float r = eyeRadius_, x = right ? w.x : -w.x, fromCentre = length(w);
  if (fromCentre > .36f) {
    return d;
  }
  const float up = upperLid(x), lo = lowerLid(x);
  const float open = std::max(w.y - up, lo - w.y);  // negative within the opening
  const float shell =
      fromCentre -
      (r + .020f + .010f * smoothstep(.0f, .05f, w.y - up) * smoothstep(.14f, .05f, w.y - up));
  float lid = smax(shell, -open, .014f);
  lid = std::max(lid, -(fromCentre - (r - .025f)));
  d = smin(d, lid, .030f);
  if (w.z > 0) {
    // The fold above the upper lid and the soft fold below the eye.
    const float crease = up + .038f + .012f * (1 - sq(x / .16f));
    const float across = smoothstep(.205f, .12f, std::fabs(x - .005f));
    d += .013f * gaussian(w.y, crease, .011f) * across;
    d -= (.012f + .020f * c_.age) * gaussian(w.y, crease + .042f, .030f) * across;  // hood
    d -= (.0025f + .018f * c_.age) * gaussian(w.y, lo - .040f, .022f) * across;     // bag
    d += (.003f + .012f * c_.age) * gaussian(w.y, lo - .090f - .02f * x, .020f) * across;
    // The inner corner.
    d += .012f * gaussian(x, -eyeHalfWidth() - .004f, .016f) *
         gaussian(w.y, upperLid(-eyeHalfWidth()), .012f);
  }
  return d;
}

float Head::ear(Vec3 p) const {
  Vec3 q{std::fabs(p.x) - .690f, p.y - .015f, p.z + .10f};
  q = {q.x * .94f - q.z * .34f, q.y, q.z * .94f + q.x * .34f};  // the ear's angle to the head
  q = {q.x, q.y * .98f + q.z * .2f, q.z * .98f - q.y * .2f};
  const float taper = mix(.70f, 1.f, smoothstep(-.22f, .05f, q.y));
  const float disc = ellipsoid(q, {0, 0, 0}, {.045f, .225f, .135f * taper});
  const float inner = ellipsoid(q, {.045f, .030f, .010f}, {.040f, .155f, .088f * taper});
  float e = smax(disc, -inner, .030f);
  e = smin(e, capsule(q, {.022f, .085f, -.012f}, {.022f, -.085f, -.010f}, .016f, .020f),
           .030f);                                                                 // antihelix
  e = smin(e, ellipsoid(q, {.006f, -.165f, .022f}, {.030f, .062f, .052f}), .05f);  // lobe
  e = smin(e, ellipsoid(q, {.020f, -.030f, .085f}, {.022f, .034f, .022f}), .02f);  // tragus
  return e;
}

/** @returns the depth of wrinkles and folds */
float Head::folds(Vec3 p) const {
  const float a = c_.age;
  if (p.z < .15f) {
    return 0;
  }
  const float ax = std::fabs(p.x);
  float h = 0;
  // Nasolabial fold, from the wing of the nose past the corner of the mouth. It deepens with age
  // and with a smile.
  {
    const float t = clamp01((-.25f - p.y) / .33f);
    const float line = .135f + .155f * t - .03f * t * t;
    const float depth = (.002f + .004f * std::max(0.f, c_.smile) + .016f * a) *
                        smoothstep(-.22f, -.29f, p.y) * smoothstep(-.64f, -.50f, p.y);
    h += depth * gaussian(ax, line, mix(.034f, .020f, a)) -
         depth * .9f * gaussian(ax, line + .055f, .042f);
  }
  if (a <= 0) {
    return h;
  }
  const float wobble = .02f * noise({p.x * 4, p.y * 4, 7});
  for (int i = 0; i < 4; i++) {  // forehead
    const float y = .46f + .085f * i - .10f * sq(ax) + wobble;
    h += a * .0050f * gaussian(p.y, y, .010f) * smoothstep(.44f, .20f, ax) *
         (.6f + .6f * noise({p.x * 6, float(i), 3}));
  }
  h += a * .008f * gaussian(ax, .055f, .010f) * smoothstep(.15f, .20f, p.y) *
       smoothstep(.34f, .26f, p.y);  // frown
  for (int i = 0; i < 4; i++) {      // crow's feet
    const float y = .075f + (i - 1.5f) * (.028f + .28f * std::max(0.f, ax - .45f));
    h += a * .0050f * gaussian(p.y, y, .0080f) * smoothstep(.445f, .475f, ax) *
         smoothstep(.60f, .53f, ax);
  }
  h += a * .007f * gaussian(ax, .285f + .03f * (p.y + .7f), .012f) * smoothstep(-.56f, -.62f, p.y) *
       smoothstep(-.84f, -.72f, p.y);  // marionette
  return h;
}

float Head::features(Vec3 p, float d) const {
  const Vec3 q{std::fabs(p.x), p.y, p.z};
  if (near(p, {0, .2f, .55f}, .55f, d, .2f)) {
    d = smin(d, capsule(q, {.02f, .235f, .665f}, {.39f, .225f, .515f}, .052f, .045f),
             .15f);                                                                  // brow ridge
    d = smax(d, -ellipsoid(q, {.285f, .055f, .815f}, {.165f, .100f, .175f}), .15f);  // sockets
  }
  if (near(p, {0, -.05f, .72f}, .40f, d, .16f)) {
    d = smin(d, nose(p), .105f);
    d = smax(
        d,
        -ellipsoid(q, {.048f * c_.noseWidth, -.308f, .800f}, {.024f * c_.noseWidth, .020f, .036f}),
        .022f);  // nostrils
    d += .012f * gaussian(q.x, .152f * c_.noseWidth, .016f) * gaussian(p.y, -.255f, .055f) *
         smoothstep(.45f, .6f, p.z);  // behind the wings
  }
  if (near(p, {0, -.55f, .55f}, .45f, d, .2f)) {
    d = mouth(p, d);
  }
  if (near(q, {.285f, .07f, .55f}, .32f, d, .05f)) {
    d = lids(p, d);
  }
  if (near(q, {.71f, .0f, -.10f}, .34f, d, .08f)) {
    d = smin(d, ear(p), .035f);
  }
  return d;
}

float Head::smooth(Vec3 p) const {
  p = toHead(p);
  float d = skull(p);
  const float neck =
      capsule(p, {0, -.62f, -.16f}, {0, -1.75f, -.50f}, .355f * c_.neckWidth, .385f * c_.neckWidth);
  return smin(d, neck, .16f);
}

float Head::distance(Vec3 world, Material* material) const {
  const Vec3 p = toHead(world);
  float d = skull(p);
  if (d < .6f) {
    d = features(p, d);
  }
  const float neck =
      capsule(p, {0, -.62f, -.16f}, {0, -1.75f, -.50f}, .355f * c_.neckWidth, .385f * c_.neckWidth);
  d = smin(d, neck, .15f);
  if (world.y < -.8f) {
    d = smin(d, ellipsoid(world, {0, -2.30f + kShoulderLift, -.40f}, {1.06f, .64f, .42f}),
             .26f);  // collarbones
  }
  if (d < .08f) {
    d += folds(p);
    // Some asymmetry.
    d += .006f * (fbm(p * 1.3f + Vec3{float(c_.seed) * .37f, 1, 4}) - .44f);
  }
  Material m = Material::kSkin;
  const Vec3 q{std::fabs(p.x), p.y, p.z};
  const float eye = length(q - eyeCentre(true)) - eyeRadius_;
  if (eye < d) {
    d = eye;
    m = Material::kEye;
  }
  if (world.y < -.6f) {
    Material t = Material::kCloth;
    const float cloth = torso(world, &t);
    if (cloth < d) {
      d = cloth;
      m = t;
    }
  }
  const float g = glasses(p);
  if (g < d) {
    d = g;
    m = Material::kGlasses;
  }
  if (material) {
    *material = m;
  }
  return d;
}

Vec3 Head::normal(Vec3 p, float e) const {
  // Central differences at a tetrahedron's corners: four evaluations (I. Quilez).
  const Vec3 a{1, -1, -1}, b{-1, -1, 1}, c{-1, 1, -1}, d{1, 1, 1};
  return normalize(a * distance(p + a * e) + b * distance(p + b * e) + c * distance(p + c * e) +
                   d * distance(p + d * e));
}

Vec3 Head::smoothNormal(Vec3 p, float e) const {
  const Vec3 a{1, -1, -1}, b{-1, -1, 1}, c{-1, 1, -1}, d{1, 1, 1};
  return normalize(a * smooth(p + a * e) + b * smooth(p + b * e) + c * smooth(p + c * e) +
                   d * smooth(p + d * e));
}

Vec3 Head::onSkin(Vec3 p, Vec3 direction) const {
  // Marches from outside along -direction.
  for (int i = 0; i < 60; i++) {
    const float d = distance(p);
    if (std::fabs(d) < 5e-4f) {
      break;
    }
    p = p - direction * (d * .7f);
  }
  return p;
}
