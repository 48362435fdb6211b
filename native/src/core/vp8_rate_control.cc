#include "core/vp8_rate_control.h"

#include <algorithm>

#include "core/vp8_tables.h"

namespace mouthpiece::vp8 {
namespace {

/**
 * Finest quantiser index up to 800 kbit/s. Without it a picture that hardly moves would be refined
 * for as long as there are bits, beyond what a viewer can see. A higher target asks for a finer
 * picture.
 */
constexpr int FINEST = 15, FINEST_ABOVE_800 = 4, COARSEST = 112;
/** What is added to the finest index while the picture moves. */
constexpr int MOVING = 1;
/** Share of the debt that a frame pays back. */
constexpr double PAYBACK = .08;
/** Bits that may be saved up, in seconds of the target, and owed. */
constexpr double SAVED = .25, OWED = 2;
/** A frame may be this much finer than the one before, in quantiser indices. */
constexpr int FINER = 3;
constexpr double LEARNING = .15;

}  // namespace

RateControl::RateControl(int kbps, int fps) : fps_(fps) {
  set_bitrate(kbps);
}

void RateControl::set_bitrate(int kbps) {
  target_ = kbps * 1000. / fps_;
  finest_ = kbps > 800 ? FINEST_ABOVE_800 : FINEST;
}

void RateControl::key_frame_sent(size_t bytes, int quantizer) {
  quantizer_ = quantizer;
  settle(double(bytes) * 8);
}

int RateControl::choose(double activity, bool moves) {
  const double wanted = std::clamp(target_ - PAYBACK * debt_, .3 * target_, 1.5 * target_);
  const double step = scale_ * activity / wanted;
  const auto* found = std::lower_bound(AC_STEPS.begin(), AC_STEPS.end(), step);
  const int index = std::max(int(found - AC_STEPS.begin()), quantizer_ - FINER);
  quantizer_ = std::clamp(index, finest_ + (moves ? MOVING : 0), COARSEST);
  return quantizer_;
}

void RateControl::sent(size_t bytes, double activity) {
  const double bits = double(bytes) * 8;
  if (activity > 0) {
    const double seen = bits * AC_STEPS[size_t(quantizer_)] / activity;
    scale_ += (std::clamp(seen, .2 * scale_, 5 * scale_) - scale_) * LEARNING;
  }
  settle(bits);
}

void RateControl::nothing_sent() {
  settle(0);
}

void RateControl::settle(double bits) {
  debt_ = std::clamp(debt_ + bits - target_, -SAVED * fps_ * target_, OWED * fps_ * target_);
}

}  // namespace mouthpiece::vp8
