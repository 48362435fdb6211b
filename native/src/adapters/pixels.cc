// The JavaScript function gaussianBlur (src/native/addon.ts).
#include "adapters/adapters.h"
#include "adapters/napi_class.h"
#include "core/gaussian_blur.h"

namespace mouthpiece {

namespace {

using js::Args;

constexpr int MAX_SIDE = 16384;
constexpr double MIN_SIGMA = 0.01, MAX_SIGMA = 1000;

napi_value blur(const Args& args) {
  const auto width = int(args.integer(1, "width", 1, MAX_SIDE));
  const auto height = int(args.integer(2, "height", 1, MAX_SIDE));
  const size_t pixels = size_t(width) * size_t(height);
  const auto source = args.array<float>(0, "source", pixels);
  const double sigma = args.number(3, "sigma", MIN_SIGMA, MAX_SIGMA);
  const auto out = args.array<float>(4, "out", pixels);
  if (source.data() == out.data()) {
    throw std::invalid_argument("out must not be the same memory as source");
  }
  gaussian_blur(source.data(), width, height, sigma, out.data());
  return nullptr;
}

}  // namespace

void register_pixels(napi_env env, napi_value exports) {
  js::define_function<blur>(env, exports, "gaussianBlur");
}

}  // namespace mouthpiece
