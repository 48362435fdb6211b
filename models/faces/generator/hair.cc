// Grows straight and wavy hair: a direction field combs guides, and strands follow the nearest.
// Distances in decimetres; amounts were chosen by eye.
#include "hair.h"

namespace {

constexpr float kTurn = 6.2831853f;

struct Style {
  int strands, guides;
  float length, lengthVary;
  float lift, stiffness, comb, gravity, frizz;
  /** Distance of the outermost strands from the skull. */
  float volume;
  /** How much strands follow their guide. */
  float clump;
  /** Waves: half their height, and their length. */
  float wave, waveLength;
  /** Of a strand at its root. */
  float radius;
  /** Share of hairs that leave their clump. */
  float loose = .015f;
  /** How far finer clumps lie from their guide, and how much ends gather to a point, 0 to 1. */
  float spread = .075f, gather = .6f;
  /** How far below the highest ends the lowest are, and where those are by the cut. */
  float ends = .30f, lowest = 0;
  /** Guides of a lock, and how much they gather in it. */
  int perLock = 30;
  float lock = .5f;
};

Style styleOf(const Character& c) {
  switch (c.hair) {
    case Hair::kCrop:
      return {190000, 3000, .12f,   .45f, .55f, .75f, .45f, .02f, .10f, .035f, .08f,
              .0f,    .50f, .0008f, .05f, .02f, .1f,  .30f, 0,    20,   .05f};
    case Hair::kPartedBob:
      return {170000, 3000, 2.2f,   .06f,  .38f, .80f, .22f, .10f, .045f, .10f, .50f,
              .030f,  .62f, .0011f, .070f, .09f, .3f,  .36f, 0,    30,    .45f};
    case Hair::kLong:
      return {200000, 4200, 3.1f,   .06f,  .24f, .80f, .22f, .10f,  .040f, .085f, .70f,
              .058f,  .90f, .0010f, .110f, .13f, .14f, .95f, -.22f, 30,    .50f};
    default:
      return {190000, 3000, 1.9f,   .06f,  .28f,  .80f, .22f, .11f, .045f, .085f, .62f,
              .040f,  .9f,  .0010f, .080f, .075f, .4f,  .36f, 0,    36,    .5f};
  }
}

struct Guide {
  Vec3 root;
  std::vector<Vec3> points;
  float phase, layer, side, tone;
  /** Height of its waves by those of the style, and their length. */
  float wave = 1, waveLength = 1;
};

bool isFringe(const Character& c, Vec3 p) {
  return c.hair == Hair::kBob &&
         p.z > .20f + .30f * (noise(p * 70) - .5f) + .22f * (noise(p * 9) - .5f) &&
         std::fabs(p.x) < .42f + .10f * (noise(p * 50) - .5f);
}

/** @returns the height where a hair of the fringe ends: by lock, lower at its sides */
float fringeEnd(Vec3 root, Random& random) {
  const float lower = .40f * smoothstep(.20f, .48f, std::fabs(root.x));
  const float lock = noise({root.x * 12, root.z * 2, 4}), fine = noise({root.x * 45, root.z, 8});
  return .150f - lower + .24f * lock + .08f * fine + .13f * sq(random.uniform());
}

/** @returns how far the ends of a hair of the fringe lie aside: between locks skin is seen */
float towardsLock(Vec3 root) {
  const auto lock = [&](float x) { return noise({x * 15, root.z * 1.5f, 2}); };
  constexpr float kStep = .008f;
  const float slope = (lock(root.x + kStep) - lock(root.x - kStep)) / (2 * kStep);
  return clampTo(.012f * slope, -.042f, .042f);
}

/**
 * @returns 1 or -1 for the side of the parting, 0 in the fringe. A strand stays on its root's side.
 */
float sideOf(const Head& head, Vec3 root) {
  const Character& c = head.character();
  if (isFringe(c, root)) {
    return 0;
  }
  // The parting bends, and single hairs cross it. Behind the crown there is none.
  const float bent = .05f * (noise(root * 4) - .5f) + .03f * (noise(root * 17) - .5f) +
                     .02f * (noise(root * 160) - .5f);
  const float mixed = 1.1f * smoothstep(.42f, .02f, root.z) *
                      (.6f * noise(root * 9) + .4f * noise(root * 60) - .5f);
  return root.x + bent + mixed > c.parting * smoothstep(-.5f, .3f, root.z) ? 1.f : -1.f;
}

/** @returns the height where hair is cut, for hair that falls to one */
float cutOf(const Head& head, Vec3 root) {
  const Character& c = head.character();
  const float uneven = noise(root * 11) - .5f, fine = noise(root * 90);
  if (c.hair == Hair::kLong) {
    // Layers: those above are shorter, and some locks frame the face.
    const float layer = .28f * smoothstep(.55f, 1.05f, root.y) * noise(root * 6 + Vec3{5, 5, 5});
    const float frame =
        smoothstep(.46f, .58f, noise(root * 8 + Vec3{3, 0, 0})) * smoothstep(.22f, .45f, root.z);
    return c.hairFall + layer + .75f * frame * noise(root * 8) + .34f * uneven - .22f * fine;
  }
  const float layer = .45f * smoothstep(.45f, 1.f, root.y) * noise(root * 7);
  return c.hairFall + .6f * layer + .20f * uneven - .14f * fine;
}

/** @returns the direction of hair at a point of the scalp, in the head's coordinates */
Vec3 combField(const Head& head, Vec3 p, float side) {
  const Character& c = head.character();
  switch (c.hair) {
    case Hair::kCrop: {
      // Forward on top, down at the sides.
      const float top = smoothstep(.30f, .70f, p.y - head.landmarks().earTop);
      const float bend = noise(p * 3.5f) - .5f;
      return normalize(mix(Vec3{p.x * .3f, -1.f, .15f}, Vec3{.35f + .4f * bend, -.1f, .7f}, top));
    }
    case Hair::kLong:
    case Hair::kPartedBob:
    case Hair::kBob: {
      if (side == 0) {
        return normalize({p.x * 1.1f, -.55f, 1.f});
      }
      // From the parting to the side, from the crown back, then down behind the cheekbone.
      const float back = c.hair == Hair::kBob ? -.25f : -.55f;
      const float off = smoothstep(.62f, .35f, std::fabs(p.x)) * smoothstep(-.1f, .15f, p.z);
      const Vec3 across =
          mix(Vec3{side * .55f, -.05f, -1.f}, Vec3{side, .02f, back}, smoothstep(-.15f, .30f, p.z));
      return normalize(mix(Vec3{side * .45f, -1.f, -.25f}, across, off));
    }
    default:
      return normalize({p.x * .3f, -.8f, -.8f});
  }
}

/** Grows one strand from its root. @param layer 0 at the skull, 1 at the outside of the hair */
std::vector<Vec3> grow(const Head& head, const Style& style, Vec3 root, Random& random,
                       float layer) {
  const Character& c = head.character();
  const int steps = style.length > .9f ? 46 : 30;
  const float side = sideOf(head, root), share = hairLength(head, root);
  const float wanted =
      style.length * (1 + style.lengthVary * random.normal() * .5f) * c.hairAmount * share;
  Vec3 p = root, n = head.away(root);
  Vec3 dir = normalize(n * style.lift + combField(head, root, side) * .6f +
                       scattered(random) * style.frizz);
  std::vector<Vec3> points{p};
  // The fringe ends above the brows, whatever the length of its strands.
  const bool isInFringe = isFringe(c, root);
  const bool isInFront = root.z + .3f * (noise(root * 2.5f) - .5f) > .02f && side != c.hairBehind;
  const bool falling = style.length > .9f && !isInFringe;
  const float end = fringeEnd(root, random);
  const float cut =
      cutOf(head, root) + style.ends * std::pow(random.uniform(), 1.2f) + style.lowest;
  // Short hair is flatter where the skull turns to the side.
  const float volume = style.volume * share *
                       (falling ? 1.f : mix(1.f, .3f, smoothstep(.2f, .5f, std::fabs(root.x))));
  const float seg = wanted / steps;
  for (int i = 0; i < steps; i++) {
    const float t = float(i) / steps;
    const float fall =
        isInFringe ? .30f : style.gravity * (falling ? 1 + 2.5f * smoothstep(.5f, -.1f, p.y) : 1.f);
    // Hair on the skull follows the comb field. Below the skull it hangs.
    const float hold = falling ? smoothstep(-.05f, .45f, p.y) : 1 - .8f * t;
    dir = normalize(dir * style.stiffness + combField(head, p, side) * (style.comb * hold) +
                    Vec3{0, -fall, 0} + scattered(random) * (style.frizz * .25f));
    p = p + dir * seg;
    const float keep = layer * volume * smoothstep(0.f, falling ? .10f : .22f, t + .04f) *
                           (1 - (falling ? .35f * t : 0.f)) +
                       std::min(.012f, .3f * wanted * t);
    // Below the neckline hair lies on cloth.
    const float d = head.distance(p) - .085f * smoothstep(-.95f, -1.25f, p.y);
    if (falling && p.y < -.25f) {
      // Past the neck hair goes in front of the shoulder or behind it, not along its top.
      p.z += (isInFront ? .013f : -.030f) * smoothstep(-.25f, -.70f, p.y);
    }
    if (falling && p.y < -.10f && p.y > -1.4f) {
      // Locks spread over the shoulder.
      p.x += side * .022f * (noise(root * 4.5f + Vec3{1, 6, 2}) - (isInFront ? .52f : .35f));
    }
    if (d < keep) {
      Vec3 g = head.away(p);
      if (falling && p.y < -.80f) {
        g = normalize(Vec3{g.x * .3f, g.y * .12f, isInFront ? std::max(g.z, .25f) : -.6f});
      }
      p = p + g * (keep - d);
      dir = normalize(dir - g * std::min(0.f, dot(dir, g)) * .9f);
      n = g;
    }
    // Long hair stays beside the face.
    if (falling && p.z > -.05f && p.y < .70f) {
      const float edge = mix(.50f, .60f, smoothstep(.55f, .15f, p.y)) -
                         (c.hair == Hair::kLong ? .045f : .020f) -
                         .16f * smoothstep(-.50f, -1.0f, p.y) + .06f * layer -
                         .10f * noise(root * 5 + Vec3{0, 2, 7});
      const float inside = edge - side * p.x;
      if (inside > 0) {
        p.x += side * inside * .45f;
        p.z -= inside * .10f;
        dir = normalize(dir + Vec3{side * inside * .8f, 0, 0});
      }
    }
    points.push_back(p);
    if (isInFringe && p.y < end) {
      break;
    }
    if (falling && p.y < cut) {
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

/** Guides by the cell of their roots, to search the nearest. */
class Guides {
 public:
  Guides(const Head& head, const Style& style, Random& random) : cells_(kCells * kCells * kCells) {
    for (int i = 0; i < style.guides; i++) {
      Guide g;
      if (!findRoot(head, random, g.root)) {
        break;
      }
      // Locks lie over each other, so that there is shadow between them.
      const float over =
          smoothstep(.3f, .7f, noise({g.root.x * 2.5f, g.root.y * 2.5f, g.root.z * 10}));
      g.layer = .6f * std::sqrt(random.uniform()) + .55f * over;
      g.points = grow(head, style, g.root, random, g.layer);
      // Neighbours wave together.
      g.phase = kTurn * 2.2f * noise(g.root * 2.1f) + .5f * random.normal();
      g.side = sideOf(head, g.root);
      g.tone = random.normal();
      cells_[size_t(cellOf(g.root))].push_back(int(all_.size()));
      all_.push_back(std::move(g));
    }
    formLocks(style, random);
  }

  /** @returns the nearest on that side, or null; its number */
  const Guide* nearest(Vec3 root, float side, int& number) const {
    const Guide* best = nullptr;
    float least = 1e9f;
    for (int dz = -1; dz <= 1; dz++) {
      for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
          for (const int g : cells_[size_t(cellOf(root) + dx + kCells * (dy + kCells * dz))]) {
            const Guide& guide = all_[size_t(g)];
            const float d = length(guide.root - root) + (guide.side == side ? 0.f : 9.f);
            if (d < least) {
              least = d, best = &guide, number = g;
            }
          }
        }
      }
    }
    return best;
  }

 private:
  static constexpr int kCells = 18;
  static int cellOf(Vec3 p) {
    const auto index = [](float x) {
      return std::min(kCells - 2, std::max(1, int((x + 1.3f) / .16f)));
    };
    return index(p.x) + kCells * (index(p.y) + kCells * index(p.z));
  }
  /** Neighbours gather in locks towards their ends. A lock waves, and has a colour, of its own. */
  void formLocks(const Style& style, Random& random) {
    std::vector<Guide> leaders;
    for (size_t i = 0; i < all_.size(); i += size_t(style.perLock)) {
      leaders.push_back(all_[i]);
      leaders.back().phase = random.between(0, kTurn);
      leaders.back().wave = random.between(.45f, 1.35f);
      leaders.back().waveLength = random.between(.8f, 1.25f);
    }
    for (Guide& g : all_) {
      const auto far = [&](const Guide& a) {
        return length(a.root - g.root) + (a.side == g.side ? 0.f : 9.f);
      };
      const Guide& first =
          *std::min_element(leaders.begin(), leaders.end(),
                            [&](const Guide& a, const Guide& b) { return far(a) < far(b); });
      for (size_t k = 0; k < g.points.size() && first.side == g.side; k++) {
        const float t = float(k) / float(g.points.size() - 1);
        g.points[k] = mix(g.points[k], at(first.points, t), style.lock * smoothstep(.12f, .85f, t));
      }
      g.phase = first.phase + .3f * random.normal();
      g.wave = first.wave, g.waveLength = first.waveLength;
      g.tone = .8f * first.tone + .5f * g.tone;
    }
  }
  std::vector<Guide> all_;
  std::vector<std::vector<int>> cells_;
};

/** Hair that hangs is narrower towards its ends: a bob turns in below the jaw, long hair tapers. */
Vec3 towardsEnds(const Character& c, Vec3 p, float side) {
  const bool isLong = c.hair == Hair::kLong;
  const float low = smoothstep(isLong ? -.55f : -.10f, c.hairFall + (isLong ? .1f : 0.f), p.y);
  const float middle = isLong ? .57f : .54f, out = side * p.x - middle;
  const float turn = isLong ? .20f : c.hair == Hair::kBob ? .58f : .40f;
  p.x = side * (middle + out * (1 - turn * low));
  return p;
}

/** Adds one strand that follows its guide. */
void addStrand(const Head& head, const Style& style, const Guides& guides, Vec3 root,
               Random& random, std::vector<Strand>& out) {
  const Character& c = head.character();
  int number = 0;
  const Guide* guide = guides.nearest(root, sideOf(head, root), number);
  if (!guide) {
    return;
  }
  const bool isOfFringe = guide->side == 0;
  if (isOfFringe && random.uniform() < .45f) {
    return;  // so that the forehead is seen through it
  }
  const float aside = isOfFringe ? towardsLock(root) : 0.f;
  const float layer = clamp01(guide->layer + .22f * random.normal());
  const bool isLoose = random.uniform() < style.loose;
  Style mine = style;
  if (isLoose) {
    mine.frizz = style.frizz * 1.6f + .05f;
    mine.length = style.length * random.between(.5f, 1.f);
  }
  // At the hairline hair is short and fine.
  const float inside = smoothstep(-.02f, .14f, insideHairline(head, root));
  mine.length *= mix(random.between(.12f, .6f), 1.f, inside);
  const std::vector<Vec3> own =
      grow(head, mine, root, random,
           isLoose ? layer + random.between(.05f, .4f) : layer * mix(.3f, 1.f, inside));
  const float stray = isLoose ? 0.f : random.uniform() < .10f ? .2f : random.between(.5f, 1.f);
  // A clump has finer ones within.
  const int within = int(random.uniform() * 11);
  const auto part = [&](int axis) { return hash(number, within, axis) - .5f; };
  const float spread = std::min(style.spread, .25f * style.length * hairLength(head, root));
  const Vec3 offset = Vec3{part(1), part(2), part(3)} * spread + scattered(random) * (.1f * spread);
  const float phase = guide->phase + .9f * part(5) + .22f * random.normal();
  const size_t count = std::min(own.size(), guide->points.size());
  const float total = mine.length * c.hairAmount * hairLength(head, root) * float(own.size() - 1) /
                      float(style.length > .9f ? 46 : 30);
  const bool falls = style.length > .9f && guide->side != 0;
  const int fine = std::max(12, int(count));
  // Locks beside the face hang at different distances from it.
  const float beside =
      (c.hair == Hair::kLong ? .52f : .57f) - .13f * noise(guide->root * 5 + Vec3{0, 2, 7});
  // Locks of long hair end in points. Hair that is cut to one height stays apart.
  const float gather = c.hair == Hair::kBob && guide->side != 0 ? .3f : style.gather;
  Strand s;
  float apart = 0;
  for (int k = 0; k < fine; k++) {
    const float t = float(k) / float(fine - 1), reach = t * float(count - 1);
    Vec3 p = at(own, reach / float(own.size() - 1));
    const Vec3 q = at(guide->points, reach / float(guide->points.size() - 1)) +
                   offset * (1 - (falls ? gather * smoothstep(.6f, 1.f, t) : 0.f));
    apart = std::max(apart, length(p - q));
    p = mix(p, q,
            stray * std::min(1.f, style.clump * smoothstep(.02f, .75f, t) +
                                      .58f * gather * smoothstep(.7f, 1.f, t)));
    if (k > 0) {
      // Waves lie across the strand, mostly along the head.
      const Vec3 along = normalize(p - s.points.back());
      const Vec3 out3 = normalize(Vec3{p.x, .3f, p.z + .1f}), u = normalize(cross(along, out3));
      // Locks that hang side by side wave alike, whatever the way of each from its root.
      const float waveLength = style.waveLength * guide->waveLength;
      const float a = phase + kTurn * (falls ? p.y / waveLength + .5f * noise(p * 1.9f)
                                             : t * total / waveLength);
      const float much = falls ? smoothstep(.55f, -.35f, p.y) : smoothstep(.05f, .55f, t);
      p = p + (u * std::sin(a) + out3 * (.7f * std::cos(a))) *
                  (style.wave * guide->wave * much * std::min(1.f, total / waveLength));
      if (falls && p.z > -.05f && p.y < .45f && p.y > -1.f) {
        p.x += guide->side * std::max(0.f, beside - guide->side * p.x) * .8f;
      }
    }
    p.x += aside * smoothstep(.25f, 1.f, t);
    if (falls) {
      p = towardsEnds(c, p, guide->side);
    }
    s.points.push_back(p);
  }
  // A strand between guides on different sides of the head would cross the face.
  if (apart > .40f && !isLoose) {
    return;
  }
  const float tone = std::exp(.20f * guide->tone + .28f * part(4) + .15f * random.normal());
  s.root = c.hairRoot * tone;
  s.tip = c.hairTip * tone;
  if (c.grey > 0 && random.uniform() < mix(.55f, .2f, c.grey)) {
    s.root = s.root * .6f, s.tip = s.tip * .7f;
  }
  s.radius =
      style.radius * random.between(.6f, 1.2f) * mix(.45f, 1.f, inside) * (isLoose ? .7f : 1.f);
  // Locks that lie differently shine differently.
  s.taper = .3f;
  s.onSkin = false;
  out.push_back(std::move(s));
}

}  // namespace

std::vector<Strand> growHair(const Head& head) {
  const Character& c = head.character();
  std::vector<Strand> strands;
  if (c.hair == Hair::kAfro || c.hair == Hair::kCurls) {
    addCoils(head, strands);
  } else {
    const Style style = styleOf(c);
    Random random(c.seed);
    const Guides guides(head, style, random);
    Vec3 root;
    for (int i = 0; i < style.strands && findRoot(head, random, root); i++) {
      addStrand(head, style, guides, root, random, strands);
    }
  }
  addFlyaways(head, strands);
  addHairline(head, strands);
  addFacialHair(head, strands);
  for (Strand& strand : strands) {
    for (Vec3& point : strand.points) {
      point = head.turned(point);
    }
  }
  return strands;
}
