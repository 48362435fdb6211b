// The blur is separable: all rows, then all columns, both as sums of whole rows, which the compiler
// turns into vector code. Sums are doubles: faces are the same wherever they are made.
#include "core/gaussian_blur.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <vector>

namespace mouthpiece {

namespace {

/** The smallest box that holds all values other than 0: masks of eyes and lips are mostly empty. */
struct Box {
  int left, right, top, bottom;
};

Box filled_box(const float* source, int width, int height) {
  Box box{width, 0, height, 0};
  for (int y = 0; y < height; y++) {
    const float* row = source + ptrdiff_t(y) * width;
    const float* end = row + width;
    const auto is_filled = [](float value) { return value != 0; };
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

/** Of a pixel itself, and of the pairs at 1, 2, ... pixels from it; their sum is 1. */
std::vector<double> kernel(double sigma) {
  std::vector<double> weights(size_t(std::ceil(sigma * 3)) + 1);
  double sum = 0;
  for (size_t k = 0; k < weights.size(); k++) {
    weights[k] = std::exp(-double(k * k) / (2 * sigma * sigma));
    sum += k == 0 ? weights[k] : 2 * weights[k];
  }
  for (double& weight : weights) {
    weight /= sum;
  }
  return weights;
}

void add_pair(double weight, const float* a, const float* b, double* sums, int count) {
  for (int x = 0; x < count; x++) {
    sums[x] += weight * (double(a[x]) + double(b[x]));
  }
}

void set_single(double weight, const float* from, double* sums, int count) {
  for (int x = 0; x < count; x++) {
    sums[x] = weight * double(from[x]);
  }
}

}  // namespace

void gaussian_blur(const float* source, int width, int height, double sigma, float* out) {
  std::fill_n(out, ptrdiff_t(width) * height, 0.F);
  const Box filled = filled_box(source, width, height);
  if (filled.left >= filled.right) {
    return;
  }
  const std::vector<double> weights = kernel(sigma);
  const int radius = int(weights.size()) - 1;
  // The blur reaches this far out.
  const int left = std::max(0, filled.left - radius);
  const int right = std::min(width, filled.right + radius);
  const int top = std::max(0, filled.top - radius);
  const int bottom = std::min(height, filled.bottom + radius);
  const int count = right - left;
  std::vector<double> sums(size_t(count), 0);

  std::vector<float> line(size_t(count) + 2 * size_t(radius));
  std::vector<float> rows(size_t(count) * size_t(filled.bottom - filled.top));
  for (int y = filled.top; y < filled.bottom; y++) {
    const float* row = source + ptrdiff_t(y) * width;
    for (int x = 0; x < int(line.size()); x++) {
      line[size_t(x)] = row[std::clamp(left - radius + x, 0, width - 1)];
    }
    set_single(weights[0], line.data() + radius, sums.data(), count);
    for (int k = 1; k <= radius; k++) {
      const float* centre = line.data() + radius;
      add_pair(weights[size_t(k)], centre - k, centre + k, sums.data(), count);
    }
    std::copy(sums.begin(), sums.end(), rows.begin() + ptrdiff_t(y - filled.top) * count);
  }

  const std::vector<float> empty(size_t(count), 0);
  const auto row_at = [&](int y) {
    const int inside = std::clamp(y, 0, height - 1);
    return inside < filled.top || inside >= filled.bottom
               ? empty.data()
               : rows.data() + ptrdiff_t(inside - filled.top) * count;
  };
  for (int y = top; y < bottom; y++) {
    set_single(weights[0], row_at(y), sums.data(), count);
    for (int k = 1; k <= radius; k++) {
      add_pair(weights[size_t(k)], row_at(y - k), row_at(y + k), sums.data(), count);
    }
    std::copy(sums.begin(), sums.end(), out + ptrdiff_t(y) * width + left);
  }
}

}  // namespace mouthpiece
