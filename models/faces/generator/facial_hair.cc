// Grows brows, lashes and beards. Amounts were chosen by eye.
#include "hair.h"

namespace {

/**
 * Adds a short hair on the skin.
 * @param root in world coordinates
 * @param along its direction
 * @param lift how far it bends away from the surface
 */
void addShort(const Head& head, std::vector<Strand>& out, Vec3 root, Vec3 along, float length,
              float lift, float radius, Vec3 colour, Random& random) {
  const Vec3 n = head.normal(root, .006f);
  Vec3 dir = normalize(along - n * dot(along, n));
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
  const int count = int(520 * c.browThickness);
  for (int side = -1; side <= 1; side += 2) {
    for (int i = 0; i < count; i++) {
      const float t = std::pow(random.uniform(), .85f);  // 0 at the nose, 1 at the tail
      const float x = .105f + .335f * t;
      const float arch = .268f + c.browHeight + .078f * std::sin(2.3f * std::pow(t, 1.05f)) -
                         .050f * t * t - .008f + c.browAngle * (t - .4f) + (side > 0 ? .004f : 0);
      const float half = .027f * c.browThickness * (1 - .75f * smoothstep(.35f, 1.f, t)) *
                         (.70f + .30f * smoothstep(0.f, .15f, t));
      const float v = clampTo(random.normal() * .55f, -1, 1);
      const Vec3 start = head.fromHead({float(side) * x, arch + v * half, 1.1f});
      const Vec3 root = head.onSkin(start, head.fromHead({0, 0, 1}) - head.fromHead({0, 0, 0}));
      // Hairs stand up near the nose and lie along the arch further out. The upper ones lean down,
      // the lower ones up.
      const float up = mix(.85f, .10f, smoothstep(0, .30f, t)) - .45f * v * smoothstep(.1f, .5f, t);
      const Vec3 along =
          normalize({float(side) * (.35f + t), up - .75f * smoothstep(.55f, 1, t), 0});
      addShort(head, out, root, along, .062f * random.between(.7f, 1.15f) * (1 - .25f * t), .12f,
               .0026f, c.brow, random);
    }
  }
}

void addLashes(const Head& head, std::vector<Strand>& out) {
  const Character& c = head.character();
  Random random(c.seed + 2000);
  for (int side = 0; side < 2; side++) {
    for (int row = 0; row < 2; row++) {
      const bool upper = row == 0;
      const int count = upper ? 120 : 44;
      const Vec3 centre = head.eyeCentre(side == 1);
      for (int i = 0; i < count; i++) {
        const float t = (float(i) + random.uniform()) / float(count);
        const float x = mix(-.80f, 1.0f, t) * head.eyeHalfWidth();
        const float y = upper ? head.upperLid(x) : head.lowerLid(x);
        const float r = head.eyeRadius() + .020f;
        const float z = std::sqrt(std::max(.001f, sq(r) - sq(x) - sq(y)));
        const float s = side == 1 ? 1.f : -1.f;
        Vec3 p = centre + Vec3{s * x, y + (upper ? .002f : -.004f), z};
        const float length =
            (upper ? .066f : .024f) * c.lashes * (.55f + .55f * t) * random.between(.75f, 1.1f);
        const float fan = (t - .42f) * 1.15f + .12f * random.normal();
        Vec3 dir = upper ? normalize(Vec3{s * fan * .9f, -.10f, .85f})
                         : normalize(Vec3{s * fan * .8f, -.55f, .6f});
        Strand strand;
        for (int k = 0; k <= 6; k++) {
          strand.points.push_back(head.fromHead(p));
          p = p + dir * (length / 6);
          dir = normalize(dir + Vec3{0, upper ? .26f : -.05f, -.06f});
        }
        strand.root = strand.tip = mix(Vec3{.012f, .009f, .008f}, c.brow * .5f, c.age * .5f);
        strand.radius = upper ? .0030f : .0013f;
        strand.taper = .15f;
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
  const int count = int(60000 * std::min(1.f, .35f + c.beard));
  for (int i = 0; i < count; i++) {
    const float x = random.between(-.62f, .62f), y = random.between(-1.05f, .02f),
                ax = std::fabs(x);
    const Vec3 start = head.fromHead({x, y, 1.15f});
    const Vec3 root = head.onSkin(start, head.fromHead({0, 0, 1}) - head.fromHead({0, 0, 0}));
    const Vec3 p = head.toHead(root);
    if (p.z < -.15f || head.lipMask({p.x, p.y, std::max(p.z, .4f)}) > .15f) {
      continue;
    }
    // Cheeks from the ear to the corner of the mouth, moustache and chin, without the throat.
    const float cheek = -.33f + .62f * sq(std::max(0.f, ax - .16f)) * 1.4f;
    float m = smoothstep(cheek + .03f, cheek - .09f, p.y);
    const float moustache =
        smoothstep(-.335f, -.375f, p.y) * smoothstep(.30f, .18f, ax) * (p.y > -.52f ? 1.f : 0.f);
    m = std::max(m, moustache * (1 - .55f * gaussian(p.x, 0, .018f)));
    m *= 1 - .75f * gaussian(p.y, -.625f, .035f) * smoothstep(.10f, .17f, ax) *
                 smoothstep(.30f, .2f, ax) * .6f;
    m *= smoothstep(-.99f, -.90f, p.y) * smoothstep(.02f, .12f, p.z);
    m *= .55f + .6f * noise(p * 14);
    if (random.uniform() > m) {
      continue;
    }
    const Vec3 along = normalize({p.x * .5f, -1, .1f});
    const float length = c.beard < .25f ? .012f : .016f + .05f * std::max(0.f, c.beard - .25f);
    addShort(head, out, root, along, length * random.between(.6f, 1.2f), .42f, .0015f, c.brow * .9f,
             random);
  }
}

}  // namespace

void addFacialHair(const Head& head, std::vector<Strand>& out) {
  addBrows(head, out);
  addLashes(head, out);
  addBeard(head, out);
}
