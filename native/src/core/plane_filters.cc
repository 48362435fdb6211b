// All filters are separable: first along all rows, then along all columns. Both combine whole rows,
// which the compiler turns into vector code.
#include "core/plane_filters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <vector>

namespace mouthpiece {

namespace {

struct Box {
  int left, right, top, bottom;

  bool is_empty() const { return left >= right; }
  int width() const { return right - left; }
  int height() const { return bottom - top; }
};

/** The smallest box that holds all values other than 0: masks of eyes and lips are mostly empty. */
Box filled_box(const FloatPlane& plane) {
  Box box{plane.width, 0, plane.height, 0};
  const auto is_filled = [](float value) { return value != 0; };
  for (int y = 0; y < plane.height; y++) {
    const float* row = plane.values + ptrdiff_t(y) * plane.width;
    const float* end = row + plane.width;
    const float* first = std::find_if(row, end, is_filled);
    if (first == end) {
      continue;
    }
    const auto last =
        std::find_if(std::make_reverse_iterator(end), std::make_reverse_iterator(row), is_filled);
    box.left = std::min(box.left, int(first - row));
    box.right = std::max(box.right, int(last.base() - row));
    box.top = std::min(box.top, y);
    box.bottom = y + 1;
  }
  return box;
}

Box grown(const Box& box, int margin, const FloatPlane& plane) {
  return {std::max(0, box.left - margin), std::min(plane.width, box.right + margin),
          std::max(0, box.top - margin), std::min(plane.height, box.bottom + margin)};
}

/**
 * Filters the part of a plane that is not 0 everywhere.
 * The edge pixels are repeated outside of it.
 * @param radius how far the filter reaches, pixels
 * @param kernel `begin(row, results, count)` starts a row of results with the pixels themselves,
 * `add(k, before, after, results, count)` adds those at a distance of k pixels on both sides
 */
template <class Filter>
void filter(const FloatPlane& plane, int radius, const Filter& kernel, float* out) {
  std::fill_n(out, ptrdiff_t(plane.width) * plane.height, 0.F);
  const Box filled = filled_box(plane);
  if (filled.is_empty()) {
    return;
  }
  const Box reached = grown(filled, radius, plane);
  const int count = reached.width();
  std::vector<typename Filter::Value> results(static_cast<size_t>(count));

  std::vector<float> line(size_t(count) + 2 * size_t(radius));
  std::vector<float> rows(size_t(count) * size_t(filled.height()));
  const float* centre = line.data() + radius;
  for (int y = filled.top; y < filled.bottom; y++) {
    const float* row = plane.values + ptrdiff_t(y) * plane.width;
    for (int x = 0; x < int(line.size()); x++) {
      line[size_t(x)] = row[std::clamp(reached.left - radius + x, 0, plane.width - 1)];
    }
    kernel.begin(centre, results.data(), count);
    for (int k = 1; k <= radius; k++) {
      kernel.add(k, centre - k, centre + k, results.data(), count);
    }
    std::copy(results.begin(), results.end(), rows.begin() + ptrdiff_t(y - filled.top) * count);
  }

  const std::vector<float> empty(size_t(count), 0);
  const auto row_at = [&](int y) {
    const int inside = std::clamp(y, 0, plane.height - 1);
    return inside < filled.top || inside >= filled.bottom
               ? empty.data()
               : rows.data() + ptrdiff_t(inside - filled.top) * count;
  };
  for (int y = reached.top; y < reached.bottom; y++) {
    kernel.begin(row_at(y), results.data(), count);
    for (int k = 1; k <= radius; k++) {
      kernel.add(k, row_at(y - k), row_at(y + k), results.data(), count);
    }
    std::copy(results.begin(), results.end(), out + ptrdiff_t(y) * plane.width + reached.left);
  }
}

/** Sums are doubles: faces are the same wherever they are made. */
struct Gaussian {
  using Value = double;

  /** Of a pixel itself, and of the pairs at 1, 2, ... pixels from it; together 1. */
  std::vector<double> weights;

  explicit Gaussian(double sigma) : weights(size_t(std::ceil(sigma * 3)) + 1) {
    weights[0] = 1;
    double sum = weights[0];
    for (size_t k = 1; k < weights.size(); k++) {
      weights[k] = std::exp(-double(k * k) / (2 * sigma * sigma));
      sum += 2 * weights[k];
    }
    for (double& weight : weights) {
      weight /= sum;
    }
  }

  void begin(const float* row, double* out, int count) const {
    for (int x = 0; x < count; x++) {
      out[x] = weights[0] * double(row[x]);
    }
  }
  void add(int k, const float* before, const float* after, double* out, int count) const {
    const double weight = weights[size_t(k)];
    for (int x = 0; x < count; x++) {
      out[x] += weight * (double(before[x]) + double(after[x]));
    }
  }
};

/** An edge pixel that is repeated changes no extreme: it lies in the window already. */
template <bool is_largest>
struct Extreme {
  using Value = float;

  static float pick(float a, float b) { return (is_largest ? a > b : a < b) ? a : b; }

  static void begin(const float* row, float* out, int count) { std::copy_n(row, count, out); }
  static void add(int, const float* before, const float* after, float* out, int count) {
    for (int x = 0; x < count; x++) {
      out[x] = pick(out[x], pick(before[x], after[x]));
    }
  }
};

}  // namespace

void gaussian_blur(const FloatPlane& plane, double sigma, float* out) {
  const Gaussian kernel(sigma);
  filter(plane, int(kernel.weights.size()) - 1, kernel, out);
}

void largest_within(const FloatPlane& plane, int radius, float* out) {
  filter(plane, radius, Extreme<true>(), out);
}

void smallest_within(const FloatPlane& plane, int radius, float* out) {
  filter(plane, radius, Extreme<false>(), out);
}

}  // namespace mouthpiece
