// Filters of small planes (see face_grey.h).
#include "core/face_grey.h"

#include <algorithm>
#include <cmath>

namespace mouthpiece::face {

Grey extreme(const Grey& in, int radius, bool greatest) {
  const size_t width = size_t(in.width), height = size_t(in.height), reach = size_t(radius);
  const auto better = [&](float a, float b) { return greatest ? std::max(a, b) : std::min(a, b); };
  Grey across = in, out = in;
  for (size_t y = 0; y < height; y++) {
    const float* from = in.data.data() + y * width;
    float* to = across.data.data() + y * width;
    for (size_t k = 1; k <= reach && k < width; k++) {
      for (size_t x = 0; x + k < width; x++) {
        to[x] = better(to[x], from[x + k]);
        to[x + k] = better(to[x + k], from[x]);
      }
    }
  }
  out.data = across.data;
  for (size_t k = 1; k <= reach && k < height; k++) {
    for (size_t i = 0; i + k * width < out.data.size(); i++) {
      out.data[i] = better(out.data[i], across.data[i + k * width]);
      out.data[i + k * width] = better(out.data[i + k * width], across.data[i]);
    }
  }
  return out;
}

Grey mean(const Grey& in, int radius) {
  const float share = 1 / float(2 * radius + 1);
  // `step` from one value of a line to the next.
  const auto line = [&](const float* from, float* to, int count, size_t step) {
    const auto at = [&](int i) { return from[size_t(std::clamp(i, 0, count - 1)) * step]; };
    float sum = 0;
    for (int i = -radius; i < radius; i++) {
      sum += at(i);
    }
    for (int i = 0; i < count; i++) {
      sum += at(i + radius);
      to[size_t(i) * step] = sum * share;
      sum -= at(i - radius);
    }
  };
  const size_t width = size_t(in.width);
  Grey across = in, out = in;
  for (int y = 0; y < in.height; y++) {
    line(in.data.data() + size_t(y) * width, across.data.data() + size_t(y) * width, in.width, 1);
  }
  for (int x = 0; x < in.width; x++) {
    line(across.data.data() + x, out.data.data() + x, in.height, width);
  }
  return out;
}

void blur(Grey& plane, float sigma) {
  const int reach = int(std::ceil(BLUR_REACH * sigma)), width = plane.width, height = plane.height;
  std::vector<float> weights;
  float mass = 0;
  for (int k = -reach; k <= reach; k++) {
    weights.push_back(std::exp(-float(k * k) / (2 * sigma * sigma)));
    mass += weights.back();
  }
  std::vector<float> across(plane.data.size(), 0.f);
  const auto add = [](float weight, const float* from, float* to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] += weight * from[i];
    }
  };
  for (int k = -reach; k <= reach; k++) {
    const float weight = weights[size_t(k + reach)] / mass;
    const int before = std::max(0, -k), count = width - std::abs(k);
    for (int y = 0; y < height && count > 0; y++) {
      const size_t row = size_t(y) * size_t(width) + size_t(before);
      add(weight, plane.data.data() + row + k, across.data() + row, count);
    }
  }
  std::fill(plane.data.begin(), plane.data.end(), 0.f);
  for (int k = -reach; k <= reach; k++) {
    const float weight = weights[size_t(k + reach)] / mass;
    const int before = std::max(0, -k), count = height - std::abs(k);
    if (count > 0) {
      const size_t to = size_t(before) * size_t(width), from = size_t(before + k) * size_t(width);
      add(weight, across.data() + from, plane.data.data() + to, count * width);
    }
  }
}

}  // namespace mouthpiece::face
