// The room behind the head, far out of focus: it is painted sharp, in a few flat shapes, and then
// each point is spread over a disc, as a lens does. u is to the right and v up, -1 to 1.
#include "backdrop.h"

namespace {

/** Half the height of the picture is 1. */
constexpr float kDisc = .105f, kHalf = 1.25f;
/** How much of the shapes is seen before the wall: the room must stay behind the face. */
constexpr float kContrast = .78f;

/** @returns 1 within a to b */
float within(float x, float a, float b) {
  return x > a && x < b ? 1.f : 0.f;
}

/** A window with bars; trees below the sky. @param x from its middle */
void addWindow(float x, float v, float seed, Vec3& colour) {
  if (std::fabs(x) > .42f || v < -.55f) {
    return;
  }
  const float leaves = noise({x * 5 + seed, v * 5, 1}) + .5f * noise({x * 13, v * 13, seed});
  const float tree = smoothstep(.55f, .85f, leaves + .55f * (.15f - v));
  const Vec3 sky = mix(Vec3{1.15f, 1.16f, 1.15f}, Vec3{.92f, 1.06f, 1.22f}, clamp01(v));
  const Vec3 green = Vec3{.36f, .47f, .25f} * (.6f + .8f * noise({x * 21, v * 21, seed}));
  const bool isBar =
      std::fabs(x) > .385f || std::fabs(x) < .016f || v < -.51f || std::fabs(v - .28f) < .016f;
  colour = isBar ? Vec3{.62f, .60f, .57f} : mix(sky, green, tree);
}

/** Cloth that hangs beside a window, light through its folds. */
void addCurtain(float x, float v, float seed, Vec3& colour) {
  const float edge = .16f + .02f * std::sin(3 * v + seed);
  const float fold = noise({x * 17 + .3f * v, .4f * v, seed});
  if (std::fabs(x) < edge) {
    colour = mix(colour, Vec3{.78f, .73f, .66f}, .8f) * (.62f + .62f * fold);
  }
}

/** Boards with books and a few other things. */
void addShelf(float x, float v, float seed, Vec3& colour) {
  if (std::fabs(x) > .40f || v < -1.1f || v > .88f) {
    return;
  }
  const float row = (v + 1.1f) / .33f, level = std::floor(row), up = row - level;
  const float slot = std::floor((x + .4f) / .052f);
  const auto random = [&](int what) { return hash(int(slot), int(level) + int(seed), what); };
  const bool isBoard = up < .10f || std::fabs(x) > .375f;
  const bool isBook = random(1) > .22f && up < .45f + .42f * random(2);
  const Vec3 board{.36f, .26f, .18f};
  const Vec3 hue = mix(Vec3{.42f, .25f, .17f}, Vec3{.24f, .30f, .33f}, random(3));
  const Vec3 book = mix(hue, Vec3{.62f, .57f, .48f}, sq(random(4))) * (.55f + .7f * random(5));
  colour = isBoard ? board : isBook ? book : mix(colour * .42f, board * .5f, .4f);
}

/** A pot with long leaves. @param x, v from where they leave it */
void addPlant(float x, float v, float seed, Vec3& colour) {
  if (v < 0) {
    if (std::fabs(x) < .13f + .06f * v && v > -.32f) {
      colour = Vec3{.52f, .42f, .34f} * (1 + 1.5f * x);
    }
    return;
  }
  for (int i = 0; i < 26; i++) {
    const float a = 2.3f * (hash(i, int(seed), 1) - .5f), far = .22f + .62f * hash(i, int(seed), 2);
    const float along = x * std::sin(a) + v * std::cos(a);
    const float across = x * std::cos(a) - v * std::sin(a) - .35f * std::sin(a) * sq(along);
    const float t = along / far;
    if (t > .2f && t < 1 && std::fabs(across) < .065f * std::sin(3.14f * std::pow(t, 1.5f))) {
      const float shade = .5f + .9f * hash(i, int(seed), 3);
      colour = Vec3{.12f, .175f, .09f} * shade;
    }
  }
}

/** A lampshade, and its light on the wall. */
void addLamp(float x, float v, Vec3& colour) {
  colour = colour + Vec3{.50f, .33f, .16f} * std::exp(-(sq(x / .45f) + sq(v / .50f)));
  if (std::fabs(x) < .17f - .16f * v && std::fabs(v) < .15f) {
    colour = {1.75f, 1.30f, .82f};
  } else if (std::fabs(x) < .02f && v < 0) {
    colour = {.20f, .16f, .12f};
  }
}

/** A picture on the wall. */
void addPicture(float x, float v, float seed, Vec3& colour) {
  if (std::fabs(x) > .25f || std::fabs(v) > .33f) {
    return;
  }
  const bool isFrame = std::fabs(x) > .225f || std::fabs(v) > .305f;
  const bool isMat = std::fabs(x) > .15f || std::fabs(v) > .22f;
  const float paint = noise({x * 6 + seed, v * 6, 2});
  colour = isFrame ? Vec3{.16f, .12f, .09f}
           : isMat ? Vec3{.80f, .77f, .72f}
                   : mix(Vec3{.25f, .34f, .40f}, Vec3{.66f, .46f, .30f}, paint);
}

}  // namespace

Backdrop::Backdrop(const Character& character) : c_(character) {
  std::vector<Vec3> sharp(size_t(kSize) * kSize);
  const auto place = [](int i) { return (float(i) / (kSize - 1) * 2 - 1) * kHalf; };
  for (int y = 0; y < kSize; y++) {
    for (int x = 0; x < kSize; x++) {
      sharp[size_t(y) * kSize + size_t(x)] = paint(place(x), place(y));
    }
  }
  spread(sharp);
}

Vec3 Backdrop::wall(float u, float v) const {
  // Brighter on the side of the key lamp, with a faint unevenness of plaster.
  const float bright = .60f + .22f * clampTo(u * c_.lightSide, -1, 1) + .06f * v;
  const Vec3 at{u * .9f + float(c_.seed), v * .5f, 3};
  return mix(c_.backdropDark, c_.backdropLight, bright) * (1 + .14f * (fbm(at) - .44f));
}

Vec3 Backdrop::paint(float u, float v) const {
  const Room& r = c_.room;
  const auto seed = float(c_.seed);
  const Vec3 plain = wall(u, v);
  Vec3 colour = plain;
  if (r.edge != 0) {
    // The corner of the room: the wall beyond it has less light.
    colour = colour * (1 - .30f * within(u * std::copysign(1.f, r.edge), std::fabs(r.edge), 9));
  }
  if (r.picture != 0) {
    addPicture(u - r.picture, v - .30f, seed, colour);
  }
  if (r.window != 0) {
    addWindow(u - r.window, v, seed, colour);
    // The curtain hangs at its side towards the head.
    addCurtain(u - r.window + std::copysign(.36f, r.window), v, seed, colour);
  }
  if (r.shelf != 0) {
    addShelf(u - r.shelf, v, seed, colour);
  }
  if (r.lamp != 0) {
    addLamp(u - r.lamp, v - .18f, colour);
  }
  if (r.plant != 0) {
    addPlant(u - r.plant, v + .55f, seed, colour);
  }
  // Lights of a far part of the room: each becomes a disc.
  for (int i = 0; i < r.lights; i++) {
    const float x = mix(.42f, 1.15f, hash(i, int(c_.seed), 8)) * c_.lightSide,
                y = mix(.05f, .95f, hash(i, int(c_.seed), 9));
    if (sq(u + x) + sq(v - y) < sq(.012f)) {
      const float warm = hash(i, int(c_.seed), 10);
      colour = mix(Vec3{1.f, .50f, .17f}, Vec3{1.f, .72f, .42f}, warm) * 26.f;
    }
  }
  return mix(plain, colour, kContrast);
}

void Backdrop::spread(const std::vector<Vec3>& sharp) {
  blurred_.resize(sharp.size());
  const int reach = int(kDisc / kHalf * .5f * kSize);
  // Sums along rows make a disc as cheap as its height.
  std::vector<Vec3> sums(size_t(kSize) * (kSize + 1), Vec3{0, 0, 0});
  for (size_t y = 0; y < kSize; y++) {
    for (size_t x = 0; x < kSize; x++) {
      sums[y * (kSize + 1) + x + 1] = sums[y * (kSize + 1) + x] + sharp[y * kSize + x];
    }
  }
  for (int y = 0; y < kSize; y++) {
    for (int x = 0; x < kSize; x++) {
      Vec3 sum{0, 0, 0};
      int count = 0;
      for (int j = std::max(0, y - reach); j <= std::min(kSize - 1, y + reach); j++) {
        const int half = int(std::sqrt(float(reach * reach - (j - y) * (j - y))));
        const int from = std::max(0, x - half), to = std::min(kSize, x + half + 1);
        const size_t row = size_t(j) * (kSize + 1);
        sum = sum + sums[row + size_t(to)] - sums[row + size_t(from)];
        count += to - from;
      }
      blurred_[size_t(y) * kSize + size_t(x)] = sum * (1 / float(count));
    }
  }
}

Vec3 Backdrop::at(float u, float v) const {
  const auto place = [](float x) {
    return clampTo((x / kHalf + 1) * .5f * (kSize - 1), 0, kSize - 1.01f);
  };
  const float x = place(u), y = place(v);
  const auto i = size_t(x), j = size_t(y);
  const Vec3* row = blurred_.data() + j * kSize + i;
  const float fx = x - float(i);
  return mix(mix(row[0], row[1], fx), mix(row[kSize], row[kSize + 1], fx), y - float(j));
}
