// See face_pucker.h. Shares were chosen by eye on the default faces and on photographs.
#include "core/face_pucker.h"

#include <algorithm>
#include <cmath>

namespace mouthpiece::face {
namespace {

/** Share of the movement of the upper lip's inner edge that its outer edge follows. */
constexpr float UPPER_FOLLOWS = .75f;
/** Height of the opening of rounded lips, share of its width; least width, share of the lips'. */
constexpr float OPENING = .36f, LEAST_OPEN = .52f;
/** Share of the opening that is above the line between the closed lips. */
constexpr float ABOVE = .30f;
/** Its upper edge is arched: it has this share of the height at each place. */
constexpr float ARCHED = .45f;
/** Rounded lips come together at this share of a smile above the middle of the mouth at rest. */
constexpr float SMILE = .25f;
/** Both lips are about equally full: the upper one's share, and how far lips come to it. */
constexpr float UPPER_SHARE = .42f, EQUAL = .65f;
/** Both are at most this share of the rounded mouth's width thick, or as thick as at rest. */
constexpr float FULL = .52f;
/** Rounded upper lips cover this share of the skin below the nose at most. */
constexpr float PHILTRUM = .22f;
/** A moustache moves with the lip below it, and stays above it: it takes this share of that. */
constexpr float UNDER_HAIR = .6f;
/** The lips' outlines are elliptic up to here, and as at rest from there, half widths. */
constexpr float ELLIPTIC = .7f, RESTING = 1.05f;
/** How much the ellipse tapers towards the corners. */
constexpr float TAPERED = .5f;
/** Lips that are thin beside their middle at rest are at most so many times as thick. */
constexpr float STRETCHED = 2.2f;
/** How far the corners hang, share of the face's height. */
constexpr float HANGING = .022f;
/** Share of the upper lip's bow that goes. */
constexpr float FLAT_BOW = .6f;

}  // namespace

Pucker::Pucker(const Contours& c, float face_height, float amount, float aperture)
    : amount_(amount), aperture_(aperture), hanging_(HANGING * face_height) {
  const size_t middle = size_t(c.count / 2);
  level_ = c.level[middle] - SMILE * c.smile + (ARCHED - ABOVE) * aperture;
  // Thin lips become fuller by most.
  const float most = PHILTRUM * (c.upper_outer[middle] - c.nose) * (1 - UNDER_HAIR * c.moustache);
  const float upper = c.upper_thick +
                      std::min(most, std::clamp(.078f * face_height - c.upper_thick,
                                                .10f * c.upper_thick, .45f * c.upper_thick)),
              lower = c.lower_thick + std::clamp(.062f * face_height - c.lower_thick,
                                                 .16f * c.lower_thick, .75f * c.lower_thick);
  const float width = 2 * c.half_width * (1 - c.narrowing),
              both = std::min(upper + lower, std::max(c.upper_thick + c.lower_thick, FULL * width));
  upper_ = std::min(mix(upper * both / (upper + lower), UPPER_SHARE * both, EQUAL),
                    c.upper_thick + most);
  lower_ = mix(lower * both / (upper + lower), both - UPPER_SHARE * both, EQUAL);
}

float Pucker::half_opening(float half) const {
  return mix(half, std::min(half, std::max(LEAST_OPEN * half, aperture_ / (2 * OPENING))), amount_);
}

float Pucker::moved_line(const Place& at) const {
  const float hanging = hanging_ * std::min(1.f, at.r * at.r) * at.ends;
  return (level_ + hanging - at.seam) * at.ends;
}

void Pucker::round_inside(const Place& at, Mouth::Column& out) const {
  const float line = at.seam + moved_line(at), gap = aperture_ * at.opening;
  out.y_top = mix(out.y_top, line - ARCHED * gap, amount_);
  out.y_bottom = mix(out.y_bottom, line + (1 - ARCHED) * gap, amount_);
}

void Pucker::round_outside(const Place& at, Mouth::Column& out) const {
  const float inside = std::max(0.f, 1 - at.r * at.r),
              elliptic = mix(std::sqrt(inside), inside, TAPERED),
              as_at_rest = smoothstep(ELLIPTIC, RESTING, at.r), open = aperture_ * elliptic;
  const auto thickness = [&](float full, float now, float flat) {
    return mix(mix(now, std::min(full * elliptic, STRETCHED * now), flat), now, as_at_rest);
  };
  const float up = thickness(upper_, at.seam - at.upper, FLAT_BOW) + UPPER_FOLLOWS * ARCHED * open,
              down = thickness(lower_, at.lower - at.seam, 1) + (1 - ARCHED) * open;
  const float line = moved_line(at);
  out.d_upper = mix(out.d_upper, at.seam + line - up - at.upper, amount_);
  out.d_lower = mix(out.d_lower, at.seam + line + down - at.lower, amount_);
}

}  // namespace mouthpiece::face
