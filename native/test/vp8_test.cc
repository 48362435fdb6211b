// The coder of VP8's inter frames against libvpx's decoder: what it believes a decoder shows is
// what the decoder shows, to the last bit.
#include <doctest/doctest.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/block_change.h"
#include "core/video_encoder.h"
#include "core/vp8_inter_coder.h"
#include "core/vp8_key_coder.h"
#include "core/vp8_prediction.h"
#include "core/vp8_rate_control.h"
#include "test_data.h"

using namespace mouthpiece;
using mouthpiece::testing::Random;

namespace {

class Decoder {
 public:
  Decoder() {
    REQUIRE(vpx_codec_dec_init(&codec_, vpx_codec_vp8_dx(), nullptr, 0) == VPX_CODEC_OK);
  }
  ~Decoder() { vpx_codec_destroy(&codec_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  const vpx_image_t& decode(std::span<const uint8_t> frame) {
    REQUIRE(vpx_codec_decode(&codec_, frame.data(), unsigned(frame.size()), nullptr, 0) ==
            VPX_CODEC_OK);
    vpx_codec_iter_t position = nullptr;
    const vpx_image_t* image = vpx_codec_get_frame(&codec_, &position);
    REQUIRE(image != nullptr);
    return *image;
  }

 private:
  vpx_codec_ctx_t codec_{};
};

bool same(const vpx_image_t& shown, const vp8::Planes& believed, int width, int height) {
  for (size_t p = 0; p < 3; p++) {
    const int across = p == 0 ? width : width / 2, down = p == 0 ? height : height / 2;
    for (int y = 0; y < down; y++) {
      if (std::memcmp(shown.planes[p] + y * shown.stride[p],
                      believed.data[p] + y * believed.stride[p], size_t(across)) != 0) {
        return false;
      }
    }
  }
  return true;
}

/** Waves that move, with noise of some strength. */
void draw(std::vector<uint8_t>& picture, int width, int height, int frame, int noise,
          Random& random) {
  for (size_t i = 0; i < picture.size(); i++) {
    const int x = int(i) % width + frame * 3, y = int(i) / width - frame;
    const int wave = int(60 * std::sin(x * .11) + 50 * std::sin(y * .07 + x * .02));
    picture[i] = uint8_t(std::clamp(128 + wave + random.between(-noise, noise), 0, 255));
  }
  REQUIRE(width * height <= int(picture.size()));
}

}  // namespace

TEST_CASE("a decoder shows what the coder believes, whatever moves where") {
  Random random(17);
  vp8::Scratch scratch;
  for (int clip = 0; clip < 24; clip++) {
    const int width = 2 * random.between(8, 90), height = 2 * random.between(8, 90);
    const size_t blocks = macroblocks(width, height);
    std::vector<uint8_t> picture(i420_bytes(width, height)), active(blocks),
        out(picture.size() * 2 + 4096);
    const int noise = random.between(0, 3) * 40, kbps = random.between(20, 2000);
    draw(picture, width, height, 0, noise, random);
    vp8::KeyCoder key(width, height);
    Decoder decoder;
    vp8::InterCoder coder(width, height);
    vp8::RateControl rate(kbps, 30);
    const auto first = key.code(picture, kbps);
    decoder.decode(first);
    coder.start(key.decoded());
    rate.key_frame_sent(first.size(), key.quantizer());
    const bool told = random.between(0, 1) == 1;
    const int far = random.between(1, 3) == 1 ? 400 : 12;
    std::vector<vp8::Motion> motion(told ? blocks : 0);
    for (int frame = 1; frame < 12; frame++) {
      draw(picture, width, height, frame, noise, random);
      for (auto& block : active) {
        block = std::array{UNCHANGED, DRAWN, DRAWN, SHIFTED}[size_t(random.between(0, 3))];
      }
      for (auto& block : motion) {
        block = {int16_t(random.between(-far, far)), int16_t(random.between(-far, far))};
      }
      const size_t bytes = coder.code(picture, active, motion, rate, scratch, out);
      REQUIRE(same(decoder.decode({out.data(), bytes}), coder.decoded(), width, height));
    }
  }
}

TEST_CASE("whatever blocks are shifted, every frame can be decoded") {
  Random random(23);
  for (int clip = 0; clip < 8; clip++) {
    const int width = 2 * random.between(8, 60), height = 2 * random.between(8, 60);
    const size_t blocks = macroblocks(width, height);
    const auto encoder = make_vp8_encoder({width, height, 30, 300});
    Decoder decoder;
    std::vector<uint8_t> picture(i420_bytes(width, height)), dirty(blocks),
        out(picture.size() * 2 + 4096);
    std::vector<int16_t> motion(2 * blocks);
    for (int frame = 0; frame < 10; frame++) {
      draw(picture, width, height, frame, 20, random);
      for (auto& block : dirty) {
        block = uint8_t(random.between(UNCHANGED, SHIFTED));
      }
      for (auto& component : motion) {
        component = int16_t(random.between(-500, 500));
      }
      const bool told = random.between(0, 3) > 0;
      const auto coded =
          encoder->encode(picture, out, random.between(0, 3) == 0, dirty,
                          told ? std::span<const int16_t>(motion) : std::span<const int16_t>());
      decoder.decode({out.data(), coded.bytes});
    }
  }
}

TEST_CASE("what moves keeps its shade, and needs no residual for fine texture") {
  constexpr int SIDE = 128, STEP = 4;
  Random random(5);
  vp8::Scratch scratch;
  std::vector<uint8_t> picture(i420_bytes(SIDE, SIDE), 128), active(macroblocks(SIDE, SIDE), 1),
      out(1 << 16);
  const auto draw_frame = [&](int frame, int shade) {
    for (int i = 0; i < SIDE * SIDE; i++) {
      const int x = i % SIDE - frame * STEP, y = i / SIDE;
      const int wave = int(50 * std::sin(x * .21) + 40 * std::sin(y * .17));
      picture[size_t(i)] = uint8_t(128 + wave + shade + random.between(-4, 4));
    }
  };
  const std::vector<vp8::Motion> motion(active.size(), {-4 * STEP, 0});
  draw_frame(0, 0);
  vp8::KeyCoder key(SIDE, SIDE);
  vp8::InterCoder coder(SIDE, SIDE);
  vp8::RateControl rate(2000, 30);
  const auto first = key.code(picture, 2000);
  coder.start(key.decoded());
  rate.key_frame_sent(first.size(), key.quantizer());
  draw_frame(1, 0);
  const size_t texture = coder.code(picture, active, motion, rate, scratch, out);
  draw_frame(2, 3);
  const size_t shaded = coder.code(picture, active, motion, rate, scratch, out);
  // The column of blocks that comes into the picture is new, and is coded in any case.
  CHECK(shaded > 2 * texture);
  const vp8::Planes shown = coder.decoded();
  int missing = 0;
  for (int i = 0; i < SIDE * SIDE; i++) {
    missing += picture[size_t(i)] - shown.data[0][i / SIDE * shown.stride[0] + i % SIDE];
  }
  CHECK(std::abs(missing) < SIDE * SIDE / 2);
}

TEST_CASE("the predictions of this processor are those of the portable version") {
  constexpr int STRIDE = 48;
  Random random{7};
  std::vector<uint8_t> u(STRIDE * 40), v(u.size()), picture(u.size());
  const vp8::Predictor &portable = vp8::PREDICTOR_PORTABLE, &fastest = vp8::choose_predictor();
  for (int round = 0; round < 6; round++) {
    for (std::vector<uint8_t>* plane : {&u, &v, &picture}) {
      for (uint8_t& pixel : *plane) {
        // Extremes too: what the filters overshoot is clamped.
        pixel = uint8_t(round < 3 ? random.between(0, 255) : random.between(0, 1) * 255);
      }
    }
    const uint8_t *of_u = u.data() + 8 * STRIDE + 8, *of_v = v.data() + 8 * STRIDE + 8,
                  *shown = picture.data() + 8 * STRIDE + 8;
    for (int x = 0; x < 8; x++) {
      for (int y = 0; y < 8; y++) {
        std::vector<uint8_t> expected(vp8::BLOCK_BYTES), found(vp8::BLOCK_BYTES);
        portable.luma(of_u, STRIDE, x, y, expected.data());
        fastest.luma(of_u, STRIDE, x, y, found.data());
        portable.chroma(of_u, of_v, STRIDE, x, y, expected.data() + vp8::LUMA_BYTES);
        fastest.chroma(of_u, of_v, STRIDE, x, y, found.data() + vp8::LUMA_BYTES);
        CHECK(expected == found);
        for (const int side : {16, 8}) {
          CHECK(portable.squared_error(shown, STRIDE, found.data(), side) ==
                fastest.squared_error(shown, STRIDE, found.data(), side));
        }
        CHECK(portable.absolute_error(shown, STRIDE, found.data(), 16) ==
              fastest.absolute_error(shown, STRIDE, found.data(), 16));
      }
    }
  }
}
