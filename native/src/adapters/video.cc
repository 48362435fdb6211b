// VideoEncoder, rgbaToI420 and i420ToRgba.
#include "adapters/adapters.h"
#include "adapters/napi_util.h"
#include "core/colour.h"
#include "core/video_encoder.h"

namespace mouthpiece {

namespace {

using js::Args;

constexpr int32_t KEY_FRAME_BIT = 0x4000'0000;  // as in src/native/addon.ts
constexpr int MIN_SIDE = 16, MAX_SIDE = 4096, MIN_KBPS = 10, MAX_KBPS = 100'000;

void check_even(int64_t width, int64_t height) {
  if (width % 2 != 0 || height % 2 != 0) throw std::out_of_range("width and height must be even");
}

std::unique_ptr<VideoEncoder> make_encoder(const Args& args) {
  const js::Options options = args.options(0);
  const bool is_vp8 = options.choice("codec", {"vp8", "h264"}) == 0;
  VideoSettings settings{};
  settings.width = int(options.integer("width", MIN_SIDE, MAX_SIDE));
  settings.height = int(options.integer("height", MIN_SIDE, MAX_SIDE));
  check_even(settings.width, settings.height);
  settings.fps = int(options.integer("fps", 1, 60));
  settings.bitrate_kbps = int(options.integer("bitrateKbps", MIN_KBPS, MAX_KBPS));
  settings.speed = int(options.integer_or("speed", -12, -16, 16));
  return is_vp8 ? make_vp8_encoder(settings) : make_h264_encoder(settings);
}

napi_value encode(VideoEncoder& encoder, const Args& args) {
  const auto& [width, height, fps, kbps, speed] = encoder.settings();
  const auto picture = args.array<uint8_t>(0, "picture", i420_bytes(width, height));
  const auto out = args.array<uint8_t>(1, "out");
  const bool force_key = args.boolean(2, "forceKey");
  const auto dirty = args.absent(3) ? std::span<uint8_t>{} : args.array<uint8_t>(3, "dirty", macroblocks(width, height));
  const EncodedFrame frame = encoder.encode(picture, out, force_key, dirty);
  return js::integer(args.env(), int32_t(frame.bytes) | (frame.is_key ? KEY_FRAME_BIT : 0));
}

napi_value set_bitrate(VideoEncoder& encoder, const Args& args) {
  const double kbps = args.number(0, "kbps", MIN_KBPS, MAX_KBPS);
  encoder.set_bitrate(int(kbps));
  return nullptr;
}

struct PictureSize {
  int width, height;
};

PictureSize picture_size(const Args& args, size_t index) {
  const int64_t width = args.integer(index, "width", 2, 16384), height = args.integer(index + 1, "height", 2, 16384);
  check_even(width, height);
  return {int(width), int(height)};
}

napi_value to_i420(const Args& args) {
  const auto [width, height] = picture_size(args, 1);
  const auto rgba = args.array<uint8_t>(0, "rgba", size_t(width) * size_t(height) * 4);
  rgba_to_i420(rgba.data(), width, height, args.array<uint8_t>(3, "i420", i420_bytes(width, height)).data());
  return nullptr;
}

napi_value to_rgba(const Args& args) {
  const auto [width, height] = picture_size(args, 1);
  const auto i420 = args.array<uint8_t>(0, "i420", i420_bytes(width, height));
  i420_to_rgba(i420.data(), width, height, args.array<uint8_t>(3, "rgba", size_t(width) * size_t(height) * 4).data());
  return nullptr;
}

}  // namespace

void register_video(napi_env env, napi_value exports) {
  using EncoderClass = js::Class<VideoEncoder>;
  EncoderClass::define(env, exports, "VideoEncoder",
                       {EncoderClass::constructor<make_encoder>(), EncoderClass::method<encode>("encode"), EncoderClass::method<set_bitrate>("setBitrate"), EncoderClass::close()});
  js::define_function<to_i420>(env, exports, "rgbaToI420");
  js::define_function<to_rgba>(env, exports, "i420ToRgba");
}

}  // namespace mouthpiece
