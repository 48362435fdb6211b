// Pictures shown once more in an H.264 stream without asking its encoder, which looks at every
// block of a picture even if none has changed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mouthpiece {

/**
 * Stands behind an encoder of one slice a picture, CAVLC, and picture order count type 0 (Annex B;
 * ITU-T H.264 sections 7.3.2 to 7.3.4). A repetition is a reference picture of skipped macroblocks,
 * so pictures after it must be numbered anew: frame_num and pic_order_cnt_lsb are all that changes
 * in them.
 */
class H264Repeater {
 public:
  /** @param macroblocks of a picture */
  explicit H264Repeater(size_t macroblocks) : macroblocks_(macroblocks) {}

  /**
   * Numbers the frame that the encoder has made, in place; it may grow by some bytes.
   * @param frame the whole output; its first `bytes` are the frame
   * @returns the frame's new length; more than the output holds when it does not fit, and then the
   * frame is lost
   */
  size_t renumber(std::span<uint8_t> frame, size_t bytes, bool is_key);
  /** The last picture again. Empty when the stream is of another kind than this knows. */
  std::vector<uint8_t> repeat();

 private:
  struct SliceHeader {
    int slice_type = 0, pps = 0, idr = 0;
    uint32_t frame_num = 0, order = 0;
    size_t frame_num_at = 0, order_at = 0;  // bits from the NAL unit's begin
  };
  bool parse_parameter_sets(std::span<const uint8_t> sps, std::span<const uint8_t> pps);
  SliceHeader parse_slice_header(std::span<const uint8_t> unit) const;

  size_t macroblocks_;
  bool known_ = false;
  int frame_num_bits_ = 4, order_bits_ = 4;
  bool has_deblocking_control_ = false;
  uint32_t repeated_ = 0;  // since the last key frame
  SliceHeader last_{};     // as sent
};

}  // namespace mouthpiece
