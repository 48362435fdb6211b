// Log-mel front end of the speech model: PCM of one video frame in, three level-normalised mel
// frames out. Serving and training run this same code (training through
// `models/training/frontend.py`).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mouthpiece {

constexpr int MEL_BANDS = 40;
constexpr int MEL_FRAMES_PER_STEP = 3;
constexpr int MEL_WINDOW = 400;  // samples: 25 ms at 16 kHz
constexpr int MEL_MAX_STEP_SAMPLES = 534;

/** One stream's front end. Causal: every window ends inside the samples given so far and reaches
 * back into earlier ones. */
class MelFrontEnd {
 public:
  MelFrontEnd();

  /**
   * Consumes the speech samples of one video frame and writes MEL_FRAMES_PER_STEP x MEL_BANDS
   * values at `out`.
   *
   * The windows end after a third, two thirds and all of the samples (90 frames a second). Values
   * are ln(1 + power / floor) / 5: exactly 0 in digital silence, about 2.6 at most, and the same at
   * any input gain once the level normaliser has settled.
   *
   * @param pcm 16-bit samples at 16 kHz.
   * @param sample_count 533 or 534 (3 to MEL_MAX_STEP_SAMPLES work; the rate is 90 Hz only on
   * average of 533.3).
   */
  void step(const std::int16_t* pcm, std::size_t sample_count, float* out);

  /** Forgets all that was heard: the next step is a stream's first. */
  void reset();

 private:
  void analyse(const float* window, float* out);

  float samples_[MEL_WINDOW + MEL_MAX_STEP_SAMPLES];  // the last MEL_WINDOW samples, then those of
                                                      // the step at hand
  float level_;                                       // ln power of the talker's loud frames
};

}  // namespace mouthpiece
