// Builds the renderer's model from an asset (see face_model.h). Sizes without another source were
// chosen by eye on the default faces, in units of the face's height.
#include "core/face_model.h"

#include <algorithm>
#include <numbers>
#include <span>
#include <stdexcept>

#include "core/face_breath.h"
#include "core/face_expression.h"
#include "core/face_outline.h"
#include "core/face_vertices.h"

namespace mouthpiece::face {
namespace {

/**
 * The contours extend by this many half widths of the mouth, and beyond the sides of the face by
 * this share of their distance: there the jaw no longer moves the skin.
 */
constexpr float REACH = 2.7f, SIDES = 1.2f;
/**
 * The lips part over this share of the way from the inner landmarks of the corners, which lie at
 * some 80 % of the width that is seen, to the outer ones.
 */
constexpr float CORNER = .85f;
/**
 * Width of rounded lips, distances between the outer corners of the eyes: a mouth that is wide at
 * rest, as one in a smile, becomes narrower by a larger share. People's narrowest are .46 to .59
 * (docs/motion.md), measured between the outer landmarks.
 */
constexpr float ROUNDED_WIDTH = .46f;
/** Beyond this share the folds of a smile would bend round the lips. */
constexpr float MOST_NARROWING = .34f;
/**
 * How far the lips' middle is from the middle between the corners, half widths, when a head counts
 * as turned: not yet, and fully. Faces seen from ahead have up to .06.
 */
constexpr std::array<float, 2> TURNED{.08f, .2f};
/**
 * How far below the line between the corners of the mouth the base of the nose may be, share of the
 * chin's distance from it: the corners of a smile reach the nose of a head that is bowed.
 */
constexpr float LOWEST_NOSE = .25f;
/** Outlines of the face at the height of the mouth, left and right in the picture. */
constexpr std::array<int, 2> JAW_SIDES{58, 288};

class Builder {
 public:
  explicit Builder(const Asset& asset) : asset_(asset) { model_.asset = asset; }

  Model build() {
    frame();
    contours();
    measure_softness(model_);
    model_.grade = measure_grade(model_);
    sharpen();
    box();
    weights();
    build_breath(model_);
    depth();
    build_expression(model_);
    lags();
    moving();
    build_teeth(model_);
    build_relief(model_);
    build_eyes(model_);
    return std::move(model_);
  }

 private:
  void frame() {
    const Point a = asset_.landmark(EYE_LEFT), b = asset_.landmark(EYE_RIGHT);
    const Point left = asset_.landmark(MOUTH_LEFT), right = asset_.landmark(MOUTH_RIGHT);
    const float eyes = distance(a, b);
    model_.face_height = distance(asset_.landmark(BRIDGE), asset_.landmark(CHIN));
    const float least = 16, most = float(std::max(asset_.width, asset_.height));
    const bool plausible = eyes > least && eyes < most && model_.face_height > least &&
                           model_.face_height < most && distance(left, right) > least / 2 &&
                           distance(left, right) < most;
    if (!plausible) {
      throw std::runtime_error("not a usable face asset: its landmarks do not make a face");
    }
    model_.frame = {(left.x + right.x) / 2, (left.y + right.y) / 2, (b.x - a.x) / eyes,
                    (b.y - a.y) / eyes};
    const Point l = model_.frame.to_local(left.x, left.y),
                r = model_.frame.to_local(right.x, right.y), chin = local(CHIN),
                nose = local(NOSE_BASE);
    if (!(l.x < -4 && r.x > 4 && chin.y > 8 && nose.y < LOWEST_NOSE * chin.y)) {
      throw std::runtime_error("not a usable face asset: its landmarks do not make a face");
    }
  }

  Point local(int index) const { return model_.local(index); }
  MonotoneCurve curve(std::span<const int> indices) const { return model_.curve(indices); }

  void contours() {
    Contours& c = model_.contours;
    const MonotoneCurve upper_inner = curve(UPPER_INNER), lower_inner = curve(LOWER_INNER);
    const MonotoneCurve upper_outer = curve(UPPER_OUTER), lower_outer = curve(LOWER_OUTER),
                        jaw = curve(JAW);
    const float inner_left = local(INNER_LEFT).x, inner_right = local(INNER_RIGHT).x,
                left = mix(inner_left, local(MOUTH_LEFT).x, CORNER),
                right = mix(inner_right, local(MOUTH_RIGHT).x, CORNER);
    c.half_width = std::max(4.f, (right - left) / 2);
    c.teeth_half_width = mix(std::max(4.f, (inner_right - inner_left) / 2), c.half_width, .5f);
    c.centre = (left + right) / 2;
    float middle_of_lips = 0;
    for (const int index : MOUTH_MIDDLE) {
      middle_of_lips += local(index).x / float(MOUTH_MIDDLE.size());
    }
    const float turned =
        std::clamp(middle_of_lips - c.centre, -.5f * c.half_width, .5f * c.half_width);
    c.middle = c.centre + turned * smoothstep(TURNED[0] * c.half_width, TURNED[1] * c.half_width,
                                              std::abs(turned));
    for (size_t i = 0; i < c.outline.size(); i++) {
      c.outline[i] = std::abs(local(JAW_SIDES[i]).x - c.centre) / c.half_width;
    }
    const float eyes = distance(asset_.landmark(EYE_LEFT), asset_.landmark(EYE_RIGHT)),
                room = std::min(c.outline[0], c.outline[1]) - 1;
    c.by_eyes = 2 * c.half_width / std::max(1.f, eyes);
    c.narrowing = std::clamp(1 - ROUNDED_WIDTH * eyes / (2 * c.half_width), .25f,
                             std::clamp(room, .25f, MOST_NARROWING));
    const float reach = std::min(
        std::max(REACH, SIDES * std::max(c.outline[0], c.outline[1])) * c.half_width, 400.f);
    c.left = std::floor(c.centre - reach);
    c.count = int(2 * reach) + 2;
    const auto seam = [&](float x) { return (upper_inner(x) + lower_inner(x)) / 2; };
    for (int i = 0; i < c.count; i++) {
      const float x = c.left + float(i), y = seam(x);
      c.seam.push_back(y);
      c.upper_outer.push_back(std::min(upper_outer(x), y - 2));
      c.lower_outer.push_back(std::max(lower_outer(x), y + 2));
      c.chin.push_back(std::max(jaw(x), c.lower_outer.back() + .12f * model_.face_height));
    }
    const Outline outline(model_);
    c.room = {outline.inside({left, seam(left)}) / c.half_width,
              outline.inside({right, seam(right)}) / c.half_width};
    const float middle = seam(c.centre);
    level_seam(c);
    c.nose = std::min(local(NOSE_BASE).y, upper_outer(c.centre) - .06f * model_.face_height);
    c.upper_thick = std::max(2.f, middle - upper_outer(c.centre));
    c.lower_thick = std::max(2.f, lower_outer(c.centre) - middle);
    c.smile = std::clamp(middle - (seam(left) + seam(right)) / 2, -.25f * c.half_width,
                         .4f * c.half_width);
  }

  /**
   * Unsharp mask with the 3x3 binomial filter. The amount restores what bilinear sampling half-way
   * between pixels loses of fine hair (measured on the default faces).
   */
  void sharpen() {
    constexpr int AMOUNT = 5, WHOLE = 4;  // adds 5/4 of the difference
    const int width = asset_.width, height = asset_.height;
    model_.sharp.assign(asset_.luma, asset_.luma + size_t(width) * size_t(height));
    for (int y = 1; y + 1 < height; y++) {
      const uint8_t* row = asset_.luma + size_t(y) * size_t(width);
      const uint8_t* up = row - width;
      const uint8_t* down = row + width;
      uint8_t* out = model_.sharp.data() + size_t(y) * size_t(width);
      for (int x = 1; x + 1 < width; x++) {
        const int blurred = 4 * row[x] + 2 * (row[x - 1] + row[x + 1] + up[x] + down[x]) +
                            up[x - 1] + up[x + 1] + down[x - 1] + down[x + 1];
        const int value = row[x] + (16 * row[x] - blurred) * AMOUNT / (16 * WHOLE);
        out[x] = uint8_t(std::min(std::max(value, 0), 255));
      }
    }
  }

  void box() {
    int left = asset_.width, right = -1, top = asset_.height, bottom = -1;
    for (int y = 0; y < asset_.height; y++) {
      const uint8_t* row = asset_.matte + size_t(y) * size_t(asset_.width);
      for (int x = 0; x < asset_.width; x++) {
        if (row[x] == 0) {
          continue;
        }
        left = std::min(left, x);
        right = std::max(right, x);
        top = std::min(top, y);
        bottom = std::max(bottom, y);
      }
    }
    if (right < left) {
      throw std::runtime_error("not a usable face asset: its matte is empty");
    }
    each_shoulder_cell(asset_, [&](int x, int y, uint8_t value) {
      if (value > 0) {
        left = std::min(left, x);
        right = std::max(right, x + NODE_STEP - 1);
        top = std::min(top, y);
        bottom = std::max(bottom, y + NODE_STEP - 1);
      }
    });
    model_.x0 = left & ~15;
    model_.y0 = top & ~15;
    model_.x1 = (right + 16) & ~15;
    model_.y1 = (bottom + 16) & ~15;
    model_.columns = (model_.x1 - model_.x0) / NODE_STEP + 1;
    model_.rows = (model_.y1 - model_.y0) / NODE_STEP + 1;
  }

  /**
   * A node's weight is the matte's mean round it. It is 0 when the node would move a pixel outside
   * the matte.
   */
  void weights() {
    model_.weight.assign(size_t(model_.columns) * size_t(model_.rows), 0.f);
    for (int j = 0; j < model_.rows; j++) {
      for (int i = 0; i < model_.columns; i++) {
        const int cx = model_.x0 + i * NODE_STEP, cy = model_.y0 + j * NODE_STEP;
        int sum = 0, count = 0;
        bool fixed = false;
        for (int y = std::max(0, cy - NODE_STEP + 1); y < std::min(asset_.height, cy + NODE_STEP);
             y++) {
          const uint8_t* row = asset_.matte + size_t(y) * size_t(asset_.width);
          for (int x = std::max(0, cx - NODE_STEP + 1); x < std::min(asset_.width, cx + NODE_STEP);
               x++) {
            sum += row[x];
            count++;
            fixed = fixed || row[x] == 0;
          }
        }
        if (!fixed && count > 0) {
          model_.weight[size_t(model_.node(i, j))] = float(sum) / float(count * 255);
        }
      }
    }
  }

  /**
   * Depth at the nodes: how far the landmarks are before the farthest one of the face's outline.
   * Round the face it falls more slowly than between landmarks: hair beside a forehead that turns
   * does not bulge.
   */
  void depth() {
    float far = -1e9f;
    Point sum{0, 0};
    for (const int index : OVAL) {
      far = std::max(far, asset_.landmarks[size_t(index)][2]);
      sum.x += asset_.landmark(index).x;
      sum.y += asset_.landmark(index).y;
    }
    model_.pivot = {sum.x / float(OVAL.size()), sum.y / float(OVAL.size())};
    constexpr float FINE = .07f, WIDE = .18f;  // sigmas, face heights
    const std::vector<float> none(model_.weight.size(), 0.f);
    model_.depth = smooth_depth(far, FINE, smooth_depth(far, WIDE, none));
    for (size_t k = 0; k < model_.depth.size(); k++) {
      model_.depth[k] *= model_.weight[k];
    }
  }

  /**
   * Normalised convolution of the landmarks' depth with a Gaussian (H. Knutsson and C.-F. Westin
   * 1993).
   * @param far z of depth 0, pixels
   * @param width the Gaussian's sigma, face heights
   * @param beyond depth of each node where no landmark is near, pixels
   * @returns depth of each node, pixels
   */
  std::vector<float> smooth_depth(float far, float width, const std::vector<float>& beyond) const {
    constexpr float FEW = 30;  // landmarks in a square of the face's height that count as few
    const float sigma = width * model_.face_height, most = .9f * model_.face_height,
                few = FEW * width * width;
    const int reach = int(3 * sigma / NODE_STEP) + 1;
    std::vector<float> value(model_.weight.size(), 0.f), mass(model_.weight.size(), 0.f);
    std::vector<float> across(size_t(2 * reach + 1));  // the Gaussian is a product of two
    const auto bell = [sigma](float d) { return std::exp(-d * d / (2 * sigma * sigma)); };
    for (const auto& [x, y, z] : asset_.landmarks) {
      const int ci = int(std::lround((x - float(model_.x0)) / NODE_STEP)),
                cj = int(std::lround((y - float(model_.y0)) / NODE_STEP));
      const float near = std::clamp(far - z, 0.f, most);
      for (int i = -reach; i <= reach; i++) {
        across[size_t(i + reach)] = bell(float(model_.x0 + (ci + i) * NODE_STEP) - x);
      }
      for (int j = std::max(0, cj - reach); j <= std::min(model_.rows - 1, cj + reach); j++) {
        const float down = bell(float(model_.y0 + j * NODE_STEP) - y);
        for (int i = std::max(0, ci - reach); i <= std::min(model_.columns - 1, ci + reach); i++) {
          const float w = down * across[size_t(i - ci + reach)];
          value[size_t(model_.node(i, j))] += w * near;
          mass[size_t(model_.node(i, j))] += w;
        }
      }
    }
    for (size_t k = 0; k < value.size(); k++) {
      value[k] = (value[k] + few * beyond[k]) / (mass[k] + few);
    }
    return value;
  }

  /**
   * What a pixel is wrong by when its block is not redrawn is the displacement that it has
   * missed times the gradient there.
   */
  void lags() {
    // Pixels at 512x512: the smallest jump that is visible at arm's length, and less than a breath
    // lifts plain cloth. Grey levels, root mean square.
    constexpr float LEAST = .3f, MOST = .8f, ERROR = 2.2f;
    constexpr int BLOCK_MARGIN = 4, SPARE = 8;
    const auto lag_of = [&](int x, int y, int side) {
      return int16_t(
          std::lround(std::clamp(ERROR / steepness(x, y, side), LEAST, MOST) * SUBPIXEL));
    };
    for (int y = model_.y0; y < model_.y1; y += 16) {
      for (int x = model_.x0; x < model_.x1; x += 16) {
        model_.lag.push_back(lag_of(x - BLOCK_MARGIN, y - BLOCK_MARGIN, 16 + 2 * BLOCK_MARGIN));
      }
    }
    for (int y = model_.y0; y <= model_.y1; y += NODE_STEP) {
      for (int x = model_.x0; x <= model_.x1; x += NODE_STEP) {
        model_.node_lag.push_back(lag_of(x - NODE_STEP, y - NODE_STEP, 2 * NODE_STEP));
      }
    }
    model_.node_lag.resize(model_.node_lag.size() + SPARE);
  }

  void moving() {
    Model::Features& area = model_.features;
    area.left = model_.columns;
    area.top = model_.rows;
    for (int j = 0; j < model_.rows; j++) {
      int begin = model_.columns, end = 0;
      for (int i = 0; i < model_.columns; i++) {
        const auto k = size_t(model_.node(i, j));
        const bool is_feature = model_.brow[k] != 0 || model_.brow_inner[k] != 0 ||
                                model_.cheek[k] != 0 || model_.cheek_low[k] != 0;
        if (model_.breath[k] != 0 || model_.depth[k] != 0 || is_feature) {
          begin = std::min(begin, i);
          end = i + 1;
        }
        if (is_feature) {
          area.left = std::min(area.left, i);
          area.top = std::min(area.top, j);
          area.right = std::max(area.right, i + 1);
          area.bottom = j + 1;
        }
      }
      model_.moving.emplace_back(std::min(begin, end), end);
    }
    // With a border of nodes that they do not move.
    area.left = std::max(0, area.left - 1);
    area.top = std::max(0, area.top - 1);
    area.right = std::min(model_.columns, area.right + 1);
    area.bottom = std::min(model_.rows, area.bottom + 1);
  }

  /** @returns the root mean square of the luma's gradient in a square, more than 0 */
  float steepness(int x0, int y0, int side) const {
    const int left = std::max(1, x0), right = std::min(asset_.width - 1, x0 + side),
              top = std::max(1, y0), bottom = std::min(asset_.height - 1, y0 + side);
    float sum = 0;
    for (int y = top; y < bottom; y++) {
      const uint8_t* row = asset_.luma + size_t(y) * size_t(asset_.width);
      for (int x = left; x < right; x++) {
        const float gx = float(row[x + 1] - row[x - 1]) / 2,
                    gy = float(row[x + asset_.width] - row[x - asset_.width]) / 2;
        sum += gx * gx + gy * gy;
      }
    }
    constexpr float LEAST = 1e-3f;
    return LEAST + std::sqrt(sum / float(std::max(1, (right - left) * (bottom - top))));
  }

  const Asset& asset_;
  Model model_;
};

}  // namespace

MonotoneCurve Model::curve(std::span<const int> indices) const {
  std::vector<Point> points;
  for (const int index : indices) {
    points.push_back(local(index));
  }
  return MonotoneCurve(points);
}

Model build_model(const Asset& asset) {
  return Builder(asset).build();
}

}  // namespace mouthpiece::face
