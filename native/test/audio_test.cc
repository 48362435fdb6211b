// Opus with corrupt packets; resampling at random rates and block sizes.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "core/opus_codec.h"
#include "core/resampler.h"
#include "test_data.h"

using namespace mouthpiece;
using mouthpiece::testing::exact_vector;
using mouthpiece::testing::Random;

TEST_CASE("Opus: every frame length is coded, and corrupt packets are decoded or refused") {
  Random random(7);
  const int rates[] = {8000, 12000, 16000, 24000, 48000};
  for (int round = 0; round < 40; round++) {
    const int rate = rates[random.between(0, 4)], channels = random.between(1, 2);
    OpusEncoding encoder({rate, channels, random.between(6000, 128000), random.between(0, 10),
                          random.between(0, 1) == 1});
    OpusDecoding decoder(rate, channels);
    const int tenths[] = {25, 50, 100, 200, 400, 600};
    for (int i = 0; i < 12; i++) {
      const size_t samples = size_t(rate * tenths[random.between(0, 5)] / 10000);
      auto pcm = exact_vector<int16_t>(samples * size_t(channels));
      for (auto& value : pcm) {
        value = int16_t(random.between(-9000, 9000));
      }
      auto packet = exact_vector<uint8_t>(1500);
      encoder.set_packet_loss(random.between(0, 100));
      packet.resize(encoder.encode(pcm, packet));
      packet.shrink_to_fit();
      auto out = exact_vector<int16_t>(pcm.size());
      REQUIRE(decoder.decode(packet, out) == samples);
      REQUIRE(decoder.conceal(out) == samples);
      // A corrupt packet has changed bytes, is truncated, or is noise.
      for (int k = 0; k < 6; k++) {
        auto bad =
            random.between(0, 2) == 0 ? random.bytes(size_t(random.between(1, 400))) : packet;
        bad.resize(size_t(random.between(1, int(bad.size()))));
        bad.shrink_to_fit();
        for (int flips = random.between(0, 5); flips > 0; flips--) {
          bad[size_t(random.between(0, int(bad.size()) - 1))] = uint8_t(random.between(0, 255));
        }
        auto room = exact_vector<int16_t>(size_t(random.between(1, 6000) * channels));
        try {
          const size_t decoded = decoder.decode(bad, room);
          REQUIRE(decoded * size_t(channels) <= room.size());
        } catch (const std::out_of_range&) {
        } catch (const std::runtime_error&) {
        }
        try {
          decoder.recover(bad, out);
        } catch (const std::runtime_error&) {
        }
      }
    }
    auto room = exact_vector<uint8_t>(100);
    REQUIRE_THROWS_AS(encoder.encode(exact_vector<int16_t>(7), room), std::invalid_argument);
  }
  REQUIRE_THROWS_AS(OpusEncoding({44100, 1}), std::out_of_range);
  REQUIRE_THROWS_AS(OpusDecoding(44100, 1), std::out_of_range);
}

TEST_CASE("Resampler: the output keeps up with the input at any rates and block sizes") {
  Random random(7);
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
      auto input = exact_vector<int16_t>(samples * size_t(channels));
      for (auto& value : input) {
        value = int16_t(random.between(0, 1) ? 32767 : -32768);
      }
      auto output = exact_vector<int16_t>(resampler.max_output(samples) * size_t(channels));
      out += resampler.process(input, output);
      in += samples;
      const double behind = double(in) - double(out) * from / to;
      REQUIRE(behind > -double(from) / to - 1);
      REQUIRE(behind <= double(resampler.latency()) + 1);
    }
  }
  Resampler resampler(16000, 48000, 1, ResamplerQuality::medium);
  auto narrow = exact_vector<int16_t>(29);
  REQUIRE_THROWS_AS(resampler.process(exact_vector<int16_t>(10), narrow), std::out_of_range);
  REQUIRE_THROWS_AS(Resampler(100, 48000, 1, ResamplerQuality::low), std::out_of_range);
}

TEST_CASE("Resampler: a constant input gives the same constant in every phase") {
  Resampler resampler(44100, 48000, 1, ResamplerQuality::medium);
  const std::vector<int16_t> input(4410, 10000);
  std::vector<int16_t> output(4800);
  const size_t count = resampler.process(input, output);
  for (size_t i = 200; i < count; i++) {
    REQUIRE(std::abs(output[i] - 10000) <= 1);
  }
}
