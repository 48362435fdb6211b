// The part of H.264's syntax that repeated pictures need (see h264_repeater.h).
#include "core/h264_repeater.h"

#include <algorithm>
#include <bit>

namespace mouthpiece {
namespace {

enum Unit { SLICE = 1, KEY_SLICE = 5, SEQUENCE = 7, PICTURE = 8 };
constexpr int P_SLICE = 0;

/** @returns a NAL unit without its emulation prevention bytes (H.264, 7.4.1) */
std::vector<uint8_t> unescape(std::span<const uint8_t> bytes) {
  std::vector<uint8_t> out;
  out.reserve(bytes.size());
  int zeros = 0;
  for (const uint8_t byte : bytes) {
    if (zeros >= 2 && byte == 3) {
      zeros = 0;
      continue;
    }
    out.push_back(byte);
    zeros = byte == 0 ? zeros + 1 : 0;
  }
  return out;
}

/** @returns a start code and the NAL unit with emulation prevention bytes */
std::vector<uint8_t> escape(std::span<const uint8_t> unit) {
  std::vector<uint8_t> out{0, 0, 0, 1};
  out.reserve(unit.size() + 8);
  int zeros = 0;
  for (const uint8_t byte : unit) {
    if (zeros >= 2 && byte <= 3) {
      out.push_back(3);
      zeros = 0;
    }
    out.push_back(byte);
    zeros = byte == 0 ? zeros + 1 : 0;
  }
  return out;
}

/** Reads bits, first the most significant one. Bits beyond the end are 0. */
class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> bytes, size_t at) : bytes_(bytes), at_(at) {}
  uint32_t bits(int count) {
    uint32_t value = 0;
    for (; count > 0; count--, at_++) {
      const uint32_t byte = at_ / 8 < bytes_.size() ? bytes_[at_ / 8] : 0;
      value = value << 1 | (byte >> (7 - at_ % 8) & 1u);
    }
    return value;
  }
  /** Unsigned Exp-Golomb code (H.264, 9.1). */
  uint32_t ue() {
    int zeros = 0;
    while (zeros < 31 && bits(1) == 0) {
      zeros++;
    }
    return (1u << zeros) - 1 + bits(zeros);
  }
  size_t at() const { return at_; }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_;
};

class BitWriter {
 public:
  void bits(uint32_t value, int count) {
    for (int bit = count - 1; bit >= 0; bit--, at_++) {
      if (at_ % 8 == 0) {
        bytes.push_back(0);
      }
      bytes.back() = uint8_t(bytes.back() | (value >> bit & 1u) << (7 - at_ % 8));
    }
  }
  void ue(uint32_t value) {
    const int length = std::max(0, int(std::bit_width(value + 1)) - 1);
    bits(0, length);
    bits(value + 1, length + 1);
  }
  std::vector<uint8_t> bytes;

 private:
  size_t at_ = 0;
};

void overwrite(std::vector<uint8_t>& bytes, size_t at, uint32_t value, int count) {
  for (int bit = count - 1; bit >= 0; bit--, at++) {
    const uint8_t mask = uint8_t(0x80 >> at % 8);
    bytes[at / 8] = uint8_t((bytes[at / 8] & ~mask) | ((value >> bit & 1u) != 0 ? mask : 0));
  }
}

/** @returns the NAL units between start codes (H.264, Annex B) */
std::vector<std::span<const uint8_t>> units_of(std::span<const uint8_t> frame) {
  std::vector<std::span<const uint8_t>> units;
  size_t begin = 0;
  for (size_t i = 0; i + 2 < frame.size(); i++) {
    if (frame[i] != 0 || frame[i + 1] != 0 || frame[i + 2] != 1) {
      continue;
    }
    if (begin > 0) {
      units.push_back(frame.subspan(begin, (i > 0 && frame[i - 1] == 0 ? i - 1 : i) - begin));
    }
    begin = i + 3;
  }
  if (begin > 0) {
    units.push_back(frame.subspan(begin));
  }
  return units;
}

int type_of(std::span<const uint8_t> unit) {
  return unit.empty() ? 0 : unit[0] & 31;
}

}  // namespace

size_t H264Repeater::renumber(std::span<uint8_t> frame, size_t bytes, bool is_key) {
  const auto units = units_of(frame.first(bytes));
  if (is_key) {
    is_supported_ = units.size() == 3 && type_of(units[0]) == SEQUENCE &&
                    type_of(units[1]) == PICTURE && type_of(units[2]) == KEY_SLICE &&
                    parse_parameter_sets(unescape(units[0]), unescape(units[1]));
    repeated_ = 0;
    if (is_supported_) {
      last_ = parse_slice_header(unescape(units[2].first(std::min<size_t>(units[2].size(), 32))));
    }
    return bytes;
  }
  if (!is_supported_) {
    return bytes;
  }
  if (units.size() != 1 || type_of(units[0]) != SLICE) {
    is_supported_ = repeated_ > 0;  // without repetitions so far, the stream may pass unchanged
    return is_supported_ ? frame.size() + 1 : bytes;
  }
  auto unit = unescape(units[0]);
  last_ = parse_slice_header(unit);
  if (repeated_ == 0) {
    return bytes;
  }
  if (last_.order_at + size_t(order_bits_) > unit.size() * 8) {
    return frame.size() + 1;  // cut within its header
  }
  last_.frame_num = (last_.frame_num + repeated_) & ((1u << frame_num_bits_) - 1);
  last_.order = (last_.order + 2 * repeated_) & ((1u << order_bits_) - 1);
  overwrite(unit, last_.frame_num_at, last_.frame_num, frame_num_bits_);
  overwrite(unit, last_.order_at, last_.order, order_bits_);
  const auto renumbered = escape(unit);
  if (renumbered.size() <= frame.size()) {
    std::copy(renumbered.begin(), renumbered.end(), frame.begin());
  }
  return renumbered.size();
}

std::vector<uint8_t> H264Repeater::repeat() {
  if (!is_supported_) {
    return {};
  }
  repeated_++;
  last_.frame_num = (last_.frame_num + 1) & ((1u << frame_num_bits_) - 1);
  last_.order = (last_.order + 2) & ((1u << order_bits_) - 1);
  BitWriter out;
  out.bits(3 << 5 | SLICE, 8);  // nal_ref_idc 3, as other reference pictures
  out.ue(0);                    // first_mb_in_slice
  out.ue(P_SLICE);
  out.ue(uint32_t(last_.pps));
  out.bits(last_.frame_num, frame_num_bits_);
  out.bits(last_.order, order_bits_);
  out.bits(1, 1);  // num_ref_idx_active_override_flag
  out.ue(0);       // num_ref_idx_l0_active_minus1
  out.bits(0, 1);  // ref_pic_list_modification_flag_l0
  out.bits(0, 1);  // adaptive_ref_pic_marking_mode_flag: sliding window
  out.bits(1, 1);  // slice_qp_delta = 0
  if (has_deblocking_control_) {
    out.ue(1);  // disable_deblocking_filter_idc
  }
  out.ue(uint32_t(macroblocks_));  // mb_skip_run
  out.bits(1, 1);                  // rbsp_stop_one_bit
  return escape(out.bytes);
}

bool H264Repeater::parse_parameter_sets(std::span<const uint8_t> sps,
                                        std::span<const uint8_t> pps) {
  constexpr uint32_t BASELINE = 66;
  BitReader s(sps, 8);
  const bool is_baseline = s.bits(8) == BASELINE;
  s.bits(16);  // constraint flags, level_idc
  s.ue();      // seq_parameter_set_id
  frame_num_bits_ = int(std::min(s.ue(), 12u)) + 4;
  const bool counts = s.ue() == 0;  // pic_order_cnt_type 0: each slice has its order count
  order_bits_ = int(std::min(s.ue(), 12u)) + 4;
  BitReader p(pps, 8);
  p.ue();  // pic_parameter_set_id
  p.ue();  // seq_parameter_set_id
  const bool is_cavlc = p.bits(1) == 0, has_one_order = p.bits(1) == 0, has_one_group = p.ue() == 0;
  p.ue();  // num_ref_idx_l0_default_active_minus1
  p.ue();  // num_ref_idx_l1_default_active_minus1
  const bool is_unweighted = p.bits(3) == 0;
  for (int i = 0; i < 3; i++) {
    p.ue();  // pic_init_qp, pic_init_qs, chroma_qp_index_offset: signed codes of the same length
  }
  has_deblocking_control_ = p.bits(1) == 1;
  p.bits(1);  // constrained_intra_pred_flag
  return is_baseline && counts && is_cavlc && has_one_order && has_one_group && is_unweighted &&
         p.bits(1) == 0;
}

H264Repeater::SliceHeader H264Repeater::parse_slice_header(std::span<const uint8_t> unit) const {
  SliceHeader header;
  BitReader r(unit, 8);
  r.ue();  // first_mb_in_slice
  r.ue();  // slice_type
  header.pps = int(r.ue());
  header.frame_num_at = r.at();
  header.frame_num = r.bits(frame_num_bits_);
  if (type_of(unit) == KEY_SLICE) {
    r.ue();  // idr_pic_id
  }
  header.order_at = r.at();
  header.order = r.bits(order_bits_);
  return header;
}

}  // namespace mouthpiece
