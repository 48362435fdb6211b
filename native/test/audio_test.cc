// Opus on corrupt packets and resampling at random ratios and chunk sizes.
#include <cmath>
#include <stdexcept>

#include "check.h"
#include "core/opus_codec.h"
#include "core/resampler.h"

using namespace mouthpiece;
using mouthpiece::testing::Random;

namespace {

void abuse_opus(Random& random) {
  const int rates[] = {8000, 12000, 16000, 24000, 48000};
  for (int round = 0; round < 40; round++) {
    const int rate = rates[random.between(0, 4)], channels = random.between(1, 2);
    OpusEncoding encoder({rate, channels, random.between(6000, 128000), random.between(0, 10),
                          random.between(0, 1) == 1});
    OpusDecoding decoder(rate, channels);
    const int tenths[] = {25, 50, 100, 200, 400, 600};
    for (int i = 0; i < 12; i++) {
      const size_t samples = size_t(rate * tenths[random.between(0, 5)] / 10000);
      auto pcm = testing::exactly<int16_t>(samples * size_t(channels));
      for (auto& value : pcm) {
        value = int16_t(random.between(-9000, 9000));
      }
      auto packet = testing::exactly<uint8_t>(1500);
      encoder.set_packet_loss(random.between(0, 100));
      packet.resize(encoder.encode(pcm, packet));
      packet.shrink_to_fit();
      auto out = testing::exactly<int16_t>(pcm.size());
      CHECK(decoder.decode(packet, out) == samples);
      CHECK(decoder.conceal(out) == samples);
      // Corrupt: flipped bytes, cut short, or noise altogether.
      for (int k = 0; k < 6; k++) {
        auto bad =
            random.between(0, 2) == 0 ? random.bytes(size_t(random.between(1, 400))) : packet;
        bad.resize(size_t(random.between(1, int(bad.size()))));
        bad.shrink_to_fit();
        for (int flips = random.between(0, 5); flips > 0; flips--) {
          bad[size_t(random.between(0, int(bad.size()) - 1))] = uint8_t(random.between(0, 255));
        }
        auto room = testing::exactly<int16_t>(size_t(random.between(1, 6000) * channels));
        try {
          CHECK(decoder.decode(bad, room) * size_t(channels) <= room.size());
        } catch (const std::out_of_range&) {
        } catch (const std::runtime_error&) {
        }
        try {
          decoder.recover(bad, out);
        } catch (const std::runtime_error&) {
        }
      }
    }
    auto room = testing::exactly<uint8_t>(100);
    CHECK_THROWS(std::invalid_argument, encoder.encode(testing::exactly<int16_t>(7), room));
  }
  CHECK_THROWS(std::out_of_range, OpusEncoding({44100, 1}));
  CHECK_THROWS(std::out_of_range, OpusDecoding(44100, 1));
}

void abuse_resampler(Random& random) {
  for (int round = 0; round < 60; round++) {
    const int rates[] = {8000, 11025, 16000, 22050, 24000, 44100, 48000, 96000};
    const int from = round % 3 ? rates[random.between(0, 7)] : random.between(8000, 96000),
              to = round % 3 ? rates[random.between(0, 7)] : random.between(8000, 96000);
    const int channels = random.between(1, 3);
    Resampler resampler(from, to, channels, ResamplerQuality(random.between(0, 2)));
    size_t in = 0, out = 0;
    for (int i = 0; i < 30; i++) {
      const size_t samples =
          size_t(random.between(0, 3) ? random.between(0, 700) : random.between(0, 5000));
      auto input = testing::exactly<int16_t>(samples * size_t(channels));
      for (auto& value : input) {
        value = int16_t(random.between(0, 1) ? 32767 : -32768);
      }
      auto output = testing::exactly<int16_t>(resampler.max_output(samples) * size_t(channels));
      out += resampler.process(input, output);
      in += samples;
      const double behind = double(in) - double(out) * from / to;
      CHECK(behind > -double(from) / to - 1 && behind <= double(resampler.latency()) + 1);
    }
  }
  Resampler resampler(16000, 48000, 1, ResamplerQuality::medium);
  auto narrow = testing::exactly<int16_t>(29);
  CHECK_THROWS(std::out_of_range, resampler.process(testing::exactly<int16_t>(10), narrow));
  CHECK_THROWS(std::out_of_range, Resampler(100, 48000, 1, ResamplerQuality::low));
}

/** A constant stays that constant in every phase: no tone of the resampler's own. */
void check_dc() {
  Resampler resampler(44100, 48000, 1, ResamplerQuality::medium);
  const std::vector<int16_t> input(4410, 10000);
  std::vector<int16_t> output(4800);
  const size_t count = resampler.process(input, output);
  for (size_t i = 200; i < count; i++) {
    CHECK(std::abs(output[i] - 10000) <= 1);
  }
}

}  // namespace

int main() {
  Random random(7);
  abuse_opus(random);
  abuse_resampler(random);
  check_dc();
  std::puts("audio: ok");
}
