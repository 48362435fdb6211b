// The shape of the mouth in one frame: positions of lips, corners and chin for an articulation.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "core/face_model.h"
#include "core/face_simd.h"

namespace mouthpiece::face {

/** Channels of the articulation, each 0 to 1, in the order of src/media/articulation.ts. */
struct Articulation {
  float jaw, open, press, round, wide, tuck, upraise, ttip, tout, tback, teeth, brow, nod, speech;
  static constexpr size_t SIZE = 14;
};
/** Channels of the pose, in the order of src/media/articulation.ts. */
struct Pose {
  float blink_left, blink_right, gaze_x, gaze_y, yaw, pitch, roll, shift_x, shift_y, breath, brow,
      chin;
  static constexpr size_t SIZE = 12;
};

/** What a mood changes in the resting face, each about -1 to 1. `gain` scales the articulation. */
struct Mood {
  float smile = 0, brow = 0, frown = 0, lids = 0, press = 0, open = 0, gain = 1;
};
constexpr int EMOTIONS = 6;
/** @param emotion neutral, happy, sad, surprised, angry or calm: 0 to 5, else clamped */
const Mood& mood_of(int emotion);
/** Interpolates: `a` at t = 0, `b` at t = 1. */
Mood mix(const Mood& a, const Mood& b, float t);

/**
 * The mouth of one frame, in the mouth's coordinates, pixels. y values are destinations, d values
 * are displacements (destination minus source).
 */
struct Mouth {
  struct Column {
    float dx;                  // horizontal displacement at the lips
    float y_upper, d_upper;    // outer edge of the upper lip
    float y_top, d_top;        // inner edge of the upper lip
    float y_bottom, d_bottom;  // inner edge of the lower lip
    float y_lower, d_lower;    // outer edge of the lower lip
    float y_chin, d_chin;
  };
  std::vector<Column> columns;
  bool moved = false;      // whether any displacement is not zero
  float aperture = 0;      // height of the opening in the middle
  float half_opening = 1;  // half the width of the opening, pixels
  float jaw_drop = 0;      // movement of the jaw and the lower teeth
  float chin_drop = 0;     // movement of the chin's skin
  float touching = 0;      // darkening of the line beside the opening of rounded lips, 0 to 1
  float corner = 1;        // distance of the corners from the middle, pixels
  float crease = 0;        // darkening of the line between pressed lips, 0 to 1
  Articulation now{};      // the articulation within the face's limits, for the mouth's interior

  /** The lips' inner edges at four x, and how far they fall there per pixel across. */
  struct Edges {
    F4 top, bottom, top_slope, bottom_slope;
    /**
     * @param y four pixels' middles
     * @param half half the height of a pixel plus the blur of edges
     * @returns the share of each pixel that is in the opening
     */
    F4 cover(F4 y, float half) const;
  };
  Edges edges(const Contours& contours, F4 x) const;
  /** @returns the column at x, interpolated */
  Column at(const Contours& contours, float x) const;
};

/**
 * Computes the mouth for an articulation. Allocates only when `mouth` is new.
 * @param chin how far the chin's skin is from where the jaw has it, in units of the jaw's channel
 */
void shape_mouth(const Model& model, const Articulation& articulation, const Mood& mood, float chin,
                 Mouth& mouth);

/** The displacement of a point as part of the upper and as part of the lower lip. */
struct Sides {
  Point upper, lower;
  bool below;      // whether the point is below the middle of the opening
  bool near_seam;  // whether it is in the opening or near it; else only its own side is computed
};
/**
 * @param p in the mouth's coordinates
 * @param margin distance from the opening that counts as near, pixels
 */
Sides displace(const Model& model, const Mouth& mouth, Point p, float margin);

}  // namespace mouthpiece::face
