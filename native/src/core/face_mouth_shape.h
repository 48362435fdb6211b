// From articulation to the mouth's contours: where the lips, the corners and the chin go in one
// frame.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "core/face_model.h"
#include "core/face_simd.h"

namespace mouthpiece::face {

/** Order of src/media/articulation.ts. */
struct Articulation {
  float jaw, open, press, round, wide, tuck, upraise, ttip, tout, tback, teeth, brow, nod, speech;
  static constexpr size_t SIZE = 14;
};
struct Pose {
  float blink_left, blink_right, gaze_x, gaze_y, yaw, pitch, roll, shift_x, shift_y, breath, brow;
  static constexpr size_t SIZE = 11;
};

/** What a mood does to the resting face, each about -1..1; `gain` scales the articulators. */
struct Mood {
  float smile = 0, brow = 0, frown = 0, lids = 0, press = 0, open = 0, gain = 1;
};
constexpr int EMOTIONS = 6;
/** neutral, happy, sad, surprised, angry, calm. */
const Mood& mood_of(int emotion);
Mood mix(const Mood& a, const Mood& b, float t);

/** The mouth of one frame. Lengths in pixels of the mouth's frame; y values are destinations, d
 * values displacements (destination - source). */
struct Mouth {
  struct Column {
    float dx;                  // horizontal displacement at the lips
    float y_upper, d_upper;    // outer edge of the upper lip
    float y_top, d_top;        // its inner edge
    float y_bottom, d_bottom;  // inner edge of the lower lip
    float y_lower, d_lower;    // its outer edge
    float y_chin, d_chin;
  };
  std::vector<Column> columns;
  bool moved = false;  // false: every displacement is zero
  float aperture = 0;  // opening in the middle
  float jaw_drop = 0;  // of chin and lower teeth
  float crease = 0;    // 0..1 darkening of the line between pressed lips
  Articulation now{};  // the articulators as limited by the face, for what is inside the mouth

  /** The lips' inner edges at local x. */
  struct Edges {
    F4 top, bottom;
  };
  Edges edges(const Contours& contours, F4 x) const;
  /** The column at local x, between samples. */
  Column at(const Contours& contours, float x) const;
};

/** Writes `mouth` for the articulation; allocates only when `mouth` is new. */
void shape_mouth(const Model& model, const Articulation& articulation, const Mood& mood,
                 Mouth& mouth);

/** Where a point of the local frame comes from: its displacement by the upper and by the lower
 * lip's side of the mouth. */
struct Sides {
  Point upper, lower;
  bool below;      // the point lies on the lower side of the middle of the opening
  bool near_seam;  // or in the opening; elsewhere only the point's own side is filled in
};
/** @param margin what is near the seam, pixels */
Sides displace(const Model& model, const Mouth& mouth, Point local, float margin);

}  // namespace mouthpiece::face
