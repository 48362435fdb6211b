// Fuzz target: Opus with any packets and settings, resamplers of any rates, the mel front end.
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "core/mel.h"
#include "core/opus_codec.h"
#include "core/resampler.h"
#include "input.h"

using namespace mouthpiece;
using mouthpiece::fuzzing::Input;

namespace {

constexpr size_t LONGEST_PACKET_SAMPLES = 16'000 * 120 / 1000;

/**
 * Runs `work`, which may throw what the core documents for wrong input. Other exceptions are bugs.
 */
template <class Work>
void allow_documented_errors(Work work) {
  try {
    work();
  } catch (const std::invalid_argument&) {
  } catch (const std::out_of_range&) {
  } catch (const std::runtime_error&) {
  }
}

void demand(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void decode(Input& input) {
  const int rates[] = {8000, 12'000, 16'000, 24'000, 48'000, 44'100};
  allow_documented_errors([&] {
    const int rate = rates[input.take<uint8_t>() % 6], channels = input.take<uint8_t>() % 4;
    OpusDecoding decoder(rate, channels);
    while (!input.empty()) {
      const auto kind = input.take<uint8_t>();
      const auto packet = input.bytes(input.take<uint8_t>());
      std::vector<int16_t> out(kind & 4 ? LONGEST_PACKET_SAMPLES * 6
                                        : input.take<uint16_t>() % 4000);
      allow_documented_errors([&] {
        const size_t samples = kind % 4 == 0   ? decoder.conceal(out)
                               : kind % 4 == 1 ? decoder.recover(packet, out)
                                               : decoder.decode(packet, out);
        demand(samples * size_t(channels) <= out.size());
      });
    }
  });
}

void encode(Input& input) {
  allow_documented_errors([&] {
    const auto rate = input.take<uint16_t>();
    OpusEncoding encoder({rate % 4 == 0 ? 16'000 : int(rate), input.take<uint8_t>() % 4,
                          input.take<int32_t>(), input.take<int8_t>(), (rate & 1) != 0});
    while (!input.empty()) {
      encoder.set_bitrate(input.take<int32_t>());
      encoder.set_packet_loss(input.take<int8_t>());
      std::vector<int16_t> pcm(input.take<uint8_t>() % 2 ? 320 : input.take<uint16_t>() % 3000);
      for (size_t i = 0; i < pcm.size() && i < 64; i++) {
        pcm[i] = input.take<int16_t>();
      }
      std::vector<uint8_t> out(input.take<uint16_t>() % 1500);
      allow_documented_errors([&] { demand(encoder.encode(pcm, out) <= out.size()); });
    }
  });
}

void resample(Input& input) {
  allow_documented_errors([&] {
    const int from = int(input.take<uint16_t>()) * 4, to = int(input.take<uint16_t>()) * 4,
              channels = input.take<uint8_t>() % 10;
    Resampler resampler(from, to, channels, ResamplerQuality(input.take<uint8_t>() % 3));
    while (!input.empty()) {
      std::vector<int16_t> in(input.take<uint16_t>() % 2000);
      for (size_t i = 0; i < in.size() && i < 64; i++) {
        in[i] = input.take<int16_t>();
      }
      const size_t most = resampler.max_output(in.size() / size_t(channels)) * size_t(channels);
      std::vector<int16_t> out(input.take<uint8_t>() == 0 ? most / 2 : most);
      allow_documented_errors(
          [&] { demand(resampler.process(in, out) * size_t(channels) <= out.size()); });
      if (input.take<uint8_t>() == 0) {
        resampler.reset();
      }
    }
  });
}

void extract_features(Input& input) {
  MelFrontEnd front;
  while (!input.empty()) {
    std::vector<int16_t> pcm(3u + input.take<uint16_t>() % (MEL_MAX_STEP_SAMPLES - 2u));
    for (size_t i = 0; i < pcm.size() && !input.empty(); i++) {
      pcm[i] = input.take<int16_t>();
    }
    std::vector<float> out(MEL_FRAMES_PER_STEP * MEL_BANDS);
    front.step(pcm.data(), pcm.size(), out.data());
    for (const float value : out) {
      demand(std::isfinite(value));
    }
    if (pcm[0] == 7) {
      front.reset();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  switch (input.take<uint8_t>() % 4) {
    case 0:
      decode(input);
      break;
    case 1:
      encode(input);
      break;
    case 2:
      resample(input);
      break;
    default:
      extract_features(input);
  }
  return 0;
}
