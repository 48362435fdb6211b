// Log-mel front end of the speech model: takes the PCM of one video frame, gives three
// level-normalised mel frames. Serving and training run this same code (training through
// models/training/frontend.py).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mouthpiece {

constexpr int MEL_BANDS = 40;
constexpr int MEL_FRAMES_PER_STEP = 3;
constexpr int MEL_WINDOW = 400;  // samples: 25 ms at 16 kHz
constexpr int MEL_MAX_STEP_SAMPLES = 534;

/** The front end of one stream. Causal: windows cover samples received so far, never later ones. */
class MelFrontEnd {
 public:
  MelFrontEnd();

  /**
   * Consumes the samples of one video frame and writes MEL_FRAMES_PER_STEP x MEL_BANDS values.
   *
   * The three windows end after one third, two thirds and all of the samples: 90 windows a second.
   * A value is ln(1 + power / floor) / 5: 0 in digital silence, about 2.6 at most. Once the level
   * normaliser has settled, values do not depend on the gain of the input.
   *
   * @param pcm 16-bit samples at 16 kHz
   * @param sample_count samples in `pcm`: 533 or 534 at 30 frames a second. Any count from
   * MEL_FRAMES_PER_STEP to MEL_MAX_STEP_SAMPLES is accepted.
   * @param out MEL_FRAMES_PER_STEP rows of MEL_BANDS values
   */
  void step(const std::int16_t* pcm, std::size_t sample_count, float* out);

  /** Discards the signal so far: the next step is a stream's first. */
  void reset();

 private:
  void analyse(const float* window, float* out);

  float
      samples_[MEL_WINDOW + MEL_MAX_STEP_SAMPLES];  // the last MEL_WINDOW samples, then the step's
  float level_;                                     // speech level: ln power
};

}  // namespace mouthpiece
