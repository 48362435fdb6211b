// Filters of planes of any size with any reach: results lie between the extremes of the plane, and
// no access is out of bounds.
#include "core/plane_filters.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "test_data.h"

using namespace mouthpiece;
using mouthpiece::testing::exact_vector;
using mouthpiece::testing::Random;

TEST_CASE("filters stay within the plane and between its extremes") {
  Random random(5);
  for (int round = 0; round < 300; round++) {
    const int width = random.between(1, 24), height = random.between(1, 24);
    auto values = exact_vector<float>(size_t(width) * size_t(height));
    // Empty planes, a few values, and full ones.
    const int filled = random.between(0, 3);
    for (float& value : values) {
      value = random.between(0, 3) < filled ? float(random.between(1, 255)) : 0.F;
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    auto blurred = exact_vector<float>(values.size());
    auto largest = exact_vector<float>(values.size());
    auto smallest = exact_vector<float>(values.size());
    const FloatPlane plane{values.data(), width, height};
    const int reach = random.between(0, 30);
    gaussian_blur(plane, reach / 3.0, blurred.data());
    largest_within(plane, reach, largest.data());
    smallest_within(plane, reach, smallest.data());
    for (size_t i = 0; i < values.size(); i++) {
      CHECK(blurred[i] >= *least - 1e-3F);
      CHECK(blurred[i] <= *most + 1e-3F);
      CHECK(largest[i] >= values[i]);
      CHECK(largest[i] <= *most);
      CHECK(smallest[i] <= values[i]);
      CHECK(smallest[i] >= *least);
    }
  }
}
