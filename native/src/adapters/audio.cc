// The JavaScript classes OpusEncoder, OpusDecoder and Resampler (src/native/addon.ts).
#include "adapters/adapters.h"
#include "adapters/napi_class.h"
#include "core/opus_codec.h"
#include "core/resampler.h"

namespace mouthpiece {

namespace {

using js::Args;

// ---- Opus --------------------------------------------------------------------------------------

constexpr int MIN_BITRATE = 6000, MAX_BITRATE = 510'000;  // bit/s; RFC 6716, section 2.1.1

std::unique_ptr<OpusEncoding> make_encoder(const Args& args) {
  const js::Options options = args.options(0);
  OpusSettings settings{};
  settings.sample_rate = int(options.integer("sampleRate", 8000, 48000));
  settings.channels = int(options.integer("channels", 1, 2));
  settings.bitrate = int(options.integer("bitrate", MIN_BITRATE, MAX_BITRATE));
  settings.complexity = int(options.integer_or("complexity", 5, 0, 10));
  settings.inband_fec = options.boolean_or("inbandFec", false);
  return std::make_unique<OpusEncoding>(settings);
}

napi_value encode(OpusEncoding& encoder, const Args& args) {
  const auto pcm = args.array<int16_t>(0, "pcm");
  return js::integer(args.env(), int32_t(encoder.encode(pcm, args.array<uint8_t>(1, "out"))));
}

napi_value set_bitrate(OpusEncoding& encoder, const Args& args) {
  encoder.set_bitrate(int(args.number(0, "bitrate", MIN_BITRATE, MAX_BITRATE)));
  return nullptr;
}

napi_value set_packet_loss(OpusEncoding& encoder, const Args& args) {
  encoder.set_packet_loss(int(args.number(0, "percent", 0, 100)));
  return nullptr;
}

std::unique_ptr<OpusDecoding> make_decoder(const Args& args) {
  const js::Options options = args.options(0);
  return std::make_unique<OpusDecoding>(int(options.integer("sampleRate", 8000, 48000)),
                                        int(options.integer("channels", 1, 2)));
}

napi_value decode(OpusDecoding& decoder, const Args& args) {
  const auto out = args.array<int16_t>(1, "out");
  const bool recover = !args.absent(2) && args.boolean(2, "recoverPrevious");
  if (args.absent(0)) {
    return js::integer(args.env(), int32_t(decoder.conceal(out)));
  }
  const auto packet = args.array<uint8_t>(0, "packet");
  return js::integer(args.env(),
                     int32_t(recover ? decoder.recover(packet, out) : decoder.decode(packet, out)));
}

// ---- Resampling --------------------------------------------------------------------------------

std::unique_ptr<Resampler> make_resampler(const Args& args) {
  const js::Options options = args.options(0);
  const int input_rate =
      int(options.integer("inputRate", Resampler::MIN_RATE, Resampler::MAX_RATE));
  const int output_rate =
      int(options.integer("outputRate", Resampler::MIN_RATE, Resampler::MAX_RATE));
  const int channels = int(options.integer("channels", 1, Resampler::MAX_CHANNELS));
  const size_t quality = options.choice_or("quality", 1, {"low", "medium", "high"});
  return std::make_unique<Resampler>(input_rate, output_rate, channels, ResamplerQuality(quality));
}

napi_value process(Resampler& resampler, const Args& args) {
  const auto input = args.array<int16_t>(0, "input");
  return js::integer(args.env(), int32_t(resampler.process(input, args.array<int16_t>(1, "out"))));
}

napi_value reset(Resampler& resampler, const Args&) {
  resampler.reset();
  return nullptr;
}

}  // namespace

void register_audio(napi_env env, napi_value exports) {
  using EncoderClass = js::Class<OpusEncoding>;
  EncoderClass::define(
      env, exports, "OpusEncoder",
      {EncoderClass::constructor<make_encoder>(), EncoderClass::method<encode>("encode"),
       EncoderClass::method<set_bitrate>("setBitrate"),
       EncoderClass::method<set_packet_loss>("setPacketLoss"), EncoderClass::close()});
  using DecoderClass = js::Class<OpusDecoding>;
  DecoderClass::define(env, exports, "OpusDecoder",
                       {DecoderClass::constructor<make_decoder>(),
                        DecoderClass::method<decode>("decode"), DecoderClass::close()});
  using ResamplerClass = js::Class<Resampler>;
  ResamplerClass::define(
      env, exports, "Resampler",
      {ResamplerClass::constructor<make_resampler>(), ResamplerClass::method<process>("process"),
       ResamplerClass::method<reset>("reset"), ResamplerClass::close()});
}

}  // namespace mouthpiece
