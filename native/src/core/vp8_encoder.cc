// VP8 for a talking head in a call (see video_encoder.h): key frames by libvpx, the frames between
// them by a coder of our own.
#include <vpx/vp8cx.h>
#include <vpx/vpx_encoder.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/block_change.h"
#include "core/video_encoder.h"
#include "core/vp8_inter_coder.h"
#include "core/vp8_key_coder.h"
#include "core/vp8_rate_control.h"

namespace mouthpiece {

namespace {

/**
 * After a key frame, and again when a picture has not changed for STILL_FRAMES frames, blocks that
 * do not change are refined for so many frames, REFINED_BLOCKS in each. Later REFRESHED_BLOCKS are:
 * at 512x512 each block is looked at every two seconds.
 */
constexpr int REFINE_FRAMES = 60, STILL_FRAMES = 8, STILL_REFINE_FRAMES = 40;
constexpr size_t REFINED_BLOCKS = 128, REFRESHED_BLOCKS = 16;

/** Encodes two grey pictures. @returns the second frame: all blocks inactive, no state updated */
std::vector<uint8_t> make_repeat_frame(int width, int height) {
  vpx_codec_enc_cfg_t config;
  vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &config, 0);
  config.g_w = unsigned(width);
  config.g_h = unsigned(height);
  config.g_threads = 1;
  config.g_lag_in_frames = 0;
  config.rc_end_usage = VPX_CBR;
  // The finest quantiser turns the loop filter off, which would blur the repeated picture.
  config.rc_min_quantizer = config.rc_max_quantizer = 0;
  vpx_codec_ctx_t codec;
  if (vpx_codec_enc_init(&codec, vpx_codec_vp8_cx(), &config, 0) != VPX_CODEC_OK) {
    throw std::runtime_error("libvpx cannot make a frame that repeats a picture");
  }
  std::vector<uint8_t> grey(i420_bytes(int(config.g_w), int(config.g_h)), 128),
      still(macroblocks(int(config.g_w), int(config.g_h)), 0), frame;
  vpx_image_t image;
  vpx_img_wrap(&image, VPX_IMG_FMT_I420, config.g_w, config.g_h, 1, grey.data());
  vpx_active_map_t active{still.data(), (config.g_h + 15) / 16, (config.g_w + 15) / 16};
  constexpr vpx_enc_frame_flags_t ONLY_SHOWN = VP8_EFLAG_NO_UPD_LAST | VP8_EFLAG_NO_UPD_GF |
                                               VP8_EFLAG_NO_UPD_ARF | VP8_EFLAG_NO_UPD_ENTROPY |
                                               VP8_EFLAG_NO_REF_GF | VP8_EFLAG_NO_REF_ARF;
  vpx_codec_control(&codec, VP8E_SET_CPUUSED, -12);
  for (const auto& [time, flags] :
       {std::pair<int, vpx_enc_frame_flags_t>{0, VPX_EFLAG_FORCE_KF}, {1, ONLY_SHOWN}}) {
    if (time == 1) {
      vpx_codec_control(&codec, VP8E_SET_ACTIVEMAP, &active);
    }
    frame.clear();
    if (vpx_codec_encode(&codec, &image, time, 1, flags, VPX_DL_REALTIME) != VPX_CODEC_OK) {
      break;
    }
    vpx_codec_iter_t position = nullptr;
    while (const vpx_codec_cx_pkt_t* packet = vpx_codec_get_cx_data(&codec, &position)) {
      if (packet->kind != VPX_CODEC_CX_FRAME_PKT) {
        continue;
      }
      const auto* bytes = static_cast<const uint8_t*>(packet->data.frame.buf);
      frame.assign(bytes, bytes + packet->data.frame.sz);
    }
  }
  vpx_codec_destroy(&codec);
  if (frame.empty()) {
    throw std::runtime_error("libvpx cannot make a frame that repeats a picture");
  }
  return frame;
}

/**
 * @returns a frame that shows the previous picture again and changes nothing in the decoder. It
 * depends on the picture's size alone, so one is made per process and size.
 */
const std::vector<uint8_t>& repeat_frame_for(int width, int height) {
  static std::mutex mutex;
  // Entries are never removed: references stay valid.
  static std::map<std::pair<int, int>, std::vector<uint8_t>> made;
  const std::lock_guard lock(mutex);
  auto& frame = made[{width, height}];
  if (frame.empty()) {
    frame = make_repeat_frame(width, height);
  }
  return frame;
}

/** Memory of the frame that is being coded. It holds nothing between two frames. */
vp8::Scratch& scratch() {
  static thread_local vp8::Scratch shared;
  return shared;
}

class Vp8Encoder final : public VideoEncoder {
 public:
  explicit Vp8Encoder(const VideoSettings& settings)
      : VideoEncoder(settings),
        coder_(settings.width, settings.height),
        rate_(settings.bitrate_kbps, settings.fps),
        kbps_(settings.bitrate_kbps),
        active_(macroblocks(settings.width, settings.height), 1),
        outdated_(active_.size(), 0),
        repeat_frame_(repeat_frame_for(settings.width, settings.height)) {}

  EncodedFrame encode(std::span<const uint8_t> picture, std::span<uint8_t> out, bool force_key,
                      std::span<const uint8_t> dirty, std::span<const int16_t> motion) override {
    note_outdated(dirty);
    if (force_key || needs_key_) {
      return encode_key(with_shifted(picture, dirty, motion), out);
    }
    if (is_repetition(dirty)) {
      return repeat(out);
    }
    choose_active_blocks(dirty);
    motion_.resize(motion.size() / 2);
    for (size_t i = 0; i < motion_.size(); i++) {
      motion_[i] = motion_at(motion, i);
    }
    needs_key_ = true;  // if this throws
    const size_t bytes = coder_.code(picture, active_, motion_, rate_, scratch(), out);
    needs_key_ = false;
    frames_since_key_++;
    return {bytes, false};
  }

  void set_bitrate(int kbps) override {
    kbps_ = kbps;
    rate_.set_bitrate(kbps);
  }

  // The reference frame with its border, and the state of the blocks.
  size_t external_bytes() const override {
    return size_t(settings_.width + 96) * size_t(settings_.height + 96) * 2;
  }

 private:
  EncodedFrame encode_key(std::span<const uint8_t> picture, std::span<uint8_t> out) {
    vp8::KeyCoder key(settings_.width, settings_.height);
    const auto frame = key.code(picture, kbps_);
    needs_key_ = true;
    if (frame.size() > out.size()) {
      fail_too_small(out, frame.size());
    }
    std::copy(frame.begin(), frame.end(), out.begin());
    coder_.start(key.decoded());
    has_reference_ = true;
    rate_.key_frame_sent(frame.size(), key.quantizer());
    frames_since_key_ = still_frames_ = 0;
    needs_key_ = false;
    return {frame.size(), true};
  }

  /** Keeps account of the blocks whose pixels in the picture are out of date. */
  void note_outdated(std::span<const uint8_t> dirty) {
    for (size_t i = 0; i < outdated_.size(); i++) {
      const uint8_t change = dirty.empty() ? uint8_t(DRAWN) : dirty[i];
      if (change != UNCHANGED) {
        outdated_[i] = change == SHIFTED;
      }
    }
  }

  /** @returns the picture with what the viewer sees in the blocks that are out of date */
  std::span<const uint8_t> with_shifted(std::span<const uint8_t> picture,
                                        std::span<const uint8_t> dirty,
                                        std::span<const int16_t> motion) {
    const bool is_whole = std::all_of(outdated_.begin(), outdated_.end(),
                                      [](uint8_t outdated) { return outdated == 0; });
    if (is_whole || !has_reference_) {
      return picture;
    }
    const int width = settings_.width, height = settings_.height, across = (width + 15) / 16;
    whole_.assign(picture.begin(), picture.end());
    std::array<uint8_t, vp8::BLOCK_BYTES> pixels;
    for (size_t i = 0; i < outdated_.size(); i++) {
      if (!outdated_[i]) {
        continue;
      }
      const int bx = int(i) % across, by = int(i) / across;
      const bool moves = !dirty.empty() && dirty[i] == SHIFTED && !motion.empty();
      coder_.predict(bx, by, moves ? coder_.within(bx, by, motion_at(motion, i)) : vp8::Motion{},
                     pixels.data());
      const uint8_t* from = pixels.data();
      uint8_t* plane = whole_.data();
      for (const int side : {16, 8, 8}) {
        const int stride = side == 16 ? width : width / 2, rows = side == 16 ? height : height / 2,
                  columns = std::min(side, stride - bx * side);
        for (int y = 0; y < side && by * side + y < rows; y++) {
          std::copy_n(from + y * side, columns, plane + (by * side + y) * stride + bx * side);
        }
        from += side * side;
        plane += stride * rows;
      }
    }
    return whole_;
  }

  static vp8::Motion motion_at(std::span<const int16_t> motion, size_t i) {
    return {motion[2 * i], motion[2 * i + 1]};
  }

  [[noreturn]] static void fail_too_small(std::span<const uint8_t> out, size_t bytes) {
    throw std::out_of_range("out has " + std::to_string(out.size()) + " bytes, the frame needs " +
                            std::to_string(bytes));
  }

  /** Whether nothing has changed and the last coded picture has been refined. */
  bool is_repetition(std::span<const uint8_t> dirty) {
    const bool still =
        !dirty.empty() && frames_since_key_ >= REFINE_FRAMES &&
        std::all_of(dirty.begin(), dirty.end(), [](uint8_t block) { return block == 0; });
    still_frames_ = still ? still_frames_ + 1 : 0;
    return still &&
           (still_frames_ < STILL_FRAMES || still_frames_ >= STILL_FRAMES + STILL_REFINE_FRAMES);
  }

  /**
   * Shows the previous picture again. The frame refers to the previous picture only and no later
   * frame refers to it, so the coder need not know of it.
   */
  EncodedFrame repeat(std::span<uint8_t> out) {
    if (repeat_frame_.size() > out.size()) {
      needs_key_ = true;
      fail_too_small(out, repeat_frame_.size());
    }
    std::copy(repeat_frame_.begin(), repeat_frame_.end(), out.begin());
    rate_.nothing_sent();
    return {repeat_frame_.size(), false};
  }

  /** The dirty blocks, and in turn some others that are up to date. */
  void choose_active_blocks(std::span<const uint8_t> dirty) {
    if (dirty.empty()) {
      std::fill(active_.begin(), active_.end(), uint8_t(DRAWN));
      return;
    }
    std::copy(dirty.begin(), dirty.end(), active_.begin());
    const bool refine = frames_since_key_ < REFINE_FRAMES || still_frames_ > 0;
    const size_t turns = std::min(refine ? REFINED_BLOCKS : REFRESHED_BLOCKS, active_.size());
    for (size_t i = 0; i < turns; i++) {
      if (!outdated_[next_refresh_]) {
        active_[next_refresh_] = DRAWN;
      }
      next_refresh_ = (next_refresh_ + 1) % active_.size();
    }
  }

  vp8::InterCoder coder_;
  vp8::RateControl rate_;
  int kbps_;
  std::vector<uint8_t> active_;
  std::vector<uint8_t> outdated_;
  std::vector<uint8_t> whole_;  // for key frames while blocks are out of date
  bool has_reference_ = false;
  std::vector<vp8::Motion> motion_;
  bool needs_key_ = true;
  int frames_since_key_ = 0, still_frames_ = 0;
  std::span<const uint8_t> repeat_frame_;
  size_t next_refresh_ = 0;
};

}  // namespace

std::unique_ptr<VideoEncoder> make_vp8_encoder(const VideoSettings& settings) {
  return std::make_unique<Vp8Encoder>(settings);
}

}  // namespace mouthpiece
