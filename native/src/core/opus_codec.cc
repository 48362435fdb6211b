// Opus through libopus (see opus_codec.h).
#include "core/opus_codec.h"

#include <opus/opus.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace mouthpiece {

namespace {

void check_rate(int rate) {
  for (const int known : {8000, 12000, 16000, 24000, 48000}) {
    if (rate == known) {
      return;
    }
  }
  throw std::out_of_range("sampleRate must be 8000, 12000, 16000, 24000 or 48000 for Opus, not " +
                          std::to_string(rate));
}

int check(int result, const char* what) {
  if (result >= 0) {
    return result;
  }
  const std::string text = std::string("Opus cannot ") + what + ": " + opus_strerror(result);
  if (result == OPUS_BUFFER_TOO_SMALL) {
    throw std::out_of_range(text);
  }
  throw std::runtime_error(text);
}

}  // namespace

bool is_opus_frame(int sample_rate, size_t samples) {
  for (const int tenth_ms : {25, 50, 100, 200, 400, 600}) {
    if (samples == size_t(sample_rate) * size_t(tenth_ms) / 10000) {
      return true;
    }
  }
  return false;
}

OpusEncoding::OpusEncoding(const OpusSettings& settings) : settings_(settings) {
  check_rate(settings.sample_rate);
  int error;
  // Only Opus's speech modes have in-band redundancy, and VOIP prefers these. AUDIO keeps more of a
  // voice's high frequencies.
  codec_ = opus_encoder_create(settings.sample_rate, settings.channels,
                               settings.inband_fec ? OPUS_APPLICATION_VOIP : OPUS_APPLICATION_AUDIO,
                               &error);
  check(error, "set up an encoder");
  opus_encoder_ctl(codec_, OPUS_SET_BITRATE(settings.bitrate));
  opus_encoder_ctl(codec_, OPUS_SET_COMPLEXITY(settings.complexity));
  opus_encoder_ctl(codec_, OPUS_SET_INBAND_FEC(settings.inband_fec ? 1 : 0));
  opus_encoder_ctl(codec_, OPUS_SET_SIGNAL(settings.inband_fec ? OPUS_SIGNAL_VOICE : OPUS_AUTO));
}

OpusEncoding::~OpusEncoding() {
  opus_encoder_destroy(codec_);
}

size_t OpusEncoding::encode(std::span<const int16_t> pcm, std::span<uint8_t> out) {
  const size_t samples = pcm.size() / size_t(settings_.channels);
  if (pcm.size() % size_t(settings_.channels) != 0 ||
      !is_opus_frame(settings_.sample_rate, samples)) {
    throw std::invalid_argument("pcm must hold 2.5, 5, 10, 20, 40 or 60 ms, not " +
                                std::to_string(pcm.size()) + " samples");
  }
  if (out.empty()) {
    throw std::out_of_range("out must hold at least 1 byte");
  }
  return size_t(check(opus_encode(codec_, pcm.data(), int(samples), out.data(),
                                  int(std::min<size_t>(out.size(), 4000))),
                      "encode"));
}

void OpusEncoding::set_bitrate(int bitrate) {
  check(opus_encoder_ctl(codec_, OPUS_SET_BITRATE(bitrate)), "change the bitrate");
}
void OpusEncoding::set_packet_loss(int percent) {
  check(opus_encoder_ctl(codec_, OPUS_SET_PACKET_LOSS_PERC(percent)), "set the packet loss");
}
size_t OpusEncoding::external_bytes() const {
  return size_t(opus_encoder_get_size(settings_.channels));
}

OpusDecoding::OpusDecoding(int sample_rate, int channels)
    : sample_rate_(sample_rate), channels_(channels) {
  check_rate(sample_rate);
  int error;
  codec_ = opus_decoder_create(sample_rate, channels, &error);
  check(error, "set up a decoder");
}

OpusDecoding::~OpusDecoding() {
  opus_decoder_destroy(codec_);
}

size_t OpusDecoding::decode(std::span<const uint8_t> packet, std::span<int16_t> out) {
  if (packet.empty()) {
    throw std::invalid_argument("packet is empty");
  }
  const size_t room = std::min(out.size() / size_t(channels_), size_t(sample_rate_));
  if (room == 0) {
    throw std::out_of_range("out must hold at least one sample per channel");
  }
  return size_t(
      check(opus_decode(codec_, packet.data(), int(std::min<size_t>(packet.size(), 1 << 20)),
                        out.data(), int(room), 0),
            "decode"));
}

size_t OpusDecoding::conceal(std::span<int16_t> out) {
  return recover({}, out);
}

size_t OpusDecoding::recover(std::span<const uint8_t> packet, std::span<int16_t> out) {
  const size_t samples = out.size() / size_t(channels_);
  if (out.size() % size_t(channels_) != 0 || !is_opus_frame(sample_rate_, samples)) {
    throw std::invalid_argument("out must hold the lost frame: 2.5, 5, 10, 20, 40 or 60 ms, not " +
                                std::to_string(out.size()) + " samples");
  }
  const int bytes = int(std::min<size_t>(packet.size(), 1 << 20));
  return size_t(check(opus_decode(codec_, bytes > 0 ? packet.data() : nullptr, bytes, out.data(),
                                  int(samples), bytes > 0 ? 1 : 0),
                      "conceal"));
}

size_t OpusDecoding::external_bytes() const {
  return size_t(opus_decoder_get_size(channels_));
}

}  // namespace mouthpiece
