// Fuzz target: the H.264 repeater with any stream, and both encoders with any size and settings,
// without access out of bounds.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "core/h264_repeater.h"
#include "core/video_encoder.h"
#include "input.h"

using namespace mouthpiece;
using mouthpiece::fuzzing::Input;

namespace {

void demand(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void repeat(Input& input) {
  H264Repeater repeater(input.take<uint16_t>() % 5000);
  while (!input.empty()) {
    const auto kind = input.take<uint8_t>();
    const auto frame = input.bytes(input.take<uint16_t>() % 2048);
    std::vector<uint8_t> out(frame.begin(), frame.end());
    out.resize(frame.size() + kind / 4);
    repeater.renumber(out, frame.size(), (kind & 1) != 0);
    if ((kind & 2) != 0) {
      demand(repeater.repeat().size() < 1 << 16);
    }
  }
}

/** Encodes a few small pictures, because opening an encoder takes milliseconds. */
void encode(Input& input) {
  const auto size = [&] { return 2 * (input.take<uint8_t>() % 40); };
  const int width = size(), height = size();
  const auto kind = input.take<uint8_t>();
  try {
    const VideoSettings settings{width, height, 1 + input.take<uint8_t>() % 60,
                                 input.take<uint16_t>() % 3000};
    const auto encoder = (kind & 1) != 0 ? make_vp8_encoder(settings) : make_h264_encoder(settings);
    for (int frame = 0; frame < 4 && !input.empty(); frame++) {
      std::vector<uint8_t> picture(i420_bytes(width, height), input.take<uint8_t>());
      const auto pixels = input.bytes(64);
      std::copy_n(pixels.begin(), std::min(pixels.size(), picture.size()), picture.begin());
      std::vector<uint8_t> dirty((kind & 2) != 0 ? macroblocks(width, height) : 0,
                                 input.take<uint8_t>() & 1);
      std::vector<uint8_t> out((kind & 4) != 0 ? input.take<uint16_t>() : 1 << 16);
      if ((kind & 8) != 0) {
        encoder->set_bitrate(input.take<uint16_t>());
      }
      try {
        demand(encoder->encode(picture, out, (input.take<uint8_t>() & 1) != 0, dirty).bytes <=
               out.size());
      } catch (const std::out_of_range&) {
        // `out` is too small.
      }
    }
  } catch (const std::exception&) {
    // The codec does not support the size or the rate.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  if (input.take<uint8_t>() % 2 == 0) {
    repeat(input);
  } else {
    encode(input);
  }
  return 0;
}
