// Gaussian blur of a plane of floats, for the making of faces.
#pragma once

namespace mouthpiece {

/**
 * Blurs a plane as if its edge pixels were repeated outside of it.
 * @param source, out width * height values, rows without padding; not the same memory
 * @param sigma pixels, above 0; the kernel ends at three of it
 */
void gaussian_blur(const float* source, int width, int height, double sigma, float* out);

}  // namespace mouthpiece
