// What several threads do at once in one process: workers that draw, code and listen, and libuv's
// pool that prepares for them. Run under ThreadSanitizer (test/native/races.test.ts), and under
// ASan as all tests.
#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "core/face_renderer.h"
#include "core/mel.h"
#include "core/opus_codec.h"
#include "core/resampler.h"
#include "core/video_encoder.h"
#include "face_maker.h"

using namespace mouthpiece;
using mouthpiece::testing::Random;

namespace {

constexpr int THREADS = 3, FRAMES = 6, SIDE = 64;

/** All threads begin together: what is made once per process is then asked for by several at a
 * time. */
void together(const auto& work) {
  std::atomic<int> waiting = THREADS;
  std::vector<std::thread> threads;
  for (int index = 0; index < THREADS; index++) {
    threads.emplace_back([&, index] {
      waiting--;
      while (waiting > 0) {
        std::this_thread::yield();
      }
      work(index);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

/** Sessions of one face share its model. */
void draw() {
  Random random(1);
  const auto bytes = mouthpiece::testing::make_asset(random, 0);
  const face::Asset asset = face::parse_asset(bytes);
  // Derived by another thread than those that draw, as FaceAsset.prepare does.
  auto derived = std::async(std::launch::async, [&] { return face::build_model(asset); });
  const face::Model model = derived.get();
  together([&](int index) {
    face::Renderer renderer(model);
    std::vector<uint8_t> picture(renderer.picture_bytes()), dirty(renderer.macroblocks());
    renderer.set_emotion(index % face::EMOTIONS, 1);
    for (int frame = 0; frame < FRAMES; frame++) {
      face::Articulation articulation{};
      articulation.open = articulation.jaw = float(frame % 3) / 2;
      face::Pose pose{};
      pose.yaw = float(frame) / 100;
      renderer.render(articulation, pose, picture, dirty);
    }
  });
}

/** Two files are derived at a time, on two threads of the pool. */
void derive() {
  together([](int index) {
    Random random(uint32_t(index) + 1);
    const auto bytes = mouthpiece::testing::make_asset(random, 0);
    CHECK(face::build_model(face::parse_asset(bytes)).columns > 0);
  });
}

/** The first picture is coded on the pool, the others by the worker; still pictures are made once
 * for all. */
void code() {
  together([](int index) {
    for (const auto make : {make_vp8_encoder, make_h264_encoder}) {
      const auto encoder = make({SIDE, SIDE, 30, 300 + 100 * index});
      std::vector<uint8_t> picture(i420_bytes(SIDE, SIDE), 100), out(1 << 16),
          still(macroblocks(SIDE, SIDE));
      const auto prepare = [&] { return encoder->encode(picture, out, true, {}); };
      CHECK(std::async(std::launch::async, prepare).get().is_key);
      for (int frame = 0; frame < FRAMES; frame++) {
        const bool moves = frame % 2 == 0;
        if (moves) {
          picture[size_t(frame)] ^= 64;
        }
        encoder->encode(picture, out, false, moves ? std::span<const uint8_t>{} : still);
      }
    }
  });
}

void hear() {
  together([](int index) {
    std::vector<int16_t> pcm(320), heard(1920 * 2), wide(960);
    for (size_t i = 0; i < pcm.size(); i++) {
      pcm[i] = int16_t(i * size_t(index + 3) % 2000);
    }
    std::vector<uint8_t> packet(400);
    OpusEncoding encoder({16'000, 1});
    OpusDecoding decoder(16'000, 1);
    Resampler resampler(16'000, 48'000, 1, ResamplerQuality::medium);
    MelFrontEnd front;
    float features[MEL_FRAMES_PER_STEP * MEL_BANDS];
    for (int frame = 0; frame < FRAMES; frame++) {
      const size_t bytes = encoder.encode(pcm, packet);
      CHECK(decoder.decode({packet.data(), bytes}, heard) == pcm.size());
      resampler.process(pcm, wide);
      front.step(pcm.data(), pcm.size(), features);
    }
  });
}

}  // namespace

int main() {
  derive();
  draw();
  code();
  hear();
  return 0;
}
