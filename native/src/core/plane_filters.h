// Filters of a plane of floats, for the making of faces.
#pragma once

namespace mouthpiece {

/** A plane of width * height values, rows without padding. It may be empty. */
struct FloatPlane {
  const float* values;
  int width, height;
};

/**
 * Gaussian blur, as if the edge pixels were repeated outside of the plane.
 * @param sigma pixels, from 0; the kernel ends at three of it
 * @param out as large as the plane, other memory
 */
void gaussian_blur(const FloatPlane& plane, double sigma, float* out);

/**
 * The largest of the values within `radius` of each pixel, in a square window. What lies outside of
 * the plane is left out. Values must not be negative.
 * @param out as large as the plane, other memory
 */
void largest_within(const FloatPlane& plane, int radius, float* out);
/** The same for the smallest value. */
void smallest_within(const FloatPlane& plane, int radius, float* out);

}  // namespace mouthpiece
