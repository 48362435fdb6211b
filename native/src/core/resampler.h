// Sample rate conversion for streams: little and constant latency, no block structure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mouthpiece {

/** low: 60 dB, flat to 0.70 of the lower rate's half; medium: 80 dB, 0.79; high: 96 dB, 0.87. */
enum class ResamplerQuality { low, medium, high };

/**
 * Polyphase FIR with a Kaiser-windowed sinc (Smith, "Digital Audio Resampling", and Kaiser's design
 * formulas). Output sample k is the input's value at exactly k * input_rate / output_rate: there is
 * no phase shift, only a wait for the filter's second half (latency). libsoxr's filters work on DFT
 * blocks and hold back 40 to 170 ms, which is why this exists.
 */
class Resampler {
 public:
  static constexpr int MIN_RATE = 8000, MAX_RATE = 192000, MAX_CHANNELS = 8;

  /** @throws std::out_of_range for rates or channels outside the limits above */
  Resampler(int input_rate, int output_rate, int channels, ResamplerQuality quality);

  /**
   * Takes all of `input` (interleaved) and writes what is ready.
   * @returns samples per channel written
   * @throws std::invalid_argument for a half sample frame, std::out_of_range when `out` holds less
   * than max_output()
   */
  size_t process(std::span<const int16_t> input, std::span<int16_t> out);
  /** The most that `process` writes for so many input samples per channel: ceil(samples *
   * output_rate / input_rate). */
  size_t max_output(size_t samples) const;
  /** Forgets the signal so far. */
  void reset();
  int channels() const { return channels_; }
  /** How far the output is behind, in input samples. */
  size_t latency() const { return taps_ / 2; }
  size_t external_bytes() const;

 private:
  void design(ResamplerQuality quality);
  void filter(std::span<int16_t> out, size_t count);

  int input_rate_, output_rate_, channels_;
  int64_t up_, down_;        // output_rate : input_rate in lowest terms
  size_t taps_ = 0;          // per phase; a multiple of 8
  size_t phases_ = 0;        // up_, or fewer with interpolation between two when up_ is large
  std::vector<float> bank_;  // (phases_ + 1) x taps_
  size_t history_ = 0;       // samples per channel kept in buffer_
  int64_t position_ =
      0;  // of the next output sample, in 1/up_ input samples from the buffer's begin
  size_t capacity_ = 0;
  std::vector<std::vector<float>> buffer_;  // per channel
};

}  // namespace mouthpiece
