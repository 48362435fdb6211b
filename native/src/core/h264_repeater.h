// Repeats pictures in an H.264 stream without its encoder, which would examine every block even
// when none has changed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mouthpiece {

/**
 * Edits the output of an encoder. The stream must be Annex B with one slice per picture, CAVLC and
 * picture order count type 0 (ITU-T H.264, 7.3.2 to 7.3.4). A repetition is a reference picture of
 * skipped macroblocks. Later pictures are renumbered: frame_num and pic_order_cnt_lsb change,
 * nothing else.
 */
class H264Repeater {
 public:
  /** @param macroblocks of a picture */
  explicit H264Repeater(size_t macroblocks) : macroblocks_(macroblocks) {}

  /**
   * Renumbers an encoder's frame in place. The frame may grow by a few bytes.
   * @param frame the whole output buffer; its first `bytes` bytes are the frame
   * @returns the new length in bytes; if it exceeds frame.size() the frame did not fit and is lost
   */
  size_t renumber(std::span<uint8_t> frame, size_t bytes, bool is_key);
  /** @returns a frame that repeats the last picture; empty when the stream is of another kind */
  std::vector<uint8_t> repeat();

 private:
  struct SliceHeader {
    int pps = 0;
    uint32_t frame_num = 0, order = 0;
    size_t frame_num_at = 0, order_at = 0;  // positions, bits from the start of the NAL unit
  };
  bool parse_parameter_sets(std::span<const uint8_t> sps, std::span<const uint8_t> pps);
  SliceHeader parse_slice_header(std::span<const uint8_t> unit) const;

  size_t macroblocks_;
  bool is_supported_ = false;
  int frame_num_bits_ = 4, order_bits_ = 4;
  bool has_deblocking_control_ = false;
  uint32_t repeated_ = 0;  // repetitions since the last key frame
  SliceHeader last_{};     // of the last picture, as sent
};

}  // namespace mouthpiece
