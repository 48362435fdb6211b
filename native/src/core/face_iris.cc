// Finds the irises: discs that are darker than what lies beside them, of the same size in both
// eyes. Where lids cover an iris its colour is that of its visible part at the same distance from
// the centre. Shares without another source were chosen by eye on the default faces and on
// photographs.
#include "core/face_iris.h"

#include <algorithm>
#include <span>

#include "core/face_eyeball.h"

namespace mouthpiece::face {
namespace {

/**
 * Radius of an iris as a share of the distance between the middles of the eyes: 5.9 mm of 63, and
 * what differs between people and with the turn of the head.
 */
constexpr float RADIUS_MIN = .078f, RADIUS_MAX = .118f, RADIUS_STEP = .006f;
/** Where an iris's centre is looked for: from the corners and from the middle, shares. */
constexpr float FROM_CORNER = .2f, FROM_MIDDLE = .35f;
/** Half the width of the edge that is looked for, share of the radius. */
constexpr float EDGE = .14f;
/** A disc with less contrast is none, of 255. */
constexpr float MIN_CONTRAST = 36;
/** An iris of which only one side is visible counts less. */
constexpr float ONE_SIDED = .6f;
/** Weight of the contrast of the whole disc beside that of its edge. */
constexpr float WHOLE = .6f;
/** Radius of a pupil, share of the iris's; how much of its contrast counts, of 255. */
constexpr float PUPIL = .38f, MAX_PUPIL = 60;
constexpr size_t DIRECTIONS = 40;
constexpr int LEAST_SAMPLES = 3;
/** The edge between an iris and the lower lid, of 255 over 2.5 pixels. */
constexpr float STEEP = 18;
/** Columns of an eye in which its centre is looked for. */
constexpr size_t COLUMNS = 25;
/**
 * Eyes look the same way: contrast that a difference between their places costs, for each eye's
 * length beyond what corners found by landmarks differ by.
 */
constexpr float DIFFERENCE = 250, LEAST_DIFFERENCE = .12f;
/** An iris far from the middle is less likely: the same for where it is. */
constexpr float ASIDE = 150, LEAST_ASIDE = .1f;

/**
 * The eye's range: movement of the iris at the ends, in its radii. 0.62 sideways is 18 degrees, as
 * the centre of an eyeball lies two radii behind its iris.
 */
constexpr float RANGE_X = .62f, RANGE_Y = .26f;
/** The least distance of the iris's centre from a corner, share of the eye's length. */
constexpr float LEAST_FROM_CORNER = .27f;

/**
 * How much red light comes from a colour (BT.601): little from a blue iris as from a brown one,
 * much from the white, from skin and from the inner corner.
 */
float red_of(const Colour& colour) {
  return colour.y + .7f * (colour.v - 128);
}

/**
 * How far below the landmarks the iris meets the lower lid: the median over the middle of the eye
 * of where it becomes lighter most steeply. @returns pixels, 0 where nothing is steep
 */
float lower_margin(const EyeView& view) {
  constexpr float ABOVE = 2, BELOW = 4, HALF_STEP = 1.25f;
  const Eye& eye = view.eye();
  std::vector<float> found;
  for (float u = .25f * eye.length; u < .75f * eye.length; u += 1) {
    const float margin = view.lower(u);
    float steepest = STEEP, at = 0;
    for (float d = -ABOVE; d <= BELOW; d += .5f) {
      const float rise =
          red_of(view.at(u, margin + d + HALF_STEP)) - red_of(view.at(u, margin + d - HALF_STEP));
      if (rise > steepest) {
        steepest = rise;
        at = d;
      }
    }
    if (steepest > STEEP) {
      found.push_back(at);
    }
  }
  if (found.size() < LEAST_SAMPLES) {
    return 0;
  }
  const auto middle = found.begin() + ptrdiff_t(found.size() / 2);
  std::nth_element(found.begin(), middle, found.end());
  return *middle;
}

/** The clearest disc of one radius in an eye. */
struct Candidate {
  Point centre{};
  float score = 0;  // contrast, of 255
};

/** The red of what is visible of an eyeball, half a pixel apart, as a table for the search. */
class EyeTable {
 public:
  explicit EyeTable(const EyeView& view) {
    const Eye& eye = view.eye();
    const auto low = std::min_element(eye.upper.begin(), eye.upper.end());
    const auto high = std::max_element(eye.lower.begin(), eye.lower.end());
    top_ = *low;
    width_ = int(2 * eye.length) + 1;
    height_ = std::max(0, int(2 * (*high - *low)) + 1);
    red_.resize(size_t(width_) * size_t(height_), HIDDEN);
    for (int y = 0; y < height_; y++) {
      for (int x = 0; x < width_; x++) {
        const float u = .5f * float(x), v = top_ + .5f * float(y);
        if (view.shows(u, v)) {
          const float red = red_of(view.at(u, v));
          red_[size_t(y) * size_t(width_) + size_t(x)] = red;
          if (!(x & 3) && !(y & 1)) {
            points_.push_back({u, v, red});
          }
        }
      }
    }
  }

  /** @returns the red, or HIDDEN */
  float at(float u, float v) const {
    if (!(u >= 0 && v >= top_ && 2 * u < float(width_) && 2 * (v - top_) < float(height_))) {
      return HIDDEN;
    }
    const auto x = size_t(std::lround(2 * u)), y = size_t(std::lround(2 * (v - top_)));
    return x < size_t(width_) && y < size_t(height_) ? red_[y * size_t(width_) + x] : HIDDEN;
  }

  /**
   * @returns by how much it is lighter outside a circle than inside, all over the eyeball, and
   * by how much the iris is lighter than its pupil
   */
  float whole_contrast(Point centre, float radius) const {
    float sum[3] = {0, 0, 0};
    int count[3] = {0, 0, 0};
    for (const auto& [u, v, red] : points_) {
      const float square =
          ((u - centre.x) * (u - centre.x) + (v - centre.y) * (v - centre.y)) / (radius * radius);
      const int zone = square > 1 ? 2 : (square > PUPIL * PUPIL ? 1 : 0);
      sum[zone] += red;
      count[zone]++;
    }
    const auto mean = [&](int zone) { return sum[zone] / float(std::max(1, count[zone])); };
    const float pupil = count[0] > 0 ? std::clamp(mean(1) - mean(0), 0.f, MAX_PUPIL) : 0;
    return mean(2) - (sum[0] + sum[1]) / float(std::max(1, count[0] + count[1])) + pupil;
  }

  static constexpr float HIDDEN = -1;

 private:
  struct Point3 {
    float u, v, red;
  };
  std::vector<float> red_;
  std::vector<Point3> points_;
  int width_ = 0, height_ = 0;
  float top_ = 0;
};

const std::array<Point, DIRECTIONS>& directions() {
  static const auto all = [] {
    std::array<Point, DIRECTIONS> out{};
    for (size_t i = 0; i < DIRECTIONS; i++) {
      const float angle = 6.2831853f * (float(i) + .5f) / DIRECTIONS;
      out[i] = {std::cos(angle), std::sin(angle)};
    }
    return out;
  }();
  return all;
}

/** @returns by how much it is lighter just outside a circle than just inside, left and right */
float edge_contrast(const EyeTable& table, Point centre, float radius) {
  const float in = (1 - EDGE) * radius, out = (1 + EDGE) * radius;
  float sum[2] = {0, 0};
  int count[2] = {0, 0};
  for (const Point& d : directions()) {
    const float inside = table.at(centre.x + in * d.x, centre.y + in * d.y),
                outside = table.at(centre.x + out * d.x, centre.y + out * d.y);
    if (inside != EyeTable::HIDDEN && outside != EyeTable::HIDDEN) {
      const int side = d.x > 0;
      sum[side] += outside - inside;
      count[side]++;
    }
  }
  const bool left = count[0] >= LEAST_SAMPLES, right = count[1] >= LEAST_SAMPLES;
  const float l = left ? sum[0] / float(count[0]) : 0, r = right ? sum[1] / float(count[1]) : 0;
  return left && right ? .25f * (l + r) + .5f * std::min(l, r) : ONE_SIDED * (l + r);
}

/** @returns the clearest disc in each of COLUMNS columns, from the left to the right */
std::array<Candidate, COLUMNS> find_discs(const EyeView& view, const EyeTable& table,
                                          float radius) {
  const float length = view.eye().length, step = std::max(.5f, .03f * length);
  std::array<Candidate, COLUMNS> best;
  for (size_t i = 0; i < COLUMNS; i++) {
    const float share = mix(FROM_CORNER, 1 - FROM_CORNER, float(i) / (COLUMNS - 1)),
                unlikely = ASIDE * std::max(0.f, std::abs(share - .5f) - LEAST_ASIDE),
                u = share * length, top = view.upper(u), bottom = view.lower(u),
                middle = .5f * (top + bottom), reach = FROM_MIDDLE * (bottom - top);
    for (float v = middle - reach; v <= middle + reach; v += step) {
      const float score = edge_contrast(table, {u, v}, radius) +
                          WHOLE * table.whole_contrast({u, v}, radius) - unlikely;
      if (score > best[i].score) {
        best[i] = {{u, v}, score};
      }
    }
  }
  return best;
}

}  // namespace

void build_irises(Model& model) {
  const EyeView views[2] = {{model.asset, model.eyes[0]}, {model.asset, model.eyes[1]}};
  for (size_t side = 0; side < 2; side++) {
    model.eyes[side].iris.below = lower_margin(views[side]);
  }
  const EyeTable tables[2] = {EyeTable(views[0]), EyeTable(views[1])};
  const Point middles[2] = {views[0].to_picture(.5f * model.eyes[0].length, 0),
                            views[1].to_picture(.5f * model.eyes[1].length, 0)};
  const float apart = std::hypot(middles[1].x - middles[0].x, middles[1].y - middles[0].y);
  Candidate found[2];
  float radius = 0, best = 0;
  for (float share = RADIUS_MIN; share <= RADIUS_MAX; share += RADIUS_STEP) {
    const auto left = find_discs(views[0], tables[0], share * apart),
               right = find_discs(views[1], tables[1], share * apart);
    for (size_t i = 0; i < COLUMNS; i++) {
      for (size_t j = 0; j < COLUMNS; j++) {
        const float differ = std::abs(left[i].centre.x / model.eyes[0].length -
                                      right[j].centre.x / model.eyes[1].length),
                    score = left[i].score + right[j].score -
                            DIFFERENCE * std::max(0.f, differ - LEAST_DIFFERENCE);
        if (score > best) {
          best = score;
          found[0] = left[i];
          found[1] = right[j];
          radius = share * apart;
        }
      }
    }
  }
  if (std::min(found[0].score, found[1].score) < MIN_CONTRAST) {
    return;
  }
  White whites[2];
  for (size_t side = 0; side < 2; side++) {
    Iris& iris = model.eyes[side].iris;
    iris.centre = found[side].centre;
    iris.radius = radius;
    iris.disc = iris_disc(model.asset, views[side], iris);
    whites[side] = white_beside(views[side], iris);
  }
  for (size_t side = 0; side < 2; side++) {
    Iris& iris = model.eyes[side].iris;
    const bool is_seen = whites[side].samples >= std::max(1, whites[1 - side].samples / 4);
    iris.white = iris_white(model.asset, views[side], iris, whites[is_seen ? side : 1 - side]);
  }
}

Point iris_shift(const std::array<Eye, 2>& eyes, float x, float y) {
  const float radius = eyes[0].iris.radius;
  float along = x * RANGE_X * radius;
  for (const Eye& eye : eyes) {
    const float least = LEAST_FROM_CORNER * eye.length - eye.iris.centre.x,
                most = (1 - LEAST_FROM_CORNER) * eye.length - eye.iris.centre.x;
    // An iris goes from a corner as far as there is white beside it. In a glance to the side there
    // are lashes and shade: white that is drawn between them and the iris is a bright ring.
    const float left = std::max(0.f, eye.iris.centre.x - radius),
                right = std::max(0.f, eye.length - eye.iris.centre.x - radius);
    along = std::clamp(along, std::max(std::min(0.f, least), -right),
                       std::min(std::max(0.f, most), left));
  }
  // Between the outer corners, as the axes of the eyes are slanted.
  const Eye& other = eyes[1];
  const Point axis{other.corner.x + other.length * other.axis.x - eyes[0].corner.x,
                   other.corner.y + other.length * other.axis.y - eyes[0].corner.y};
  const float down = y * RANGE_Y * radius, length = std::max(1.f, std::hypot(axis.x, axis.y)),
              c = axis.x / length, s = axis.y / length;
  return {c * along - s * down, s * along + c * down};
}

}  // namespace mouthpiece::face
