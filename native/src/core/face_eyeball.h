// One eye of the portrait in its own coordinates, and the layers of its iris.
#pragma once
#include <algorithm>

#include "core/face_eyes.h"

namespace mouthpiece::face {

/** Lashes, their shadow and the wet margin belong to the lids: shares of the eye's height. */
constexpr float LASHES = .12f, WET_MARGIN = .07f;

/** One eye in its own coordinates: u along its axis, v below it, pixels. */
class EyeView {
 public:
  EyeView(const Asset& asset, const Eye& eye) : asset_(asset), eye_(eye) {}

  const Eye& eye() const { return eye_; }
  float upper(float u) const { return sample_curve(eye_.upper, u / eye_.length); }
  float lower(float u) const {
    const float t = clamp01(u / eye_.length);
    return sample_curve(eye_.lower, t) + 4 * t * (1 - t) * eye_.iris.below;
  }
  Point to_picture(float u, float v) const {
    return {eye_.corner.x + u * eye_.axis.x - v * eye_.axis.y,
            eye_.corner.y + u * eye_.axis.y + v * eye_.axis.x};
  }
  Point to_eye(float x, float y) const {
    const float dx = x - eye_.corner.x, dy = y - eye_.corner.y;
    return {dx * eye_.axis.x + dy * eye_.axis.y, -dx * eye_.axis.y + dy * eye_.axis.x};
  }
  /** @returns whether the eyeball can be seen there, clear of lashes and margins */
  bool shows(float u, float v) const {
    return u > 0 && u < eye_.length && v > upper(u) + std::max(1.f, LASHES * eye_.height) &&
           v < lower(u) - std::max(.8f, WET_MARGIN * eye_.height);
  }
  Colour at(float u, float v) const {
    const Point p = to_picture(u, v);
    return picture_at(asset_, p.x, p.y);
  }

 private:
  const Asset& asset_;
  const Eye& eye_;
};

/** @returns the iris with a rim of the white, whole: where lids cover it, as it is elsewhere */
Layer iris_disc(const Asset& asset, const EyeView& view, const Iris& iris);
/** What is seen of the white of an eye beside its iris. */
struct White {
  Colour typical{0, 128, 128};
  float brightest = 0;  // luma
  float light = 0;      // luma of the skin below where it is seen
  int samples = 0;
};
/** @returns the white of the portrait; none where `samples` is 0 */
White white_beside(const EyeView& view, const Iris& iris);
/** @returns the white where the portrait shows the iris; `white` is what that eye shows of it, or
 * the other one */
Layer iris_white(const Asset& asset, const EyeView& view, const Iris& iris, const White& white);

}  // namespace mouthpiece::face
