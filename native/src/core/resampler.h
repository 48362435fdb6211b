// Sample rate conversion for streams, with a small constant latency.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mouthpiece {

/**
 * Attenuation in the stop band, and the end of the pass band as a share of half the lower rate:
 * low 60 dB, 0.70; medium 80 dB, 0.79; high 96 dB, 0.87.
 */
enum class ResamplerQuality { low, medium, high };

/**
 * Polyphase FIR filter with a Kaiser-windowed sinc (J. O. Smith, "Digital Audio Resampling Home
 * Page"; J. F. Kaiser 1974 for the window's design formulas). Output sample k is the input's value
 * at k * input_rate / output_rate: there is no phase shift, only the delay of half the filter.
 *
 * libsoxr is not used because its filters work on DFT blocks and hold back 40 to 170 ms (measured).
 */
class Resampler {
 public:
  static constexpr int MIN_RATE = 8000, MAX_RATE = 192000, MAX_CHANNELS = 8;

  /**
   * @param input_rate, output_rate Hz, MIN_RATE to MAX_RATE
   * @param channels 1 to MAX_CHANNELS
   * @throws std::out_of_range outside these limits
   */
  Resampler(int input_rate, int output_rate, int channels, ResamplerQuality quality);

  /**
   * Consumes all of `input` and writes the output samples that are ready.
   * @param input, out interleaved 16-bit samples
   * @returns samples per channel written
   * @throws std::invalid_argument when `input` ends within a sample frame, std::out_of_range when
   * `out` holds fewer than max_output() samples per channel
   */
  size_t process(std::span<const int16_t> input, std::span<int16_t> out);
  /**
   * @returns the most that `process` writes for `samples` input samples per channel:
   * ceil(samples * output_rate / input_rate)
   */
  size_t max_output(size_t samples) const;
  /** Discards the signal so far: the next sample is a stream's first. */
  void reset();
  /** @returns the delay of the output, input samples */
  size_t latency() const { return taps_ / 2; }
  size_t external_bytes() const;

 private:
  void design(ResamplerQuality quality);
  void filter(std::span<int16_t> out, size_t count);

  int input_rate_, output_rate_, channels_;
  int64_t up_, down_;        // output_rate : input_rate in lowest terms
  size_t taps_ = 0;          // of each phase; a multiple of 8
  size_t phases_ = 0;        // up_, or INTERPOLATED_PHASES when up_ exceeds MAX_PHASES
  std::vector<float> bank_;  // (phases_ + 1) x taps_
  size_t history_ = 0;       // samples per channel kept in buffer_
  int64_t position_ =
      0;  // of the next output sample, in 1/up_ input samples from the buffer's begin
  size_t capacity_ = 0;
  std::vector<std::vector<float>> buffer_;  // per channel
};

}  // namespace mouthpiece
