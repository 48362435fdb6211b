// Polyphase sample rate conversion (see resampler.h).
#include "core/resampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <string>

namespace mouthpiece {

namespace {

using std::numbers::pi;

/**
 * Input samples per channel filtered at a time. Bounds the buffer for any block size of the caller.
 */
constexpr size_t BLOCK = 1024;
/**
 * With more phases than this, two neighbouring ones are interpolated; the error is below -90 dB.
 */
constexpr int64_t MAX_PHASES = 640;
constexpr size_t INTERPOLATED_PHASES = 256;

struct Design {
  int zero_crossings;  // of the sinc, on each side
  double attenuation;  // dB, in the stop band
};
constexpr Design DESIGNS[] = {{12, 60}, {24, 80}, {48, 96}};

/** Modified Bessel function of the first kind, order 0, by its power series. */
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-12; k++) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

// Portable vectors of GCC and Clang: 16 bytes are one SSE or NEON register.
using Lanes __attribute__((vector_size(16))) = float;

Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

float dot(const float* a, const float* b, size_t count) {
  Lanes even{}, odd{};
  for (size_t i = 0; i < count; i += 8) {
    even += load(a + i) * load(b + i);
    odd += load(a + i + 4) * load(b + i + 4);
  }
  const Lanes sum = even + odd;
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

int16_t to_s16(float value) {
  return int16_t(std::lrintf(std::clamp(value, -32768.f, 32767.f)));
}

}  // namespace

Resampler::Resampler(int input_rate, int output_rate, int channels, ResamplerQuality quality)
    : input_rate_(input_rate), output_rate_(output_rate), channels_(channels) {
  for (const int rate : {input_rate, output_rate}) {
    if (rate < MIN_RATE || rate > MAX_RATE) {
      throw std::out_of_range("rates must be from 8000 to 192000 Hz, not " + std::to_string(rate));
    }
  }
  if (channels < 1 || channels > MAX_CHANNELS) {
    throw std::out_of_range("channels must be from 1 to 8, not " + std::to_string(channels));
  }
  const int divisor = std::gcd(input_rate, output_rate);
  up_ = output_rate / divisor;
  down_ = input_rate / divisor;
  design(quality);
  capacity_ = taps_ + BLOCK;
  buffer_.assign(size_t(channels), std::vector<float>(capacity_));
  reset();
}

void Resampler::design(ResamplerQuality quality) {
  const Design& design = DESIGNS[int(quality)];
  const double scale =
      std::min(1.0, double(output_rate_) / input_rate_);  // the lower rate, in input rates
  const size_t half = size_t(std::ceil(design.zero_crossings / scale));
  taps_ = (2 * half + 7) / 8 * 8;
  phases_ = up_ <= MAX_PHASES ? size_t(up_) : INTERPOLATED_PHASES;
  // Kaiser's formula: a window of N samples with A dB attenuation has a transition band of
  // (A - 8) / (2.285 N) radians. The whole band lies below half the lower rate.
  const double beta = 0.1102 * (design.attenuation - 8.7);
  const double transition =
      (design.attenuation - 8) / (2.285 * 2 * design.zero_crossings) / (2 * pi);
  const double cutoff = (0.5 - transition / 2) * scale;  // cycles per input sample
  const double reach = double(taps_) / 2, norm = 1 / bessel_i0(beta);
  bank_.resize((phases_ + 1) * taps_);
  for (size_t phase = 0; phase <= phases_; phase++) {
    float* row = &bank_[phase * taps_];
    double sum = 0;
    for (size_t tap = 0; tap < taps_; tap++) {
      const double t = double(tap) - (reach - 1) -
                       double(phase) / double(phases_);  // input samples from the output's place
      const double r = t / reach;
      const double window = std::abs(r) < 1 ? bessel_i0(beta * std::sqrt(1 - r * r)) * norm : 0;
      const double x = 2 * pi * cutoff * t;
      const double value = window * 2 * cutoff * (std::abs(x) < 1e-9 ? 1 : std::sin(x) / x);
      row[tap] = float(value);
      sum += value;
    }
    for (size_t tap = 0; tap < taps_; tap++) {
      // Unity gain at 0 Hz in every phase. Otherwise a constant input would give a tone.
      row[tap] = float(row[tap] / sum);
    }
  }
}

void Resampler::reset() {
  for (auto& channel : buffer_) {
    std::fill(channel.begin(), channel.end(), 0.f);
  }
  // Silence before the first sample: as many zeros as the filter covers.
  history_ = taps_ / 2 - 1;
  position_ = 0;
}

size_t Resampler::max_output(size_t samples) const {
  return size_t((int64_t(samples) * up_ + down_ - 1) / down_);
}

size_t Resampler::process(std::span<const int16_t> input, std::span<int16_t> out) {
  const size_t channels = size_t(channels_), samples = input.size() / channels;
  if (input.size() % channels != 0) {
    throw std::invalid_argument("input must hold whole sample frames of " +
                                std::to_string(channels) + " channels");
  }
  if (out.size() / channels < max_output(samples)) {
    throw std::out_of_range("out must hold " + std::to_string(max_output(samples)) +
                            " samples per channel, not " + std::to_string(out.size() / channels));
  }
  size_t taken = 0, written = 0;
  while (taken < samples) {
    const size_t block = std::min(samples - taken, capacity_ - history_);
    for (size_t c = 0; c < channels; c++) {
      for (size_t i = 0; i < block; i++) {
        buffer_[c][history_ + i] = input[(taken + i) * channels + c];
      }
    }
    taken += block;
    const size_t available = history_ + block;
    // Output k needs taps_ samples from floor(position) on.
    const int64_t last = int64_t(available) - int64_t(taps_);  // last start of a filter
    const int64_t end = (last + 1) * up_;
    const size_t count = end > position_ ? size_t((end - position_ + down_ - 1) / down_) : 0;
    filter(out.subspan(written * channels), count);
    written += count;
    const size_t used = std::min(size_t(position_ / up_), available);
    for (auto& channel : buffer_) {
      std::memmove(channel.data(), channel.data() + used, (available - used) * sizeof(float));
    }
    history_ = available - used;
    position_ -= int64_t(used) * up_;
  }
  return written;
}

void Resampler::filter(std::span<int16_t> out, size_t count) {
  const size_t channels = size_t(channels_);
  const bool interpolate = phases_ != size_t(up_);
  for (size_t k = 0; k < count; k++, position_ += down_) {
    const size_t begin = size_t(position_ / up_);
    const int64_t phase = position_ % up_;
    if (!interpolate) {
      const float* row = &bank_[size_t(phase) * taps_];
      for (size_t c = 0; c < channels; c++) {
        out[k * channels + c] = to_s16(dot(row, &buffer_[c][begin], taps_));
      }
    } else {
      const double place = double(phase) * double(phases_) / double(up_);
      const size_t index = size_t(place);
      const float weight = float(place - double(index));
      const float* row = &bank_[index * taps_];
      for (size_t c = 0; c < channels; c++) {
        const float a = dot(row, &buffer_[c][begin], taps_),
                    b = dot(row + taps_, &buffer_[c][begin], taps_);
        out[k * channels + c] = to_s16(a + (b - a) * weight);
      }
    }
  }
}

size_t Resampler::external_bytes() const {
  return bank_.size() * sizeof(float) + buffer_.size() * capacity_ * sizeof(float);
}

}  // namespace mouthpiece
