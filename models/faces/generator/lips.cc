// The outline of the lips as seen from the front, measured by column.
#include "lips.h"

#include "head.h"

namespace {

/** From this share on the mask of the mesh is lip: there half of the lips' colour is seen. */
constexpr float kLip = .45f;
/** What is farther than this is only known to be far. */
constexpr float kFar = .3f;
/** The surface turns between points this far apart. */
constexpr float kTurn = .012f;

}  // namespace

void LipOutline::measure(const Head& head, float left, float right, float low, float high) {
  left_ = left - .03f;
  step_ = (right - left + .06f) / (kColumns - 1);
  low_ = low, high_ = high;
  for (int i = 0; i < kColumns; i++) {
    Column& column = columns_[size_t(i)];
    const float x = left_ + step_ * float(i);
    for (float y = low - .05f; y < high + .05f; y += .0015f) {
      Vertex v;
      if (head.vertexOnFront(x, y, v) && std::max(v.masks[0], v.masks[2]) > kLip) {
        column.bottom = std::min(column.bottom, y);
        column.top = std::max(column.top, y);
      }
    }
    // The lips are round, so between them is the sharpest turn of the surface.
    float sharpest = 0;
    const float rim = .12f * (column.top - column.bottom);
    for (float y = column.bottom + rim; y < column.top - rim; y += .0015f) {
      Vec3 above, here, below, n;
      if (head.onFront(x, y + kTurn, above, n) && head.onFront(x, y, here, n) &&
          head.onFront(x, y - kTurn, below, n) && above.z + below.z - 2 * here.z > sharpest) {
        sharpest = above.z + below.z - 2 * here.z;
        column.seam = y;
        column.hasSeam = true;
      }
    }
  }
  smoothSeam();
  taper();
}

void LipOutline::taper() {
  float from = 9, to = -9;
  const auto at = [&](size_t i) { return left_ + step_ * float(i); };
  for (size_t i = 0; i < kColumns; i++) {
    if (columns_[i].top > columns_[i].bottom) {
      from = std::min(from, at(i)), to = std::max(to, at(i));
    }
  }
  middle_ = .5f * (from + to), half_ = std::max(.01f, .5f * (to - from));
  upper_ = lower_ = 0;
  for (size_t i = 0; i < kColumns; i++) {
    if (std::fabs(at(i) - middle_) < .5f * half_) {
      upper_ = std::max(upper_, columns_[i].top - columns_[i].seam);
      lower_ = std::max(lower_, columns_[i].seam - columns_[i].bottom);
    }
  }
  for (size_t i = 0; i < kColumns; i++) {
    Column& column = columns_[i];
    column.top = std::min(column.top, column.seam + reach(at(i), true));
    column.bottom = std::max(column.bottom, column.seam - reach(at(i), false));
  }
}

float LipOutline::reach(float x, bool isUpper) const {
  // From its peaks the upper lip runs almost straight to the corners; the lower one is an arc.
  const float out = std::min(1.f, std::fabs(x - middle_) / half_);
  return isUpper ? upper_ * std::pow(clamp01((1 - out) / .70f), .80f)
                 : lower_ * std::pow(1 - sq(out), .82f);
}

float LipOutline::share(float x, float y) const {
  const float above = y - seam(x);
  const float soft = .028f, out = std::fabs(x - middle_) / half_;
  // Their colour ends before the line between them does.
  const float edge = reach(x, above > 0) + .004f - 1.3f * soft * smoothstep(.76f, 1.f, out);
  return smoothstep(edge + soft, edge - soft, std::fabs(above));
}

void LipOutline::smoothSeam() {
  // Beyond the corners the seam goes on from its neighbours.
  int first = 0, last = kColumns - 1;
  while (first < kColumns - 1 && !columns_[size_t(first)].hasSeam) {
    first++;
  }
  while (last > first && !columns_[size_t(last)].hasSeam) {
    last--;
  }
  for (int i = 0; i < kColumns; i++) {
    Column& column = columns_[size_t(i)];
    if (i < first || i > last) {
      column.seam = columns_[size_t(i < first ? first : last)].seam;
    } else if (!column.hasSeam) {
      int next = i;
      while (!columns_[size_t(next)].hasSeam) {
        next++;
      }
      column.seam =
          mix(columns_[size_t(i) - 1].seam, columns_[size_t(next)].seam, 1.f / float(next - i + 1));
    }
  }
  const auto old = columns_;
  for (int i = 0; i < kColumns; i++) {
    float sum = 0;
    for (int k = -3; k <= 3; k++) {
      sum += old[size_t(std::clamp(i + k, 0, kColumns - 1))].seam;
    }
    columns_[size_t(i)].seam = sum / 7;
  }
}

float LipOutline::seam(float x) const {
  const float at = clampTo((x - left_) / step_, 0, kColumns - 1.01f);
  const auto i = size_t(at);
  return mix(columns_[i].seam, columns_[i + 1].seam, at - float(i));
}

float LipOutline::distance(float x, float y) const {
  if (y > high_ + kFar || y < low_ - kFar || x < left_ - kFar ||
      x > left_ + step_ * (kColumns - 1) + kFar) {
    return kFar;
  }
  float best = sq(kFar);
  for (int i = 0; i < kColumns; i++) {
    const Column& column = columns_[size_t(i)];
    if (column.top < column.bottom) {
      continue;
    }
    const float dx = std::max(0.f, std::fabs(x - left_ - step_ * float(i)) - .5f * step_);
    const float above = y - column.top, below = column.bottom - y;
    if (dx == 0 && above < 0 && below < 0) {
      return std::max(above, below);
    }
    best = std::min(best, dx * dx + sq(std::max(0.f, std::max(above, below))));
  }
  return std::sqrt(best);
}
