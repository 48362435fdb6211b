// The JavaScript class VideoEncoder and the functions rgbaToI420 and i420ToRgba
// (src/native/addon.ts).
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/adapters.h"
#include "adapters/napi_class.h"
#include "adapters/pool_task.h"
#include "core/colour.h"
#include "core/video_encoder.h"

namespace mouthpiece {

namespace {

using js::Args;

constexpr int32_t KEY_FRAME_BIT = 0x4000'0000;  // as in src/native/addon.ts
constexpr int MIN_SIDE = 16, MAX_SIDE = 4096, MIN_KBPS = 10, MAX_KBPS = 100'000;

void check_even(int64_t width, int64_t height) {
  if (width % 2 != 0 || height % 2 != 0) {
    throw std::out_of_range("width and height must be even");
  }
}

/**
 * A codec, opened when it is first used. That takes 5 to 20 ms, most of it page faults of its
 * memory, which is too long for a thread that sends frames. So another thread may open it. Only the
 * JavaScript thread uses `is_busy`: while it is true the codec belongs to the other thread.
 */
struct Codec {
  const VideoSettings settings;
  const bool is_vp8;
  bool is_busy = false;
  std::unique_ptr<VideoEncoder> encoder;

  VideoEncoder& open() {
    if (!encoder) {
      encoder = is_vp8 ? make_vp8_encoder(settings) : make_h264_encoder(settings);
    }
    return *encoder;
  }
};

/**
 * The native part of a VideoEncoder. A running preparation shares the codec: either may end first.
 */
struct Encoder {
  std::shared_ptr<Codec> codec;

  VideoEncoder& require_idle() const {
    if (codec->is_busy) {
      throw std::runtime_error("VideoEncoder is being prepared");
    }
    return codec->open();
  }
  size_t external_bytes() const {
    return !codec->is_busy && codec->encoder ? codec->encoder->external_bytes() : 0;
  }
};

std::unique_ptr<Encoder> make_encoder(const Args& args) {
  const js::Options options = args.options(0);
  const bool is_vp8 = options.choice("codec", {"vp8", "h264"}) == 0;
  VideoSettings settings{};
  settings.width = int(options.integer("width", MIN_SIDE, MAX_SIDE));
  settings.height = int(options.integer("height", MIN_SIDE, MAX_SIDE));
  check_even(settings.width, settings.height);
  settings.fps = int(options.integer("fps", 1, 60));
  settings.bitrate_kbps = int(options.integer("bitrateKbps", MIN_KBPS, MAX_KBPS));
  return std::make_unique<Encoder>(
      Encoder{std::make_shared<Codec>(Codec{settings, is_vp8, false, nullptr})});
}

napi_value encode(Encoder& self, const Args& args) {
  const auto& [width, height, fps, kbps] = self.codec->settings;
  const auto picture = args.array<uint8_t>(0, "picture", i420_bytes(width, height));
  const auto out = args.array<uint8_t>(1, "out");
  const bool force_key = args.boolean(2, "forceKey");
  const auto dirty = args.absent(3) ? std::span<uint8_t>{}
                                    : args.array<uint8_t>(3, "dirty", macroblocks(width, height));
  const auto motion = args.absent(4)
                          ? std::span<int16_t>{}
                          : args.array<int16_t>(4, "motion", 2 * macroblocks(width, height));
  const EncodedFrame frame = self.require_idle().encode(picture, out, force_key, dirty, motion);
  return js::integer(args.env(), int32_t(frame.bytes) | (frame.is_key ? KEY_FRAME_BIT : 0));
}

napi_value set_bitrate(Encoder& self, const Args& args) {
  const double kbps = args.number(0, "kbps", MIN_KBPS, MAX_KBPS);
  self.require_idle().set_bitrate(int(kbps));
  return nullptr;
}

/** Opens a codec and encodes its first picture. */
struct PrepareTask final : js::PoolTask {
  std::shared_ptr<Codec> codec;
  std::vector<uint8_t> picture, frame;  // a copy of the picture, which its owner may change

  void run() override {
    // More than the largest frame: the encoders fail when a frame would exceed this.
    frame.resize(picture.size() + 65'536);
    frame.resize(codec->open().encode(picture, frame, true, {}).bytes);
  }

  napi_value settle(napi_env env, bool ok) override {
    codec->is_busy = false;
    if (!ok) {
      return nullptr;
    }
    void* data = nullptr;
    napi_value buffer, result;
    js::check(env, napi_create_arraybuffer(env, frame.size(), &data, &buffer));
    if (!frame.empty()) {
      std::memcpy(data, frame.data(), frame.size());
    }
    js::check(env, napi_create_typedarray(env, napi_uint8_array, frame.size(), buffer, 0, &result));
    return result;
  }
};

napi_value prepare(Encoder& self, const Args& args) {
  const auto picture = args.array<uint8_t>(
      0, "picture", i420_bytes(self.codec->settings.width, self.codec->settings.height));
  if (self.codec->is_busy || self.codec->encoder) {
    throw std::runtime_error("VideoEncoder is in use already");
  }
  auto task = std::make_unique<PrepareTask>();
  task->codec = self.codec;
  task->picture.assign(picture.begin(), picture.end());
  const napi_value promise =
      js::PoolTask::start(args.env(), "VideoEncoder.prepare", std::move(task));
  self.codec->is_busy = true;
  return promise;
}

struct PictureSize {
  int width, height;
};

PictureSize picture_size(const Args& args, size_t index) {
  const int64_t width = args.integer(index, "width", 2, 16384),
                height = args.integer(index + 1, "height", 2, 16384);
  check_even(width, height);
  return {int(width), int(height)};
}

napi_value to_i420(const Args& args) {
  const auto [width, height] = picture_size(args, 1);
  const auto rgba = args.array<uint8_t>(0, "rgba", size_t(width) * size_t(height) * 4);
  rgba_to_i420(rgba.data(), width, height,
               args.array<uint8_t>(3, "i420", i420_bytes(width, height)).data());
  return nullptr;
}

napi_value to_rgba(const Args& args) {
  const auto [width, height] = picture_size(args, 1);
  const auto i420 = args.array<uint8_t>(0, "i420", i420_bytes(width, height));
  i420_to_rgba(i420.data(), width, height,
               args.array<uint8_t>(3, "rgba", size_t(width) * size_t(height) * 4).data());
  return nullptr;
}

}  // namespace

void register_video(napi_env env, napi_value exports) {
  using EncoderClass = js::Class<Encoder>;
  EncoderClass::define(
      env, exports, "VideoEncoder",
      {EncoderClass::constructor<make_encoder>(), EncoderClass::method<encode>("encode"),
       EncoderClass::method<prepare>("prepare"), EncoderClass::method<set_bitrate>("setBitrate"),
       EncoderClass::close()});
  js::define_function<to_i420>(env, exports, "rgbaToI420");
  js::define_function<to_rgba>(env, exports, "i420ToRgba");
}

}  // namespace mouthpiece
