// Short fine hairs along the hairline, and a few hairs that stray over forehead and temples.
// Distances in decimetres; amounts were chosen by eye.
#include "hair.h"

namespace {

/** How far before the hairline the last fine hairs grow. */
constexpr float kOutermost = -.085f;

/** @returns the way into the hair along the skin */
Vec3 intoHair(const Head& head, Vec3 p) {
  constexpr float kStep = .01f;
  const auto slope = [&](Vec3 step) {
    return insideHairline(head, p + step) - insideHairline(head, p - step);
  };
  const Vec3 n = head.away(p), g{slope({kStep, 0, 0}), slope({0, kStep, 0}), slope({0, 0, kStep})};
  return normalize(g - n * dot(g, n) + Vec3{0, 1e-4f, 0});
}

/** Adds a hair that lies on the skin. @param fine 0 as thick and dark as others, 1 like down */
void addLying(const Head& head, Vec3 root, Vec3 dir, float length, float curl, float fine,
              Random& random, std::vector<Strand>& out) {
  const Character& c = head.character();
  constexpr int kPoints = 11;
  const Vec3 turn = scattered(random) * curl, start = dir;
  Strand s;
  Vec3 p = root;
  for (int i = 0; i < kPoints; i++) {
    const float t = float(i) / (kPoints - 1);
    s.points.push_back(p);
    const Vec3 n = head.away(p);
    const Vec3 bend = cross(n, start) * (turn.x * std::sin(3 * t + turn.y));
    dir = normalize(dir + bend * .5f + scattered(random) * .03f);
    dir = normalize(dir - n * dot(dir, n));
    p = p + dir * (length / kPoints);
    const float d = head.distance(p), over = .003f + .05f * length * t;
    p = p + head.away(p) * (over - d);
  }
  const float shade = std::exp(.25f * random.normal());
  s.root = mix(c.hairRoot * shade, c.skin * .6f, .75f * fine);
  s.tip = mix(c.hairTip * shade, c.skin * .6f, .12f + .68f * fine);
  s.radius = .0009f * random.between(.45f, 1.f) * mix(1.f, .55f, fine);
  s.taper = .15f;
  s.onSkin = true;
  out.push_back(std::move(s));
}

}  // namespace

void addHairline(const Head& head, std::vector<Strand>& out) {
  const Character& c = head.character();
  const float low = head.landmarks().earTop - .10f;
  const bool isCoiled = c.hair == Hair::kAfro || c.hair == Hair::kCurls;
  const bool isLong = hangs(c.hair);
  Random random(c.seed * 7 + 1);
  const auto rootNear = [&](float from, float to, Vec3& root) {
    return pointOnScalp(head, random, root) && root.z > -.1f && root.y > low &&
           !head.isOnEar(root) && insideHairline(head, root) > from &&
           insideHairline(head, root) < to;
  };
  Vec3 root;
  for (int i = 0; i < 150000; i++) {
    // Beside the cheek long hair hides them: light from behind would make them grey.
    if (!rootNear(kOutermost, .09f, root) || (isLong && root.y < .42f)) {
      continue;
    }
    // They thin out towards the face, in tufts, and grow finer and shorter.
    const float inside = insideHairline(head, root), rim = smoothstep(kOutermost, .06f, inside);
    const float tufts = noise(root * 16);
    const float dense = rim * (.35f + 1.1f * tufts) * (isLong ? .8f : 1.f);
    if (random.uniform() > dense * dense) {
      continue;
    }
    // Neighbours lie the same way. Long hair is combed away from the parting.
    const float lean = noise(root * 7 + Vec3{0, float(c.seed), 0}) - .5f;
    const float aside = isLong ? (root.x > c.parting ? .9f : -.9f) : .55f * root.x;
    const Vec3 dir = normalize(intoHair(head, root) * (isLong ? .55f : 1.f) +
                               Vec3{aside + .7f * lean, -.15f, -.25f} + scattered(random) * .13f);
    const float longest = (isLong ? .26f : .10f) + .45f * std::max(0.f, inside + .05f);
    addLying(head, root, dir, random.between(.045f, longest) * mix(.7f, 1.f, rim),
             isCoiled ? 1.2f : .22f, 1 - rim, random, out);
  }
  if (!isLong || c.grey > 0) {
    return;
  }
  // Strays fall from the hair towards the temples.
  for (int i = 0, left = 26; i < 20000 && left > 0; i++) {
    if (!rootNear(-.01f, .06f, root) || std::fabs(root.x) < .16f) {
      continue;
    }
    const Vec3 dir = normalize(Vec3{root.x * 1.1f, -.75f, 0} - intoHair(head, root) * .35f +
                               scattered(random) * .16f);
    addLying(head, root - head.away(root) * .004f, dir, random.between(.15f, .38f), .45f, .1f,
             random, out);
    left--;
  }
}
