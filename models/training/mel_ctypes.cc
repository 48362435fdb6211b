// C entry point to the serving front end (native/src/core/mel.cc) for the training scripts.
#include "core/mel.h"

/// Runs a fresh front end over a whole recording. `boundaries` has `steps` + 1 sample positions;
/// `out` steps x 3 x 40 floats.
extern "C" void mel_features(const short* pcm, const long* boundaries, long steps, float* out) {
  mouthpiece::MelFrontEnd frontEnd;
  for (long k = 0; k < steps; k++) {
    frontEnd.step(pcm + boundaries[k], static_cast<std::size_t>(boundaries[k + 1] - boundaries[k]),
                  out + k * mouthpiece::MEL_FRAMES_PER_STEP * mouthpiece::MEL_BANDS);
  }
}
