// Grows curly hair: hairs that turn together about an axis, and others that left their coil.
// Distances in decimetres; amounts were chosen by eye.
#include "hair.h"

namespace {

constexpr float kTurn = 6.2831853f;

struct Coils {
  int count, hairs;
  /** Hairs outside any coil. */
  int loose;
  float length;
  /** Radius of a coil, and the rise of one turn by that radius. */
  float radius, rise;
  /** Weight of a coil by its stiffness, per decimetre. */
  float gravity;
  /** How far the axis of a coil wanders. */
  float wander;
  /** Radius of a hair at its root. */
  float hair;
};

Coils coilsOf(const Character& c) {
  if (c.hair == Hair::kAfro) {
    return {9500, 8, 14000, .17f, .0130f, 1.6f, .0f, 1.0f, .0010f};
  }
  return {3600, 14, 18000, .60f, .024f, 2.1f, 3.4f, .80f, .0011f};
}

/** Keeps hair that hangs beside the face off it. */
void clearFace(Vec3& p, float side) {
  if (p.z > -.05f && p.y < .62f) {
    const float inside = mix(.46f, .66f, smoothstep(.62f, .25f, p.y)) - side * p.x;
    if (inside > 0) {
      p.x += side * inside * .5f;
      p.z -= inside * .15f;
    }
  }
}

/** @returns points along the axis of a coil, evenly spaced */
std::vector<Vec3> growAxis(const Head& head, const Coils& style, Vec3 root, float length,
                           float layer, Random& random) {
  const Character& c = head.character();
  const bool hangs = style.gravity > 0;
  const float bent = .06f * (noise(root * 4) - .5f);
  const float side = root.x + bent > c.parting ? 1.f : -1.f;
  const Vec3 n = head.away(root);
  // Neighbours lean the same way, and each a little its own.
  const Vec3 lean{noise(root * 5) - .5f, noise(root * 5 + Vec3{9, 0, 0}) - .5f,
                  noise(root * 5 + Vec3{0, 9, 0}) - .5f};
  Vec3 dir = normalize(n + lean * (1.6f * style.wander) + scattered(random) * (.5f * style.wander));
  if (hangs) {
    // Away from the forehead.
    const float front = smoothstep(.2f, .6f, root.z);
    dir = normalize(dir * .9f + Vec3{side * (.30f + .35f * front), .0f, -.35f - .45f * front});
  }
  const int steps = 24;
  const float step = length / steps;
  std::vector<Vec3> axis{root};
  Vec3 p = root;
  for (int i = 0; i < steps; i++) {
    const float t = float(i) / steps;
    dir = normalize(dir + scattered(random) * (style.wander * .22f) +
                    Vec3{0, -style.gravity * step * (.4f + 1.6f * t), 0});
    p = p + dir * step;
    if (hangs) {
      const float keep = (.04f + .26f * layer) * smoothstep(0.f, .35f, t) *
                         mix(1.f, .55f, smoothstep(-.3f, -.8f, p.y));
      const float d = head.distance(p);
      if (d < keep) {
        const Vec3 g = head.away(p);
        p = p + g * (.6f * (keep - d));
        dir = normalize(dir - g * std::min(0.f, dot(dir, g)));
      }
      clearFace(p, side);
    }
    axis.push_back(p);
  }
  return axis;
}

/** @returns whether hair would lie on the forehead, where its shadow moves with the brows */
bool isOverForehead(const Head& head, const std::vector<Vec3>& axis) {
  const float line = .07f + .56f * (head.landmarks().crown - .07f) + head.character().hairline;
  return std::any_of(axis.begin(), axis.end(), [&](Vec3 p) {
    return p.z > .2f && p.y < line - .5f * sq(p.x) && std::fabs(p.x) < .50f;
  });
}

/** @returns whether a curl stands out above the others */
bool standsUp(const Head& head, const std::vector<Vec3>& axis) {
  const float highest = head.landmarks().crown + .34f;
  return std::any_of(axis.begin(), axis.end(),
                     [&](Vec3 p) { return p.y > highest - .40f * sq(p.x); });
}

Vec3 at(const std::vector<Vec3>& line, float t) {
  const float x = clamp01(t) * float(line.size() - 1);
  const size_t i = std::min(size_t(x), line.size() - 2);
  return mix(line[i], line[i + 1], x - float(i));
}

void addCoil(const Head& head, const Coils& style, Random& random, std::vector<Strand>& out) {
  const Character& c = head.character();
  Vec3 root;
  if (!findRoot(head, random, root)) {
    return;
  }
  const float inside = smoothstep(-.02f, .12f, insideHairline(head, root));
  if (c.hair == Hair::kAfro && random.uniform() > inside) {
    return;  // a whole coil before the others would stand alone on the forehead
  }
  const float share = hairLength(head, root);
  const float length = style.length * c.hairAmount * share * mix(.35f, 1.f, inside) *
                       std::exp(.20f * random.normal());
  const float layer = random.uniform();
  const std::vector<Vec3> axis = growAxis(head, style, root, length, layer, random);
  if (style.gravity > 0 && (isOverForehead(head, axis) || standsUp(head, axis))) {
    return;
  }
  // Curls are wide here and tight there, and each has a width of its own.
  const float region = std::exp(1.3f * (noise(root * 2.6f + Vec3{0, 0, 6}) - .5f));
  const float vary = style.gravity > 0 ? 1.f : .6f;
  const float radius = style.radius * region *
                       std::exp(.48f * vary * clampTo(random.normal(), -1.1f, 1.4f)) *
                       mix(.4f, 1.f, std::min(1.f, share * 1.6f));
  const float rise = radius * style.rise * std::exp(.42f * vary * random.normal());
  const float turns = length / rise, phase = random.between(0, kTurn),
              turning = random.uniform() < .5f ? 1.f : -1.f, tone = .16f * random.normal();
  const int count = std::max(8, std::min(170, int(turns * 9)));
  const int hairs = std::max(3, int(float(style.hairs) * mix(.45f, 1.f, inside)));
  for (int h = 0; h < hairs; h++) {
    Strand s;
    const float ahead = phase + .55f * random.normal(),
                wide = radius * std::exp(.30f * random.normal());
    // Some hairs of a coil turn less, and leave it.
    const float slack = random.uniform() < .18f * vary ? random.between(.3f, .8f) : 1.f;
    const Vec3 shift = scattered(random) * (.16f * radius), seed = scattered(random) * 40,
               phaseAt = {phase, phase, 0};
    const float end = random.between(.7f, 1.f);
    Vec3 u{0, 0, 0};
    for (int k = 0; k < count; k++) {
      const float t = float(k) / float(count - 1) * end;
      const Vec3 middle = at(axis, t), along = normalize(at(axis, t + .04f) - at(axis, t - .04f));
      // A frame that turns little along the axis.
      const Vec3 old = k == 0 ? (std::fabs(along.y) < .8f ? Vec3{0, 1, 0} : Vec3{1, 0, 0}) : u;
      u = normalize(old - along * dot(old, along));
      const Vec3 v = cross(along, u);
      const float a = ahead + turning * turns * slack * kTurn * t +
                      (1.8f + 3.4f * vary) * noise(phaseAt + middle * 9);
      const float r = wide * smoothstep(0, .18f, t) *
                      (1 + .35f * (noise(seed + middle * 30) - .5f)) *
                      (1 + 1.1f * vary * (noise(phaseAt + middle * 6 + Vec3{3, 3, 3}) - .5f));
      const Vec3 frizz =
          Vec3{noise(seed + middle * 22) - .5f, noise(seed + middle * 22 + Vec3{5, 0, 0}) - .5f,
               noise(seed + middle * 22 + Vec3{0, 5, 0}) - .5f} *
          (.9f * radius * t);
      s.points.push_back(middle + (u * std::cos(a) + v * std::sin(a)) * r + frizz + shift * t);
    }
    const float shade = std::exp(tone + .22f * random.normal());
    s.root = c.hairRoot * shade;
    s.tip = c.hairTip * shade;
    s.radius = style.hair * random.between(.7f, 1.25f) * mix(.6f, 1.f, inside);
    s.taper = .5f;
    s.onSkin = false;
    out.push_back(std::move(s));
  }
}

/** Adds a fine hair that winds irregularly and ends outside the others. */
void addLoose(const Head& head, const Coils& style, Random& random, std::vector<Strand>& out) {
  const Character& c = head.character();
  Vec3 root;
  if (!findRoot(head, random, root)) {
    return;
  }
  const float inside = smoothstep(-.02f, .12f, insideHairline(head, root));
  const float length = style.length * c.hairAmount * hairLength(head, root) *
                       mix(.35f, 1.f, inside) *
                       random.between(.5f, c.hair == Hair::kAfro ? 1.f : 1.25f);
  const std::vector<Vec3> axis =
      growAxis(head, style, root, length, random.between(.5f, 1.2f), random);
  if (style.gravity > 0 && isOverForehead(head, axis)) {
    return;
  }
  const int count = std::max(8, std::min(90, int(length / (style.radius * .7f))));
  Strand s;
  Vec3 away{0, 0, 0}, speed = scattered(random);
  for (int k = 0; k < count; k++) {
    speed = normalize(speed * .75f + scattered(random) * .65f - away * (.35f / style.radius));
    away = away + speed * (style.radius * .55f * smoothstep(0, .2f, float(k) / float(count)));
    s.points.push_back(at(axis, float(k) / float(count - 1)) + away);
  }
  s.root = c.hairRoot;
  s.tip = c.hairTip;
  s.radius = style.hair * random.between(.4f, .8f);
  s.taper = .4f;
  s.onSkin = false;
  out.push_back(std::move(s));
}

}  // namespace

void addCoils(const Head& head, std::vector<Strand>& out) {
  const Coils style = coilsOf(head.character());
  Random random(head.character().seed);
  for (int i = 0; i < style.count; i++) {
    addCoil(head, style, random, out);
  }
  for (int i = 0; i < style.loose; i++) {
    addLoose(head, style, random, out);
  }
}
