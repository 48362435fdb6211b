// VP8 through libvpx, configured for a talking head in a call (see video_encoder.h).
#include <vpx/vp8cx.h>
#include <vpx/vpx_encoder.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/video_encoder.h"

namespace mouthpiece {

namespace {

/**
 * For two seconds after a key frame every block is active. Blocks outside the active map are hardly
 * refined later, so they are refined first (figures: native/README.md).
 */
constexpr int REFINE_FRAMES = 60;
/**
 * Minimum quantiser (0 to 63) up to 800 kbit/s. Without it a picture that hardly moves would be
 * refined for as long as there are bits, beyond what a viewer can see. With 12 the face has 43 dB
 * (measured). A higher target asks for a finer picture.
 */
constexpr unsigned MIN_QUANTIZER = 12, MIN_QUANTIZER_ABOVE_800 = 4;
/** A block is not coded when its prediction error is below this: sum of 256 squares, 45 dB. */
constexpr int STATIC_THRESHOLD = 500;
/**
 * After STILL_FRAMES frames without a change, a picture that was coded with a quantiser above
 * SETTLED_QUANTIZER is coded again until it is not. Chosen by eye.
 */
constexpr int STILL_FRAMES = 8, SETTLED_QUANTIZER = 20;
/**
 * Blocks added in turn to each frame's active map even when unchanged: at 512x512 each block is
 * refreshed every two seconds. More gains 0.1 dB for 5 % more time (native/README.md).
 */
constexpr size_t REFRESH_BLOCKS = 16;

/** Encodes two grey pictures. @returns the second frame: all blocks inactive, no state updated */
std::vector<uint8_t> make_repeat_frame(vpx_codec_enc_cfg_t config) {
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
const std::vector<uint8_t>& repeat_frame_for(const vpx_codec_enc_cfg_t& config) {
  static std::mutex mutex;
  // Entries are never removed: references stay valid.
  static std::map<std::pair<unsigned, unsigned>, std::vector<uint8_t>> made;
  const std::lock_guard lock(mutex);
  auto& frame = made[{config.g_w, config.g_h}];
  if (frame.empty()) {
    frame = make_repeat_frame(config);
  }
  return frame;
}

class Vp8Encoder final : public VideoEncoder {
 public:
  explicit Vp8Encoder(const VideoSettings& settings)
      : VideoEncoder(settings), map_(macroblocks(settings.width, settings.height), 1) {
    check(vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &config_, 0), "set up");
    config_.g_w = unsigned(settings.width);
    config_.g_h = unsigned(settings.height);
    config_.g_timebase = {1, settings.fps};
    config_.g_threads = 1;
    config_.g_lag_in_frames = 0;
    // As in WebRTC: receivers wait for a lost packet or ask for a key frame. Gains 0.2 to 0.4 dB.
    config_.g_error_resilient = 0;
    config_.kf_mode = VPX_KF_DISABLED;  // key frames on demand only
    config_.rc_end_usage = VPX_CBR;
    config_.rc_target_bitrate = unsigned(settings.bitrate_kbps);
    config_.rc_min_quantizer = min_quantizer(settings.bitrate_kbps);
    config_.rc_max_quantizer = 56;
    config_.rc_undershoot_pct = 100;
    config_.rc_overshoot_pct = 15;
    config_.rc_buf_initial_sz = 500;
    config_.rc_buf_optimal_sz = 600;
    config_.rc_buf_sz = 1000;
    config_.rc_dropframe_thresh = 0;
    if (vpx_codec_enc_init(&codec_, vpx_codec_vp8_cx(), &config_, 0) != VPX_CODEC_OK) {
      throw std::runtime_error(std::string("libvpx cannot set up: ") + vpx_codec_error(&codec_));
    }
    try {
      control(VP8E_SET_CPUUSED, settings.speed);
      control(VP8E_SET_STATIC_THRESHOLD, STATIC_THRESHOLD);
      control(VP8E_SET_NOISE_SENSITIVITY, 0);
      // As in WebRTC, a key frame may take half of the rate controller's buffer:
      // 0.5 * 600 ms * fps / 10, percent of an average frame.
      control(VP8E_SET_MAX_INTRA_BITRATE_PCT, std::max(300, 30 * settings.fps));
      repeat_frame_ = repeat_frame_for(config_);
    } catch (...) {
      vpx_codec_destroy(&codec_);
      throw;
    }
  }

  ~Vp8Encoder() override { vpx_codec_destroy(&codec_); }

  EncodedFrame encode(std::span<const uint8_t> picture, std::span<uint8_t> out, bool force_key,
                      std::span<const uint8_t> dirty) override {
    vpx_image_t image;
    vpx_img_wrap(&image, VPX_IMG_FMT_I420, config_.g_w, config_.g_h, 1,
                 const_cast<uint8_t*>(picture.data()));  // libvpx only reads it
    force_key = force_key || needs_key_;
    if (!force_key && is_repetition(dirty)) {
      return repeat(out);
    }
    if (!force_key) {
      choose_active_blocks(dirty);
    }
    check(vpx_codec_encode(&codec_, &image, time_++, 1, force_key ? VPX_EFLAG_FORCE_KF : 0,
                           VPX_DL_REALTIME),
          "encode");

    EncodedFrame frame;
    vpx_codec_iter_t position = nullptr;
    while (const vpx_codec_cx_pkt_t* packet = vpx_codec_get_cx_data(&codec_, &position)) {
      if (packet->kind != VPX_CODEC_CX_FRAME_PKT) {
        continue;
      }
      const auto& data = packet->data.frame;
      if (data.sz > out.size()) {
        needs_key_ = true;  // later frames would refer to this one, which is lost
        throw std::out_of_range("out has " + std::to_string(out.size()) +
                                " bytes, the frame needs " + std::to_string(data.sz));
      }
      std::memcpy(out.data(), data.buf, data.sz);
      frame = {data.sz, (data.flags & VPX_FRAME_IS_KEY) != 0};
    }
    if (frame.is_key) {
      frames_since_key_ = 0;
      needs_key_ = false;
    } else {
      frames_since_key_++;
    }
    return frame;
  }

  void set_bitrate(int kbps) override {
    if (unsigned(kbps) == config_.rc_target_bitrate) {
      return;
    }
    config_.rc_target_bitrate = unsigned(kbps);
    config_.rc_min_quantizer = min_quantizer(kbps);
    check(vpx_codec_enc_config_set(&codec_, &config_), "change the bitrate");
  }

  // 9.9 MB at 512x512 (measured).
  size_t external_bytes() const override {
    return size_t(settings_.width) * size_t(settings_.height) * 38;
  }

 private:
  static unsigned min_quantizer(int kbps) {
    return kbps > 800 ? MIN_QUANTIZER_ABOVE_800 : MIN_QUANTIZER;
  }

  /** Whether nothing has changed and the last coded picture is fine enough to stay. */
  bool is_repetition(std::span<const uint8_t> dirty) {
    const bool still = !dirty.empty() && frames_since_key_ >= REFINE_FRAMES &&
                       std::find_if(dirty.begin(), dirty.end(),
                                    [](uint8_t block) { return block != 0; }) == dirty.end();
    still_frames_ = still ? still_frames_ + 1 : 0;
    if (!still || still_frames_ < STILL_FRAMES) {
      return still;
    }
    int quantizer = 0;
    check(vpx_codec_control(&codec_, VP8E_GET_LAST_QUANTIZER_64, &quantizer),
          "report its quantizer");
    return quantizer <= SETTLED_QUANTIZER;
  }

  /**
   * Shows the previous picture again. The frame refers to the previous picture only and no later
   * frame refers to it, so libvpx's encoder need not know of it.
   */
  EncodedFrame repeat(std::span<uint8_t> out) {
    if (repeat_frame_.size() > out.size()) {
      needs_key_ = true;
      throw std::out_of_range("out has " + std::to_string(out.size()) + " bytes, the frame needs " +
                              std::to_string(repeat_frame_.size()));
    }
    std::memcpy(out.data(), repeat_frame_.data(), repeat_frame_.size());
    // Rate control gives the time of a longer pause to the frame after it. With the time of single
    // repeated frames as well, the stream has a fifth too many bits (measured).
    if (still_frames_ > 2) {
      time_++;
    }
    return {repeat_frame_.size(), false};
  }

  /**
   * Sets the active map: all blocks while refining, else the dirty ones and REFRESH_BLOCKS more.
   */
  void choose_active_blocks(std::span<const uint8_t> dirty) {
    const bool all =
        dirty.empty() || frames_since_key_ < REFINE_FRAMES || still_frames_ >= STILL_FRAMES;
    if (all && map_is_full_) {
      return;
    }
    if (all) {
      std::fill(map_.begin(), map_.end(), uint8_t(1));
    } else {
      for (size_t i = 0; i < map_.size(); i++) {
        map_[i] = dirty[i] != 0;
      }
      const size_t turns = std::min(REFRESH_BLOCKS, map_.size());
      for (size_t i = 0; i < turns; i++) {
        map_[next_refresh_] = 1;
        next_refresh_ = (next_refresh_ + 1) % map_.size();
      }
    }
    map_is_full_ = all;
    vpx_active_map_t active{map_.data(), unsigned((settings_.height + 15) / 16),
                            unsigned((settings_.width + 15) / 16)};
    check(vpx_codec_control(&codec_, VP8E_SET_ACTIVEMAP, &active), "set the active map");
  }

  template <class Value>
  void control(int id, Value value) {
    check(vpx_codec_control_(&codec_, id, value), "set up");
  }

  void check(vpx_codec_err_t error, const char* what) {
    if (error == VPX_CODEC_OK) {
      return;
    }
    const char* detail = vpx_codec_error_detail(&codec_);
    throw std::runtime_error(std::string("libvpx cannot ") + what + ": " +
                             vpx_codec_err_to_string(error) +
                             (detail ? std::string(", ") + detail : ""));
  }

  vpx_codec_enc_cfg_t config_{};
  vpx_codec_ctx_t codec_{};
  vpx_codec_pts_t time_ = 0;
  std::vector<uint8_t> map_;
  bool map_is_full_ = true;
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
