// A smooth line through the seam between the lips.
#include <cmath>

#include "core/face_model.h"

namespace mouthpiece::face {

void level_seam(Contours& c) {
  double n = 0, x1 = 0, x2 = 0, x3 = 0, x4 = 0, y0 = 0, y1 = 0, y2 = 0;
  const auto place = [&](int i) {
    return (double(c.left) + i - double(c.centre)) / double(c.half_width);
  };
  for (int i = 0; i < c.count; i++) {
    const double x = place(i), y = double(c.seam[size_t(i)]);
    if (std::abs(x) > 1) {
      continue;
    }
    n++;
    x1 += x, x2 += x * x, x3 += x * x * x, x4 += x * x * x * x;
    y0 += y, y1 += x * y, y2 += x * x * y;
  }
  // Cramer's rule.
  const auto determinant = [](double a, double b, double d, double e, double f, double g, double h,
                              double i, double j) {
    return a * (f * j - g * i) - b * (e * j - g * h) + d * (e * i - f * h);
  };
  const double all = determinant(x4, x3, x2, x3, x2, x1, x2, x1, n);
  const double qa = determinant(y2, x3, x2, y1, x2, x1, y0, x1, n) / all,
               qb = determinant(x4, y2, x2, x3, y1, x1, x2, y0, n) / all,
               qc = determinant(x4, x3, y2, x3, x2, y1, x2, x1, y0) / all;
  for (int i = 0; i < c.count; i++) {
    const double x = place(i), fit = qa * x * x + qb * x + qc;
    const float inside = smoothstep(1, .7f, float(std::abs(x)));
    c.level.push_back(std::isfinite(fit) ? mix(c.seam[size_t(i)], float(fit), inside)
                                         : c.seam[size_t(i)]);
  }
}

}  // namespace mouthpiece::face
