// The JavaScript functions gaussianBlur, largestWithin and smallestWithin (src/native/addon.ts).
#include "core/plane_filters.h"

#include "adapters/adapters.h"
#include "adapters/napi_class.h"

namespace mouthpiece {

namespace {

using js::Args;

constexpr int MAX_SIDE = 16384, MAX_RADIUS = 4096;
constexpr double MAX_SIGMA = 1000;

FloatPlane plane_of(const Args& args) {
  const auto width = int(args.integer(1, "width", 0, MAX_SIDE));
  const auto height = int(args.integer(2, "height", 0, MAX_SIDE));
  return {args.array<float>(0, "source", size_t(width) * size_t(height)).data(), width, height};
}

float* out_of(const Args& args, const FloatPlane& plane) {
  const auto out = args.array<float>(4, "out", size_t(plane.width) * size_t(plane.height));
  if (!out.empty() && out.data() == plane.values) {
    throw std::invalid_argument("out must not be the same memory as source");
  }
  return out.data();
}

napi_value blur(const Args& args) {
  const FloatPlane plane = plane_of(args);
  gaussian_blur(plane, args.number(3, "sigma", 0, MAX_SIGMA), out_of(args, plane));
  return nullptr;
}

template <void (*within)(const FloatPlane&, int, float*)>
napi_value extreme(const Args& args) {
  const FloatPlane plane = plane_of(args);
  within(plane, int(args.integer(3, "radius", 0, MAX_RADIUS)), out_of(args, plane));
  return nullptr;
}

}  // namespace

void register_plane_filters(napi_env env, napi_value exports) {
  js::define_function<blur>(env, exports, "gaussianBlur");
  js::define_function<extreme<largest_within>>(env, exports, "largestWithin");
  js::define_function<extreme<smallest_within>>(env, exports, "smallestWithin");
}

}  // namespace mouthpiece
