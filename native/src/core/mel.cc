// Log-mel front end (see mel.h): window, 512-point FFT, 40 mel bands, causal level normaliser.
#include "core/mel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace mouthpiece {
namespace {

constexpr int FFT_SIZE = 512;
constexpr int HALF = FFT_SIZE / 2;
constexpr double SAMPLE_RATE = 16000.0;
constexpr double LOWEST_HZ = 60.0;
constexpr double HIGHEST_HZ = 7600.0;
constexpr double PI = 3.14159265358979323846;

// Powers are relative to a full-scale sine. Power below the floor counts as silence. The floor has
// two parts: an absolute one (-95 dB, the noise of a good microphone), and one relative to the
// speech level (-57 dB), so that features do not depend on the gain of the input. The model was
// trained with these values and with those below: to change one means to train again.
constexpr float ABSOLUTE_FLOOR = 3e-10F;
constexpr float RELATIVE_FLOOR = 2e-6F;
constexpr float FEATURE_SCALE = 0.2F;

// The level normaliser runs once per window (1/90 s), in ln power (1 dB = 0.2303). The level rises
// within two or three windows. It falls by 6 dB a second while the input is within PAUSE_DEPTH of
// it, and by 0.5 dB a second in pauses, so that noise in a pause is not amplified to speech level.
constexpr float START_LEVEL =
    -7.4F;  // -32 dB, quiet speech. From -20 dB, a speaker at -45 dBFS was a third too soft for
            // three seconds (models/training/README.md).
constexpr float LOWEST_LEVEL = -13.8F;  // -60 dB
constexpr float RISE = 0.3F;
constexpr float FALL = 6.0F * 0.2303F / 90.0F;
constexpr float FALL_IN_PAUSE = 0.5F * 0.2303F / 90.0F;
constexpr float PAUSE_DEPTH = 30.0F * 0.2303F;

double hz_to_mel(double hz) {
  return 2595.0 * std::log10(1.0 + hz / 700.0);
}
double mel_to_hz(double mel) {
  return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
}

struct Band {
  int first;  // first FFT bin
  int count;
  int offset;  // of the band's weights in Tables::weights
};

// Tables shared by all streams. Built once, then only read.
struct Tables {
  float window[MEL_WINDOW];
  float twiddle_cos[HALF / 2], twiddle_sin[HALF / 2];  // of the 256-point complex FFT
  float unpack_cos[HALF], unpack_sin[HALF];            // from it to the 512-point real FFT
  std::uint8_t reversed[HALF];
  Band bands[MEL_BANDS];
  float weights[2 * HALF];

  Tables() {
    double sum = 0;
    for (int i = 0; i < MEL_WINDOW; i++) {
      const double w = 0.5 - 0.5 * std::cos(2.0 * PI * (i + 0.5) / MEL_WINDOW);
      window[i] = static_cast<float>(w);
      sum += w;
    }
    const double scale = 4.0 / (sum * sum);  // a full-scale sine has power 1
    for (int i = 0; i < HALF / 2; i++) {
      twiddle_cos[i] = static_cast<float>(std::cos(2.0 * PI * i / HALF));
      twiddle_sin[i] = static_cast<float>(-std::sin(2.0 * PI * i / HALF));
    }
    for (int i = 0; i < HALF; i++) {
      unpack_cos[i] = static_cast<float>(std::cos(2.0 * PI * i / FFT_SIZE));
      unpack_sin[i] = static_cast<float>(-std::sin(2.0 * PI * i / FFT_SIZE));
      int r = 0;
      for (int bit = 0; bit < 8; bit++) {
        r |= ((i >> bit) & 1) << (7 - bit);
      }
      reversed[i] = static_cast<std::uint8_t>(r);
    }
    double edges[MEL_BANDS + 2];
    const double low = hz_to_mel(LOWEST_HZ), high = hz_to_mel(HIGHEST_HZ);
    for (int i = 0; i < MEL_BANDS + 2; i++) {
      edges[i] = mel_to_hz(low + (high - low) * i / (MEL_BANDS + 1));
    }
    int offset = 0;
    for (int b = 0; b < MEL_BANDS; b++) {
      bands[b] = {0, 0, offset};
      for (int bin = 1; bin < HALF; bin++) {
        const double hz = bin * SAMPLE_RATE / FFT_SIZE;
        const double weight = std::min((hz - edges[b]) / (edges[b + 1] - edges[b]),
                                       (edges[b + 2] - hz) / (edges[b + 2] - edges[b + 1]));
        if (weight <= 0) {
          continue;
        }
        if (bands[b].count == 0) {
          bands[b].first = bin;
        }
        bands[b].count++;
        weights[offset++] = static_cast<float>(weight * scale);
      }
    }
  }
};

const Tables& tables() {
  static const Tables built;
  return built;
}

// Power spectrum of a windowed frame: bins 1 to 255 of a 512-point FFT of real input, computed with
// a 256-point complex FFT (even samples are the real part, odd samples the imaginary part).
void power_spectrum(const Tables& t, const float* frame, float* power) {
  float re[HALF], im[HALF];
  for (int i = 0; i < HALF; i++) {
    const int r = t.reversed[i];
    re[r] = frame[2 * i];
    im[r] = frame[2 * i + 1];
  }
  for (int half = 1; half < HALF; half *= 2) {
    const int stride = HALF / (2 * half);
    for (int block = 0; block < HALF; block += 2 * half) {
      for (int j = 0; j < half; j++) {
        const float c = t.twiddle_cos[j * stride], s = t.twiddle_sin[j * stride];
        const int a = block + j, b = a + half;
        const float br = re[b] * c - im[b] * s, bi = re[b] * s + im[b] * c;
        re[b] = re[a] - br;
        im[b] = im[a] - bi;
        re[a] += br;
        im[a] += bi;
      }
    }
  }
  power[0] = 0;
  for (int k = 1; k < HALF; k++) {
    const int m = HALF - k;
    const float even_re = 0.5F * (re[k] + re[m]), even_im = 0.5F * (im[k] - im[m]);
    const float odd_re = 0.5F * (im[k] + im[m]), odd_im = 0.5F * (re[m] - re[k]);
    const float xr = even_re + odd_re * t.unpack_cos[k] - odd_im * t.unpack_sin[k];
    const float xi = even_im + odd_re * t.unpack_sin[k] + odd_im * t.unpack_cos[k];
    power[k] = xr * xr + xi * xi;
  }
}

}  // namespace

MelFrontEnd::MelFrontEnd() {
  reset();
}

void MelFrontEnd::reset() {
  std::memset(samples_, 0, sizeof samples_);
  level_ = START_LEVEL;
}

void MelFrontEnd::step(const std::int16_t* pcm, std::size_t sample_count, float* out) {
  const std::size_t count = std::min<std::size_t>(sample_count, MEL_MAX_STEP_SAMPLES);
  for (std::size_t i = 0; i < count; i++) {
    samples_[MEL_WINDOW + i] = static_cast<float>(pcm[i]) * (1.0F / 32768.0F);
  }
  for (std::size_t j = 0; j < MEL_FRAMES_PER_STEP; j++) {
    analyse(samples_ + count * (j + 1) / MEL_FRAMES_PER_STEP, out + j * MEL_BANDS);
  }
  std::memmove(samples_, samples_ + count, MEL_WINDOW * sizeof(float));
}

void MelFrontEnd::analyse(const float* window, float* out) {
  const Tables& t = tables();
  float frame[FFT_SIZE], power[HALF];
  for (int i = 0; i < MEL_WINDOW; i++) {
    frame[i] = window[i] * t.window[i];
  }
  std::memset(frame + MEL_WINDOW, 0, (FFT_SIZE - MEL_WINDOW) * sizeof(float));
  power_spectrum(t, frame, power);

  float total = 0;
  for (int b = 0; b < MEL_BANDS; b++) {
    const Band& band = t.bands[b];
    float sum = 0;
    for (int i = 0; i < band.count; i++) {
      sum += power[band.first + i] * t.weights[band.offset + i];
    }
    out[b] = sum;
    total += sum;
  }

  const float ln_power = std::log(total + ABSOLUTE_FLOOR);
  if (ln_power > level_) {
    level_ += (ln_power - level_) * RISE;
  } else {
    level_ -= ln_power > level_ - PAUSE_DEPTH ? FALL : FALL_IN_PAUSE;
  }
  level_ = std::max(level_, LOWEST_LEVEL);

  const float per_floor = 1.0F / (ABSOLUTE_FLOOR + RELATIVE_FLOOR * std::exp(level_));
  for (int b = 0; b < MEL_BANDS; b++) {
    out[b] = FEATURE_SCALE * std::log(1.0F + out[b] * per_floor);
  }
}

}  // namespace mouthpiece
