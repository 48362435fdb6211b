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
  s.root = s.tip = colour * std::exp(.25f * random.normal());
  s.radius = radius;
  s.taper = .3f;
  s.onSkin = true;
  out.push_back(std::move(s));
}

void addBrows(const Head& head, std::vector<Strand>& out) {
  const Character& c = head.character();
  Random random(c.seed + 1000);
  const int count = int(1300 * c.browThickness);
  const Vec3 eye = head.eyesAtRest()[1].centre;
  for (int side = -1; side <= 1; side += 2) {
    for (int i = 0; i < count; i++) {
      const float t = std::pow(random.uniform(), .85f);  // 0 at the nose, 1 at the tail
      const float x = eye.x - .175f + .345f * t;
      const float arch = eye.y + .158f + c.browHeight + .050f * std::sin(2.3f * std::pow(t, 1.1f)) -
                         .040f * t * t + (c.browAngle + .03f) * (t - .4f) + (side > 0 ? .004f : 0);
      const float half = .037f * c.browThickness * (1 - .70f * smoothstep(.35f, 1.f, t)) *
                         (.65f + .35f * smoothstep(0.f, .18f, t));
      const float v = clampTo(random.normal() * .62f, -1.5f, 1.5f);
      Vec3 root, n;
      if (!head.onFront(float(side) * x, arch + v * half, root, n)) {
        continue;
      }
      // Hairs stand up near the nose and lie along the arch further out. The upper ones lean down,
      // the lower ones up.
      const float up = mix(.70f, .10f, smoothstep(0, .25f, t)) - .45f * v * smoothstep(.1f, .5f, t);
      const Vec3 along =
          normalize({float(side) * (.35f + t), up - .75f * smoothstep(.55f, 1, t), 0});
      addShort(out, root, n, along, .058f * random.between(.5f, 1.15f) * (1 - .25f * t), .10f,
               .0010f, c.brow, random);
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
      const int count = upper ? 130 : 60;
      for (int i = 0; i < count; i++) {
        const float t = (float(i) + random.uniform()) / float(count);
        const float x = mix(head.innerCorner() * .80f, head.outerCorner() * .98f, t);
        const float y = head.lid(upper, x) + (upper ? .004f : -.006f);
        Vec3 p, n;
        if (!head.onFront(eye.centre.x + s * x, eye.centre.y + y, p, n)) {
          continue;
        }
        const float length = (upper ? .060f : .026f) * std::min(1.3f, c.lashes) *
                             (.55f + .55f * t) * random.between(.65f, 1.1f);
        const float fan = (t - .42f) * 1.15f + .16f * random.normal();
        Vec3 dir = upper ? normalize(Vec3{s * fan * .9f, -.16f, .85f})
                         : normalize(Vec3{s * fan * .8f, -.60f, .6f});
        Strand strand;
        for (int k = 0; k <= 6; k++) {
          strand.points.push_back(p);
          p = p + dir * (length / 6);
          dir = normalize(dir + Vec3{0, upper ? .24f : -.05f, -.06f});
        }
        strand.root = strand.tip = mix(Vec3{.012f, .009f, .008f}, c.brow * .5f, c.age * .5f);
        strand.radius = upper ? .0015f : .0008f;
        strand.taper = .2f;
        strand.onSkin = true;
        out.push_back(std::move(strand));
      }
    }
  }
}

void addBeard(const Head& head, std::vector<Strand>& out) {
  const Character& c = head.character();
  if (c.beard <= 0) {
    return;
  }
  Random random(c.seed + 3000);
  const int count = int(90000 * std::min(1.f, .35f + c.beard));
  for (int i = 0; i < count; i++) {
    const float x = random.between(-.75f, .75f), y = random.between(-1.35f, .05f);
    Vec3 root, n;
    if (!head.onFront(x, y, root, n) || random.uniform() > beardMask(head, root)) {
      continue;
    }
    const float lower = smoothstep(-.45f, -.75f, root.y);
    const Vec3 along = normalize({root.x * .6f, -1, .25f * lower});
    const float length =
        c.beard < .25f ? .011f : .016f + (.045f + .03f * lower) * std::max(0.f, c.beard - .25f);
    const Vec3 colour = mix(c.brow * .9f, c.hairRoot, c.grey);
    addShort(out, root, n, along, length * random.between(.5f, 1.3f), .45f, .0010f,
             random.uniform() < c.grey * .4f ? colour * 1.25f : colour, random);
  }
}

}  // namespace

float beardMask(const Head& head, Vec3 p) {
  const Landmarks& m = head.landmarks();
  const float ax = std::fabs(p.x), mouth = m.mouth.y;
  // Cheeks from the ear to the corner of the mouth; moustache; chin; a little of the throat.
  const float cheek = mouth + .14f + .85f * sq(std::max(0.f, ax - .22f));
  const float patchy = .05f * (noise(p * 7) - .5f);
  float mask =
      smoothstep(cheek + .05f + patchy, cheek - .10f + patchy, p.y) * smoothstep(-.25f, .05f, p.z);
  const float moustache = smoothstep(m.noseBase - .045f, m.noseBase - .085f, p.y) *
                          smoothstep(m.mouthHalf + .10f, m.mouthHalf, ax) *
                          (p.y > mouth ? 1.f : 0.f);
  mask = std::max(mask, moustache * (1 - .6f * gaussian(p.x, 0, .018f)));
  // Bare beside the tuft below the lip, and on the lips.
  mask *= 1 - .7f * gaussian(p.y, mouth - .12f, .045f) * smoothstep(.06f, .10f, ax) *
                  smoothstep(.22f, .15f, ax);
  const float lips = sq(p.x / (m.mouthHalf + .01f)) + sq((p.y - .5f * (m.lipTop + m.lipBottom)) /
                                                         (.5f * (m.lipTop - m.lipBottom) + .004f));
  mask *= smoothstep(.88f, 1.08f, lips);
  mask *= smoothstep(m.chin - .22f, m.chin - .06f, p.y);
  return mask * (.55f + .6f * noise(p * 14));
}

void addFacialHair(const Head& head, std::vector<Strand>& out) {
  addBrows(head, out);
  addLashes(head, out);
  addBeard(head, out);
}
