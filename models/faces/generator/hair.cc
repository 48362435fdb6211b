// Grows the hair of the scalp: roots, a direction field that combs them, clumps. Amounts were
// chosen by eye.
#include "hair.h"

float scalpMask(const Character& c, Vec3 p) {
  const float ax = std::fabs(p.x);
  const float wobble =
      .045f * (noise(p * 9) - .5f) + .035f * (noise(p * 23) - .5f) + .02f * (noise(p * 61) - .5f);
  // The hairline over the forehead.
  float front =
      .735f + c.hairline - .20f * sq(ax / .55f) + .05f * gaussian(ax, .40f, .12f) + wobble;
  if (c.hair == Hair::kReceding) {
    front += .16f + .22f * gaussian(ax, .33f, .16f);
  }
  if (c.age > .5f) {
    front += .03f;
  }
  float m = smoothstep(front - .06f, front + .13f, p.y);
  // Temples and sideburns: in front of the ear, down to its middle.
  const bool full = c.hair == Hair::kLong || c.hair == Hair::kBob;
  const float burn =
      smoothstep(.09f, -.03f, p.z - (full ? .30f : .20f) + .25f * (p.y - .3f) + wobble) *
      smoothstep(-.12f, .0f, p.y);
  m = std::max(m, burn * smoothstep(.52f, .60f, ax));
  // Behind the ear and down the nape.
  const float ear = length(Vec3{0, (p.y - .0f) / .25f, (p.z + .09f) / .165f});
  if (ax > .5f) {
    m *= smoothstep(.92f, 1.08f, ear);
  }
  const float nape = smoothstep(-.52f, -.42f, p.y) * smoothstep(-.18f, -.30f, p.z);
  m = std::max(m * smoothstep(-.15f, -.02f, p.y), nape);
  if (c.hair == Hair::kCropped) {
    m *= mix(.12f, 1.f, smoothstep(-.05f, .50f, p.y));
  }
  if (c.hair == Hair::kCurly) {
    m *= smoothstep(-.06f, .20f, p.y) * mix(.30f, 1.f, smoothstep(.10f, .50f, p.y));
  }
  if (c.hair == Hair::kReceding) {
    m *= std::max(smoothstep(.55f, .30f, p.y), smoothstep(.05f, -.2f, p.z) * .25f);
  }
  return m;
}

namespace {

constexpr Vec3 kScalpCentre{0, .22f, -.10f};

struct Style {
  int strands;
  float length, lengthVary;
  float lift, stiffness, comb, gravity, frizz;
  float curl, curlTurns;  // radius and turns per unit length
  float volume;           // distance of the outermost strands from the skull
  float clump;
  int guides;
  float loose = .025f;  // share of hairs that leave their clump
};

Style styleOf(const Character& c) {
  switch (c.hair) {
    case Hair::kShort:
      return {130000, .38f, .40f, .34f, .80f, .40f, .03f, .12f, .014f, 2.5f, .115f, .48f, 2600};
    case Hair::kLong:
      return {170000, 1.75f, .26f, .32f, .80f, .22f, .10f, .050f, .045f, .85f, .085f, .50f, 1500};
    case Hair::kBob:
      return {170000, 1.30f, .14f, .40f, .80f, .22f, .11f, .045f, .014f, .9f, .085f, .45f, 1900};
    case Hair::kCurly:
      return {120000, .36f, .45f, 1.0f, .95f, .02f, .0f, .24f, .024f, 10.f, .21f, .78f, 4200, 0};
    case Hair::kCropped:
      return {110000, .15f, .40f, .9f, .95f, .02f, .0f, .30f, .015f, 15.f, .10f, .80f, 4600, 0};
    case Hair::kReceding:
      return {30000, .26f, .4f, .45f, .82f, .40f, .05f, .12f, .008f, 3.f, .05f, .35f, 1100};
  }
  return {};
}

bool isFringe(const Character& c, Vec3 p) {
  return c.hair == Hair::kBob && c.age < .5f && p.z > .18f && std::fabs(p.x) < .40f;
}

/**
 * @returns 1 or -1 for the side of the parting, 0 in the fringe. A strand stays on its root's side.
 */
float sideOf(const Head& head, Vec3 root) {
  const Vec3 p = root;
  if (isFringe(head.character(), p)) {
    return 0;
  }
  return p.x + .02f * (noise(p * 40) - .5f) > head.character().parting ? 1.f : -1.f;
}

/** @returns the direction of hair at a point of the scalp: tangential, in the head's coordinates */
Vec3 combField(const Character& c, Vec3 p, Vec3 normal, float side) {
  Vec3 d{0, 0, 0};
  switch (c.hair) {
    case Hair::kShort: {
      // Up and back from the forehead, to one side; down at the sides and the back.
      const float top = smoothstep(.50f, .75f, p.y);
      const Vec3 quiff =
          normalize({.48f - .6f * p.x, .18f, -.55f + .30f * gaussian(p.z, .45f, .35f)});
      const Vec3 down{p.x * .2f, -1.f, -.55f};
      d = mix(normalize(down), quiff, top);
      break;
    }
    case Hair::kLong: {
      // Back from the forehead, then down behind the cheekbone.
      const float off = smoothstep(.62f, .35f, std::fabs(p.x)) * smoothstep(-.1f, .15f, p.z);
      d = mix(Vec3{side * .45f, -1.f, -.25f}, Vec3{side * 1.f, .02f, -.55f}, off);
      break;
    }
    case Hair::kBob:
      // Young characters have a fringe over the forehead.
      if (side == 0) {
        d = {p.x * .55f, -.55f, 1.f};
      } else {
        d = mix(Vec3{side * .45f, -1.f, -.15f}, Vec3{side * 1.f, -.05f, c.age > .5f ? -.6f : -.2f},
                smoothstep(.62f, .35f, std::fabs(p.x)));
      }
      break;
    case Hair::kCurly:
    case Hair::kCropped:
      d = normal;
      break;
    case Hair::kReceding:
      d = {p.x * .3f, -.8f, -.8f};
      break;
  }
  return normalize(d);
}

Vec3 gradient(const Head& head, Vec3 p) {
  return head.away(p);
}

/** @returns the length factor: shorter at the sides and the back for short hair */
float lengthAt(const Character& c, Vec3 p) {
  if (c.hair == Hair::kShort) {
    return mix(.24f, 1.f, smoothstep(.42f, .74f, p.y));
  }
  if (c.hair == Hair::kCurly) {
    // Faded at the sides.
    return mix(.07f, 1.f, smoothstep(.34f, .90f, p.y + .05f * (noise(p * 8) - .5f))) *
           mix(.55f, 1.f, smoothstep(.62f, .40f, p.z));
  }
  if (c.hair == Hair::kCropped) {
    // Fuller on top.
    return mix(.16f, 1.f, smoothstep(.22f, .70f, p.y + .04f * (noise(p * 8) - .5f))) *
           mix(.5f, 1.f, smoothstep(.62f, .40f, p.z));
  }
  return 1;
}

/** Grows one strand from its root, in world coordinates. */
std::vector<Vec3> grow(const Head& head, const Style& style, Vec3 root, Random& random,
                       float layer) {
  const Character& c = head.character();
  const int steps = 30;
  const float side = sideOf(head, root);
  const Vec3 local = root;
  const float wanted = style.length * (1 + style.lengthVary * random.normal() * .5f) *
                       c.hairAmount * lengthAt(c, root);
  Vec3 p = root, n = gradient(head, root);
  Vec3 dir = normalize(n * style.lift + combField(c, root, n, side) * .6f +
                       Vec3{random.normal(), random.normal(), random.normal()} * style.frizz);
  std::vector<Vec3> points{p};
  // The fringe ends above the brows, whatever the length of its strands.
  const bool fringe = isFringe(c, local);
  const bool isInFront = root.z + .3f * (noise(root * 2.5f) - .5f) > .02f;
  const float seg = wanted / steps;
  for (int i = 0; i < steps; i++) {
    const float t = float(i) / steps;
    const Vec3 comb = combField(c, p, n, side);
    const bool falling = style.length > .9f && !fringe;
    const float fall =
        fringe ? .30f : style.gravity * (falling ? 1 + 2.5f * smoothstep(.5f, -.1f, p.y) : 1.f);
    // Hair on the skull follows the comb field. Below the skull it hangs.
    const float hold = falling ? smoothstep(-.05f, .45f, p.y) : 1 - .8f * t;
    dir = normalize(dir * style.stiffness + comb * (style.comb * hold) + Vec3{0, -fall, 0} +
                    Vec3{random.normal(), random.normal(), random.normal()} * (style.frizz * .25f));
    p = p + dir * seg;
    const float keep = layer * style.volume * lengthAt(c, local) * smoothstep(0.f, .22f, t + .04f) *
                           (1 - .45f * t * (style.length > 1 ? 1.f : 0.f)) +
                       .012f;
    // Below the neckline hair lies on cloth.
    const float d = head.distance(p) - .085f * smoothstep(-.95f, -1.25f, p.y);
    if (falling && p.y < -.25f) {
      // Past the neck hair goes in front of the shoulder or behind it, not along its top.
      p.z += (isInFront ? .022f : -.030f) * smoothstep(-.25f, -.70f, p.y);
    }
    if (d < keep) {
      Vec3 g = gradient(head, p);
      if (falling && p.y < -.80f) {
        g = normalize(Vec3{g.x * .3f, g.y * .12f, isInFront ? std::max(g.z, .25f) : -.6f});
      }
      p = p + g * (keep - d);
      dir = normalize(dir - g * std::min(0.f, dot(dir, g)) * .9f);
      n = g;
    }
    // Long hair stays beside the face.
    const Vec3 h = p;
    if (falling && h.z > -.05f && h.y < .70f) {
      const float edge = mix(.50f, .60f, smoothstep(.55f, .15f, h.y)) -
                         .10f * smoothstep(-.55f, -1.0f, h.y) + .06f * layer;
      const float inside = edge - side * h.x;
      if (inside > 0) {
        p.x += side * inside * .45f;
        p.z -= inside * .10f;
        dir = normalize(dir + Vec3{side * inside * .8f, 0, 0});
      }
    }
    points.push_back(p);
    // Locks end at different heights.
    const float uneven = c.age < .5f ? noise(root * 13) : 0;
    if (fringe && h.y < .27f + .17f * uneven + .08f * sq(random.uniform())) {
      break;
    }
    if (c.hair == Hair::kBob && h.y < -.70f + .14f * uneven - .15f * std::sqrt(random.uniform())) {
      break;
    }
  }
  return points;
}

Vec3 at(const std::vector<Vec3>& line, float t) {
  const float x = clamp01(t) * float(line.size() - 1);
  const size_t i = std::min(size_t(x), line.size() - 2);
  return mix(line[i], line[i + 1], x - float(i));
}

bool findRoot(const Head& head, Random& random, Vec3& root) {
  for (int tries = 0; tries < 200; tries++) {
    const float z = random.between(-.75f, 1.f), a = random.between(0, 6.2831853f);
    const float s = std::sqrt(std::max(0.f, 1 - z * z));
    const Vec3 dir{s * std::cos(a), z, s * std::sin(a)};
    float t = 1.6f;
    Vec3 p{};
    for (int i = 0; i < 24; i++) {
      p = kScalpCentre + dir * t;
      const float d = head.distance(p);
      t -= d;
      if (std::fabs(d) < .001f) {
        break;
      }
    }
    if (head.isOnEar(p) || random.uniform() > scalpMask(head.character(), p)) {
      continue;
    }
    root = p - gradient(head, p) * .006f;
    return true;
  }
  return false;
}

void addScalpHair(const Head& head, std::vector<Strand>& out) {
  const Character& c = head.character();
  const Style style = styleOf(c);
  Random random(c.seed);
  struct Guide {
    Vec3 root;
    std::vector<Vec3> points;
    float phase, layer, side;
    float tone;
  };
  std::vector<Guide> guides;
  for (int i = 0; i < style.guides; i++) {
    Vec3 root;
    if (!findRoot(head, random, root)) {
      break;
    }
    const float layer = std::sqrt(random.uniform());
    guides.push_back({root, grow(head, style, root, random, layer), random.between(0, 6.28f), layer,
                      sideOf(head, root), random.normal()});
  }
  // A grid of the roots in the head's coordinates, for the search of the nearest guide.
  constexpr int kCells = 18;
  const auto cell = [&](Vec3 root) {
    const Vec3 p = root;
    const auto index = [](float x) {
      return std::min(kCells - 2, std::max(1, int((x + 1.3f) / .16f)));
    };
    return index(p.x) + kCells * (index(p.y) + kCells * index(p.z));
  };
  std::vector<std::vector<int>> buckets(kCells * kCells * kCells);
  for (size_t i = 0; i < guides.size(); i++) {
    buckets[size_t(cell(guides[i].root))].push_back(int(i));
  }
  for (int i = 0; i < style.strands; i++) {
    Vec3 root;
    if (!findRoot(head, random, root)) {
      break;
    }
    const float side = sideOf(head, root);
    int best = -1;
    float bestDistance = 1e9f;
    for (int dz = -1; dz <= 1; dz++) {
      for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
          for (int g : buckets[size_t(cell(root) + dx + kCells * (dy + kCells * dz))]) {
            const Guide& guide = guides[size_t(g)];
            const float d = length(guide.root - root) + (guide.side == side ? 0.f : 9.f);
            if (d < bestDistance) {
              bestDistance = d;
              best = g;
            }
          }
        }
      }
    }
    if (best < 0) {
      continue;
    }
    const Guide& guide = guides[size_t(best)];
    const float layer = clamp01(guide.layer + .22f * random.normal());
    // Some hairs leave the others.
    const bool isLoose = random.uniform() < style.loose;
    Style mine = style;
    if (isLoose) {
      mine.frizz = style.frizz * 1.6f + .05f;
      mine.length = style.length * random.between(.5f, 1.f);
    }
    // At the hairline hair is short and fine.
    const float edge = scalpMask(c, root);
    mine.length *= mix(random.between(.15f, .8f), 1.f, smoothstep(.15f, .75f, edge));
    std::vector<Vec3> own =
        grow(head, mine, root, random, isLoose ? layer + random.between(.2f, .7f) : layer);
    const float stray = isLoose ? 0.f : random.uniform() < .10f ? .2f : random.between(.5f, 1.f);
    // A curl is a clump whose hairs turn together.
    const bool isCurly = c.hair == Hair::kCurly || c.hair == Hair::kCropped;
    const float phase = guide.phase + (isCurly ? .25f : .5f) * random.normal();
    // A clump has finer ones within.
    const int within = int(random.uniform() * 7);
    const auto part = [&](int axis) { return hash(best, within, axis) - .5f; };
    const Vec3 offset = Vec3{part(1), part(2), part(3)} * (isCurly ? .035f : .075f) +
                        Vec3{random.normal(), random.normal(), random.normal()} * .007f;
    std::vector<Vec3> line;
    const int count = int(std::min(own.size(), guide.points.size()));
    const float end = float(std::min(own.size(), guide.points.size()) - 1) / float(own.size() - 1);
    const int fine = std::max(12, int(count * (style.curlTurns > 4 ? 2.f : 1.f)));
    // Curls turn about each strand. Waves move a whole clump together.
    const bool curls = style.curlTurns > 4;
    const Vec3 along = normalize(guide.points.back() - guide.points.front());
    const Vec3 sway =
        normalize(cross(along, Vec3{std::cos(guide.phase), .3f, std::sin(guide.phase)}));
    Vec3 tangent = along;
    float apart = 0;
    for (int k = 0; k < fine; k++) {
      const float t = float(k) / float(fine - 1);
      Vec3 p = at(own, t * end);
      const Vec3 q =
          at(guide.points, t * float(count - 1) / float(guide.points.size() - 1)) + offset;
      apart = std::max(apart, length(p - q));
      p = mix(p, q, stray * style.clump * smoothstep(.02f, .75f, t));
      if (k > 0) {
        tangent = normalize(p - line.back());
      }
      if (curls) {
        const Vec3 u = normalize(cross(tangent, Vec3{.3f, .5f, .8f})), v = cross(tangent, u);
        const float a = phase + t * style.length * style.curlTurns * 6.28f;
        p = p + (u * std::cos(a) + v * std::sin(a)) * (style.curl * smoothstep(0, .4f, t));
      } else {
        p = p + sway * (style.curl * smoothstep(.12f, .5f, t) *
                        std::sin(guide.phase * 2 + t * style.length * style.curlTurns * 6.28f));
      }
      line.push_back(p);
    }
    // A strand between guides on different sides of the head would cross the face.
    if (apart > .40f && !isLoose) {
      continue;
    }
    Strand s;
    const float tone = std::exp(.13f * guide.tone + .35f * part(4) + .16f * random.normal());
    s.root = c.hairRoot * tone;
    s.tip = c.hairTip * tone;
    if (c.grey > 0 && random.uniform() < mix(.55f, .2f, c.grey)) {
      s.root = s.root * .45f, s.tip = s.tip * .55f;
    }
    s.radius = (c.hair == Hair::kCurly ? .0019f : .0016f) * random.between(.6f, 1.2f) *
               mix(.5f, 1.f, edge) * (isLoose ? .7f : 1.f);
    s.gloss = (isCurly ? .55f : curls ? .25f : 1.f) * random.between(.5f, 1.5f);
    s.taper = .3f;
    s.onSkin = false;
    s.points = std::move(line);
    out.push_back(std::move(s));
  }
}

}  // namespace

std::vector<Strand> growHair(const Head& head) {
  std::vector<Strand> strands;
  addScalpHair(head, strands);
  addFacialHair(head, strands);
  for (Strand& strand : strands) {
    for (Vec3& point : strand.points) {
      point = head.turned(point);
    }
  }
  return strands;
}
