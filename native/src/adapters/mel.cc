// The JavaScript class MelFrontEnd (src/native/addon.ts).
#include "core/mel.h"

#include "adapters/adapters.h"
#include "adapters/napi_class.h"

namespace mouthpiece {

namespace {

using js::Args;

std::unique_ptr<MelFrontEnd> make_front_end(const Args&) {
  return std::make_unique<MelFrontEnd>();
}

napi_value step(MelFrontEnd& front_end, const Args& args) {
  const auto pcm = args.array<int16_t>(0, "pcm");
  const auto count =
      size_t(args.integer(1, "sampleCount", MEL_FRAMES_PER_STEP, MEL_MAX_STEP_SAMPLES));
  const auto out = args.array<float>(2, "out");
  const auto offset = size_t(args.integer(3, "offset", 0, int64_t(out.size())));
  if (pcm.size() < count) {
    throw std::out_of_range("pcm has " + std::to_string(pcm.size()) +
                            " samples, fewer than sampleCount " + std::to_string(count));
  }
  if (out.size() - offset < size_t(MEL_FRAMES_PER_STEP) * MEL_BANDS) {
    throw std::out_of_range("out must hold 3 x 40 values from offset " + std::to_string(offset));
  }
  front_end.step(pcm.data(), count, out.data() + offset);
  return nullptr;
}

napi_value reset(MelFrontEnd& front_end, const Args&) {
  front_end.reset();
  return nullptr;
}

}  // namespace

void register_mel(napi_env env, napi_value exports) {
  using FrontEndClass = js::Class<MelFrontEnd>;
  FrontEndClass::define(
      env, exports, "MelFrontEnd",
      {FrontEndClass::constructor<make_front_end>(), FrontEndClass::method<step>("step"),
       FrontEndClass::method<reset>("reset"), FrontEndClass::close()});
}

}  // namespace mouthpiece
