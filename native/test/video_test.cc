// Both video encoders at random sizes, bitrates, dirty maps and output sizes.
#include <stdexcept>

#include "check.h"
#include "core/colour.h"
#include "core/video_encoder.h"

using namespace mouthpiece;
using mouthpiece::testing::Random;

namespace {

/** @param key_odds one frame in so many is to be a key frame; from the 60th after one, frames in
 * which nothing has changed are repetitions */
void abuse(std::unique_ptr<VideoEncoder> encoder, Random& random, int frames, int key_odds = 10) {
  const auto& [width, height, fps, kbps, speed] = encoder->settings();
  auto picture = testing::exactly<uint8_t>(i420_bytes(width, height));
  auto dirty = testing::exactly<uint8_t>(macroblocks(width, height));
  auto rgba = random.bytes(size_t(width) * size_t(height) * 4);
  bool wants_key = true;
  for (int i = 0; i < frames; i++) {
    // Half of the frames are noise, the others smooth; the map is honest about neither, which must
    // only cost quality.
    if (random.between(0, 1)) {
      rgba_to_i420(rgba.data(), width, height, picture.data());
    } else {
      std::fill(picture.begin(), picture.end(), uint8_t(random.between(0, 255)));
    }
    const bool still = random.between(0, 2) == 0;
    for (auto& block : dirty) {
      block = uint8_t(!still && random.between(0, 3) == 0);
    }
    if (random.between(0, 4) == 0) {
      encoder->set_bitrate(random.between(10, 5000));
    }
    auto out = testing::exactly<uint8_t>(size_t(
        random.between(0, 8 * key_odds) < 10 ? random.between(0, 60) : width * height * 4 + 4096));
    const bool force_key = random.between(1, key_odds) == 1;
    try {
      const EncodedFrame frame = encoder->encode(
          picture, out, force_key,
          random.between(0, 1) ? std::span<const uint8_t>(dirty) : std::span<const uint8_t>());
      CHECK(frame.bytes > 0 && frame.bytes <= out.size());
      CHECK(frame.is_key || !(force_key || wants_key));
      wants_key = false;
    } catch (const std::out_of_range&) {
      CHECK(out.size() <= 60);
      wants_key = true;  // the encoder owes one after a frame that got lost
    }
  }
}

}  // namespace

int main() {
  Random random(2026);
  for (int i = 0; i < 30; i++) {
    const VideoSettings settings{random.between(8, 120) * 2, random.between(8, 120) * 2,
                                 random.between(1, 60), random.between(10, 3000),
                                 random.between(-16, -4)};
    abuse(make_vp8_encoder(settings), random, 25);
    abuse(make_h264_encoder(settings), random, 25);
  }
  for (int i = 0; i < 6; i++) {
    const VideoSettings settings{random.between(8, 60) * 2, random.between(8, 60) * 2, 30,
                                 random.between(50, 800), -12};
    abuse(make_vp8_encoder(settings), random, 250, 200);
    abuse(make_h264_encoder(settings), random, 250, 200);
  }
  for (const auto make : {make_vp8_encoder, make_h264_encoder}) {
    abuse(make({1280, 720, 30, 1500, -12}), random, 3);
  }

  // Colours there and back, at sizes that are no multiple of any vector.
  for (const int width : {2, 6, 34, 66}) {
    const int height = width + 2;
    auto rgba = testing::exactly<uint8_t>(size_t(width) * size_t(height) * 4);
    auto i420 = testing::exactly<uint8_t>(i420_bytes(width, height));
    std::fill(rgba.begin(), rgba.end(), uint8_t(200));
    rgba_to_i420(rgba.data(), width, height, i420.data());
    i420_to_rgba(i420.data(), width, height, rgba.data());
    for (size_t p = 0; p < rgba.size(); p++) {
      CHECK(rgba[p] == 255 || (rgba[p] > 195 && rgba[p] < 205));
    }
  }
  std::puts("video: ok");
}
