// Rate control of the frames between key frames: which quantiser makes a frame of the right size.
#pragma once
#include <cstddef>

namespace mouthpiece::vp8 {

/** One stream at a constant bitrate. */
class RateControl {
 public:
  RateControl(int kbps, int fps);
  void set_bitrate(int kbps);

  /** A key frame was sent. */
  void key_frame_sent(size_t bytes, int quantizer);
  /**
   * @param activity sum of the absolute differences between the picture and its prediction
   * @param moves whether much of the picture is in motion, where less is seen
   * @returns the quantiser index of the frame, 0 to 127
   */
  int choose(double activity, bool moves);
  /** The frame was sent. `activity` and the quantiser are those of `choose`. */
  void sent(size_t bytes, double activity);
  /** A frame of negligible size was sent. */
  void nothing_sent();
  int quantizer() const { return quantizer_; }

 private:
  void settle(double bits);

  int fps_;
  double target_ = 0;  // bits a frame
  int finest_ = 0;
  /** Bits sent beyond the target. */
  double debt_ = 0;
  /** Bits of a frame: this times activity over step. */
  double scale_ = .35;
  int quantizer_ = 30;
};

}  // namespace mouthpiece::vp8
