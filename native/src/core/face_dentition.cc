#include "core/face_dentition.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/face_model.h"
#include "core/face_vertices.h"

namespace mouthpiece::face {
namespace {

/** Ends of the distances that are compared with that of the eyes. */
constexpr std::array<std::array<int, 2>, 4> SPANS{{{CHEEK_LEFT, CHEEK_RIGHT},
                                                   {NOSTRIL_LEFT, NOSTRIL_RIGHT},
                                                   {INNER_EYE_LEFT, INNER_EYE_RIGHT},
                                                   {MOUTH_LEFT, MOUTH_RIGHT}}};
/**
 * Radians by which a proportion of 1 turns the phase of a property: at least, and in so many steps
 * more for some. Proportions differ by some hundredths from face to face.
 */
constexpr float TURN = 40, STEP = 17;
constexpr size_t STEPS = 7;
/** Radians between the phases of properties. */
constexpr float APART = 2.4f;

}  // namespace

Dentition dentition_of(const Model& model) {
  const Asset& asset = model.asset;
  const auto span = [&](int from, int to) {
    return distance(asset.landmark(from), asset.landmark(to));
  };
  const float eyes = std::max(1.f, span(EYE_LEFT, EYE_RIGHT));
  std::array<float, SPANS.size() + 1> proportions{};
  for (size_t i = 0; i < SPANS.size(); i++) {
    proportions[i] = span(SPANS[i][0], SPANS[i][1]) / eyes;
  }
  proportions.back() = model.face_height / eyes;
  const auto signed_property = [&](size_t which) {
    float phase = APART * float(which);
    for (size_t i = 0; i < proportions.size(); i++) {
      phase += (TURN + STEP * float((3 * which + 5 * i) % STEPS)) * proportions[i];
    }
    return std::sin(phase);
  };
  const auto property = [&](size_t which) { return .5f + .5f * signed_property(which); };
  return {.level = property(0),
          .blunt = property(1),
          .flat = property(2),
          .square = property(3),
          .shown = property(4),
          .gaps = signed_property(5),
          .wide = signed_property(6),
          .aside = signed_property(7),
          .light = signed_property(8)};
}

}  // namespace mouthpiece::face
