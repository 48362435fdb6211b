// Both video encoders at random sizes, bitrates, dirty maps and output sizes.
#include <doctest/doctest.h>

#include <stdexcept>

#include "core/colour.h"
#include "core/video_encoder.h"
#include "test_data.h"

using namespace mouthpiece;
using mouthpiece::testing::exact_vector;
using mouthpiece::testing::Random;

namespace {

/**
 * Encodes frames of noise and of single colours, with bitrate changes, inaccurate dirty maps and
 * buffers that are too small.
 * @param key_odds one frame in this many is forced to be a key frame. From the 60th frame after a
 * key frame on, a frame without changes is coded as a repetition.
 */
void encode_extremes(std::unique_ptr<VideoEncoder> encoder, Random& random, int frames,
                     int key_odds = 10) {
  const auto& [width, height, fps, kbps] = encoder->settings();
  auto picture = exact_vector<uint8_t>(i420_bytes(width, height));
  auto dirty = exact_vector<uint8_t>(macroblocks(width, height));
  auto rgba = random.bytes(size_t(width) * size_t(height) * 4);
  bool wants_key = true;
  for (int i = 0; i < frames; i++) {
    // Half of the frames are noise, the others of one colour. The dirty map is wrong for both: that
    // may cost quality but must do no other harm.
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
    auto out = exact_vector<uint8_t>(size_t(
        random.between(0, 8 * key_odds) < 10 ? random.between(0, 60) : width * height * 4 + 4096));
    const bool force_key = random.between(1, key_odds) == 1;
    try {
      const EncodedFrame frame = encoder->encode(
          picture, out, force_key,
          random.between(0, 1) ? std::span<const uint8_t>(dirty) : std::span<const uint8_t>());
      REQUIRE(frame.bytes > 0);
      REQUIRE(frame.bytes <= out.size());
      REQUIRE((frame.is_key || !(force_key || wants_key)));
      wants_key = false;
    } catch (const std::out_of_range&) {
      REQUIRE(out.size() <= 60);
      wants_key = true;  // after a lost frame the encoder must send a key frame
    }
  }
}

}  // namespace

TEST_CASE("encoders take any even size, bitrate, dirty map and output size") {
  Random random(2026);
  for (int i = 0; i < 30; i++) {
    const VideoSettings settings{random.between(8, 120) * 2, random.between(8, 120) * 2,
                                 random.between(1, 60), random.between(10, 3000)};
    encode_extremes(make_vp8_encoder(settings), random, 25);
    encode_extremes(make_h264_encoder(settings), random, 25);
  }
  for (int i = 0; i < 6; i++) {
    const VideoSettings settings{random.between(8, 60) * 2, random.between(8, 60) * 2, 30,
                                 random.between(50, 800)};
    encode_extremes(make_vp8_encoder(settings), random, 250, 200);
    encode_extremes(make_h264_encoder(settings), random, 250, 200);
  }
  for (const auto make : {make_vp8_encoder, make_h264_encoder}) {
    encode_extremes(make({1280, 720, 30, 1500}), random, 3);
  }
}

// Widths that are no multiple of any SIMD vector.
TEST_CASE("a colour survives the conversion from RGBA to I420 and back") {
  for (const int width : {2, 6, 34, 66}) {
    const int height = width + 2;
    auto rgba = exact_vector<uint8_t>(size_t(width) * size_t(height) * 4);
    auto i420 = exact_vector<uint8_t>(i420_bytes(width, height));
    std::fill(rgba.begin(), rgba.end(), uint8_t(200));
    rgba_to_i420(rgba.data(), width, height, i420.data());
    i420_to_rgba(i420.data(), width, height, rgba.data());
    for (size_t p = 0; p < rgba.size(); p++) {
      REQUIRE((rgba[p] == 255 || (rgba[p] > 195 && rgba[p] < 205)));
    }
  }
}
