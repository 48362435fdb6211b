// Grows brows, lashes and beards. Amounts were chosen by eye.
#include "hair.h"

namespace {

/**
 * Adds a short hair on the skin.
 * @param along its direction
 * @param lift how far it bends away from the surface
 */
void addShort(std::vector<Strand>& out, Vec3 root, Vec3 n, Vec3 along, float length, float lift,
              float radius, Vec3 colour, Random& random) {
  const Vec3 dir = normalize(along - n * dot(along, n));
  Strand s;
  Vec3 p = root - n * .002f;
  for (int i = 0; i <= 5; i++) {
    s.points.push_back(p);
    const Vec3 d =
        normalize(dir + n * lift + Vec3{random.normal(), random.normal(), random.normal()} * .06f);
    p = p + d * (length / 5);
  }
  s.root = s.tip = colour;
  s.radius = radius;
  s.taper = .3f;
  s.onSkin = true;
  out.push_back(std::move(s));
}

/** @returns the height of a brow's middle over the eye; t is 0 at the nose, 1 at the tail */
float browAt(const Character& c, float t, bool isRight) {
  // A soft arch whose highest place is past the middle. Its ends are nearly level.
  const float arch = .040f * c.browArch * std::sin(3.14f * std::pow(t, 1.32f));
  const float uneven = (isRight ? 1.f : -1.f) * c.expression.uneven;
  return .148f + c.browHeight + arch + (c.browAngle + .012f) * (t - .4f) + .05f * uneven * t;
}

/** @returns how many hairs grow there, 0 to 1; v is 0 in the brow's middle, positive above it */
float browDensity(float t, float v, float side) {
  const float ends =
      (.14f + .86f * smoothstep(-.04f, .34f, t)) * (1 - .78f * smoothstep(.52f, 1, t));
  // Denser below than above, with gaps.
  return ends * (1 - .5f * smoothstep(.2f, 1.7f, v)) * (.55f + .8f * noise({34 * t, 3 * v, side}));
}

void addBrows(const Head& head, std::vector<Strand>& out) {
  const Character& c = head.character();
  Random random(c.seed + 1000);
  const int count = int(2300 * c.browThickness);
  const Vec3 eye = head.eyesAtRest()[1].centre;
  for (int side = -1; side <= 1; side += 2) {
    for (int i = 0; i < count; i++) {
      const float t = random.uniform(), x = eye.x - .180f + .350f * t;
      const float half = .037f * c.browThickness * (1 - .60f * smoothstep(.40f, 1.f, t)) *
                         (.72f + .28f * smoothstep(0.f, .30f, t));
      const float v = clampTo(random.normal() * .75f, -1.5f, 2.1f);
      Vec3 root, n;
      if (random.uniform() > browDensity(t, v, float(side)) ||
          !head.onFront(float(side) * x, eye.y + browAt(c, t, side > 0) + v * half, root, n)) {
        continue;
      }
      // Hairs stand up near the nose and lie along the arch further out. The upper ones lean down,
      // the lower ones up.
      const float up = mix(.85f, .12f, smoothstep(0, .34f, t)) -
                       .45f * v * smoothstep(.12f, .5f, t) + .14f * random.normal();
      const Vec3 along =
          normalize({float(side) * (.35f + t), up - .75f * smoothstep(.55f, 1, t), 0});
      // Those at the border are short, fine and light.
      const float edge = std::max(smoothstep(.6f, 1.8f, std::fabs(v)), smoothstep(.22f, 0, t));
      const Vec3 tone = c.brow * (1.02f * std::exp((.30f + .30f * c.grey) * random.normal()));
      addShort(out, root, n, along,
               .052f * random.between(.35f, 1.25f) * (1 - .3f * t) * (1 - .3f * edge), .12f,
               .00075f * random.between(.5f, 1.1f) * (1 - .3f * edge),
               mix(tone, c.skin * .6f, .55f * edge), random);
    }
  }
}

void addLashes(const Head& head, std::vector<Strand>& out) {
  const Character& c = head.character();
  Random random(c.seed + 2000);
  for (int side = 0; side < 2; side++) {
    const Eye& eye = head.eyesAtRest()[size_t(side)];
    const float s = side == 1 ? 1.f : -1.f;
    for (int row = 0; row < 2; row++) {
      const bool upper = row == 0;
      const int count = upper ? 130 : int(40 * c.lashes);
      for (int i = 0; i < count; i++) {
        const float t = (float(i) + random.uniform()) / float(count);
        const float x = mix(head.innerCorner() * .80f, head.outerCorner() * .98f, t);
        const float y = head.lid(upper, x) + (upper ? .004f : -.014f);
        Vec3 p, n;
        if (!head.onFront(eye.centre.x + s * x, eye.centre.y + y, p, n)) {
          continue;
        }
        const float length = (upper ? .060f : .026f) * std::min(1.3f, c.lashes) *
                             (.55f + .55f * t) * random.between(.65f, 1.1f);
        const float fan = (t - .42f) * 1.15f + .16f * random.normal();
        Vec3 dir = upper ? normalize(Vec3{s * fan * .9f, -.16f, .85f})
                         : normalize(Vec3{s * fan * .8f, -.85f, .35f});
        Strand strand;
        for (int k = 0; k <= 6; k++) {
          strand.points.push_back(p);
          p = p + dir * (length / 6);
          dir = normalize(dir + Vec3{0, upper ? .24f : -.05f, -.06f});
        }
        strand.root = strand.tip = mix(Vec3{.012f, .009f, .008f}, c.brow * .5f, c.age * .5f);
        strand.radius = upper ? .0011f * std::min(1.f, .4f + .6f * c.lashes) : .00042f;
        strand.taper = .2f;
        strand.onSkin = true;
        out.push_back(std::move(strand));
      }
    }
  }
}

/** @returns how a beard grows at a point: the tangential part counts */
Vec3 beardDirection(const Landmarks& m, Vec3 p) {
  const float side = p.x > 0 ? 1.f : -1.f, ax = std::fabs(p.x);
  const float isMoustache = smoothstep(m.mouth.y - .03f, m.mouth.y + .05f, p.y) *
                            smoothstep(m.mouthHalf + .16f, m.mouthHalf + .02f, ax);
  const Vec3 down{-.35f * p.x - side * .25f * smoothstep(.35f, .6f, ax), -1.f, .25f};
  const Vec3 outwards{side * (.25f + 3.2f * ax), -1.f, 0};
  const float whirl = 2.2f * (noise(p * 7) - .5f) + 1.6f * (noise(p * 17) - .5f);
  return normalize(mix(down, outwards, isMoustache) + Vec3{whirl, .3f * whirl, 0} * .5f);
}

/** How far hairs of the moustache and of the beard reach over the edge of the lips, decimetres. */
constexpr float kOverUpperLip = .010f, kOverLowerLip = .007f;

/**
 * Adds one hair. It ends at the edge of the lips.
 * @param thick 0 at the border of the beard to 1: hairs there are finer, lighter and lie flatter,
 * so that none looks like a dot
 */
void addBeardHair(const Head& head, Vec3 root, Vec3 n, float length, float thick, Random& random,
                  std::vector<Strand>& out) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  Vec3 dir = beardDirection(m, root);
  dir = normalize(dir - n * dot(dir, n));
  dir = normalize(dir + n * (random.between(.10f, .46f) * mix(.35f, 1.f, thick)) +
                  scattered(random) * .14f);
  const Vec3 bend = scattered(random) * (c.hair == Hair::kAfro ? mix(.22f, .45f, thick) : .12f);
  const float overLip = random.uniform();
  const int steps = 8;
  Strand s;
  Vec3 p = root - n * .003f;
  for (int i = 0; i <= steps; i++) {
    const float over = (p.y > head.lips().seam(p.x) ? kOverUpperLip : kOverLowerLip) * overLip;
    if (i > 0 && head.lips().distance(p.x, p.y) < -over) {
      break;
    }
    s.points.push_back(p);
    dir = normalize(dir + bend * .5f + Vec3{0, -.10f, 0});
    p = p + dir * (length / steps);
  }
  if (s.points.size() < 3) {
    return;
  }
  const bool isGrey = random.uniform() < c.grey * .6f;
  // Colour changes by place as well as by hair, and some hairs are redder.
  const float tone = .34f * random.normal() + 1.1f * (noise(root * 6 + Vec3{0, 4, 0}) - .5f);
  const Vec3 warm{1 + .5f * sq(random.uniform()) * (1 - c.grey), 1, 1};
  const Vec3 colour =
      mix(c.brow, c.hairRoot * (isGrey ? 1.35f : .9f), c.grey) * warm * std::exp(tone);
  // Roots lie in the shadow of the others, where there are others.
  const float faded = .42f * (1 - thick);
  s.root = mix(colour * mix(1.f, .55f, thick), c.skin * .7f, faded);
  s.tip = mix(colour * 1.15f, c.skin * .7f, faded);
  s.radius = .00088f * random.between(.65f, 1.15f) * mix(.50f, 1.f, thick);
  s.taper = .25f;
  s.onSkin = true;
  out.push_back(std::move(s));
}

/** One try of this many is for the moustache alone. */
constexpr int kMoustache = 34;

void addBeard(const Head& head, std::vector<Strand>& out) {
  const Character& c = head.character();
  const Landmarks& m = head.landmarks();
  if (c.beard <= 0) {
    return;
  }
  Random random(c.seed + 3000);
  const int count = int(80000 * std::min(1.f, .45f + c.beard));
  for (int i = 0; i < count; i++) {
    // The moustache is the densest part.
    const bool isMoustache = i % kMoustache == 0;
    const float wide =
        isMoustache ? m.mouthHalf + .12f * (random.uniform() - random.uniform()) : .78f;
    const float x = random.between(-wide, wide),
                y = isMoustache ? random.between(m.mouth.y, m.noseBase + .02f)
                                : random.between(-1.40f, .10f);
    Vec3 root, n;
    if (!head.onFront(x, y, root, n) || random.uniform() > beardMask(head, root) ||
        head.lips().distance(x, y) < .001f) {
      continue;
    }
    // Longest at the chin, short towards its borders.
    const float chin = smoothstep(m.mouth.y + .05f, m.chin + .08f, root.y);
    const float thick = smoothstep(.06f, .62f, beardMask(head, root));
    const float below = smoothstep(m.chin + .02f, m.chin - .18f, root.y + .25f * std::fabs(x));
    const float length =
        c.beard * mix(.14f, .26f, chin) * mix(.34f, 1.f, thick) * (1 - .65f * below) *
        (1 - .5f * smoothstep(.30f, .50f, std::fabs(x)) * smoothstep(m.mouth.y, m.chin, y)) *
        random.between(.35f, 1.3f) * (.62f + .76f * noise(root * 8 + Vec3{float(c.seed), 0, 0}));
    addBeardHair(head, root, n, length, thick, random, out);
  }
}

}  // namespace

float beardMask(const Head& head, Vec3 p) {
  const Landmarks& m = head.landmarks();
  // A smile raises the corners, and the beard with them.
  const float ax = std::fabs(p.x), mouth = head.lips().seam(std::copysign(m.mouthHalf, p.x));
  if (p.z < m.earFront - .05f) {
    return 0;
  }
  const float patchy = .10f * (noise(p * 6) - .5f) + .06f * (noise(p * 19) - .5f);
  // Cheeks: below a line that sags from the sideburn to the moustache.
  const float out = clamp01((ax - m.mouthHalf) / (.62f - m.mouthHalf));
  const float line = mix(mouth + .11f, m.earTop - .30f, out * out) - .05f * std::sin(3.14f * out);
  const float cheek =
      smoothstep(.15f, mix(-.16f, -.26f, smoothstep(0, .3f, out)), p.y - line + 1.5f * patchy);
  // From the sideburn down the jaw.
  const float jaw = smoothstep(m.earFront + .34f, m.earFront + .12f, p.z + patchy) *
                    smoothstep(m.earTop - .10f, m.earTop - .24f, p.y);
  // Under the nose, thin in the middle, past the corners into the rest.
  const float upper = m.noseBase - .015f - .10f * sq(ax / m.mouthHalf);
  const float moustache = smoothstep(.02f, -.05f, p.y - upper + .4f * patchy) *
                          smoothstep(m.mouthHalf + .17f, m.mouthHalf - .08f, ax) *
                          (1 - .3f * gaussian(ax, 0, .03f));
  float mask = std::max(std::max(.95f * cheek, .8f * jaw), moustache);
  // Thin beside the tuft below the lower lip.
  mask *= 1 - .35f * gaussian(p.y, m.lipBottom - .045f, .04f) * gaussian(ax, .14f, .055f);
  mask *= smoothstep(-.004f, .010f, head.lips().distance(p.x, p.y));
  // It thins out below the jaw.
  mask *= smoothstep(-.15f, .10f, p.y - m.chin - 1.1f * sq(ax) + patchy);
  return std::min(1.f, mask * (.52f + .5f * noise(p * 15) + .22f * noise(p * 43)));
}

void addFacialHair(const Head& head, std::vector<Strand>& out) {
  addBrows(head, out);
  addLashes(head, out);
  addBeard(head, out);
}
