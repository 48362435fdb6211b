// Concurrent use of the core: several worker threads render, encode and decode while other threads
// (libuv's pool in the server) prepare faces and encoders. Runs under ThreadSanitizer
// (test/native/races.test.ts) and, as all tests, under AddressSanitizer.
#include <doctest/doctest.h>

#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "core/face_renderer.h"
#include "core/mel.h"
#include "core/opus_codec.h"
#include "core/resampler.h"
#include "core/video_encoder.h"
#include "face_fixture.h"
#include "test_data.h"

using namespace mouthpiece;
using mouthpiece::testing::Random;

namespace {

constexpr int THREADS = 3, FRAMES = 6, SIDE = 64;

/**
 * Runs `work(index)` on THREADS threads that start at the same moment, so that several ask for the
 * tables that are built once per process.
 */
void run_concurrently(const auto& work) {
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

}  // namespace

// Two faces may be prepared at a time, on two threads of the pool.
TEST_CASE("models are built concurrently") {
  std::atomic<int> built = 0;
  run_concurrently([&](int index) {
    Random random(uint32_t(index) + 1);
    const auto bytes = mouthpiece::testing::make_asset(random, 0);
    built += face::build_model(face::parse_asset(bytes)).columns > 0;
  });
  REQUIRE(built == THREADS);
}

// Sessions with the same face share its model.
TEST_CASE("renderers share a model that another thread built") {
  Random random(1);
  const auto bytes = mouthpiece::testing::make_asset(random, 0);
  const face::Asset asset = face::parse_asset(bytes);
  // As FaceAsset.prepare does.
  auto built = std::async(std::launch::async, [&] { return face::build_model(asset); });
  const face::Model model = built.get();
  run_concurrently([&](int index) {
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

// The first picture is encoded on the pool, the others by the worker. The frame that repeats a
// picture is made once per process and size.
TEST_CASE("encoders prepared on another thread encode concurrently") {
  std::atomic<int> keys = 0;
  run_concurrently([&](int index) {
    for (const auto make : {make_vp8_encoder, make_h264_encoder}) {
      const auto encoder = make({SIDE, SIDE, 30, 300 + 100 * index});
      std::vector<uint8_t> picture(i420_bytes(SIDE, SIDE), 100), out(1 << 16),
          still(macroblocks(SIDE, SIDE));
      const auto prepare = [&] { return encoder->encode(picture, out, true, {}); };
      keys += std::async(std::launch::async, prepare).get().is_key;
      for (int frame = 0; frame < FRAMES; frame++) {
        const bool moves = frame % 2 == 0;
        if (moves) {
          picture[size_t(frame)] ^= 64;
        }
        encoder->encode(picture, out, false, moves ? std::span<const uint8_t>{} : still);
      }
    }
  });
  REQUIRE(keys == 2 * THREADS);
}

TEST_CASE("audio codecs, resamplers and feature front ends run concurrently") {
  std::atomic<int> decoded = 0;
  run_concurrently([&](int index) {
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
      decoded += decoder.decode({packet.data(), bytes}, heard) == pcm.size();
      resampler.process(pcm, wide);
      front.step(pcm.data(), pcm.size(), features);
    }
  });
  REQUIRE(decoded == THREADS * FRAMES);
}
