// H.264 constrained baseline through OpenH264, configured for a talking head in a call (see
// video_encoder.h).
#include <wels/codec_api.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/h264_repeater.h"
#include "core/video_encoder.h"

namespace mouthpiece {

namespace {

/**
 * OpenH264 has a buffer of 12 bits a pixel. It fails for good when a frame needs more (noise at a
 * high bitrate; found by fuzzing). With this minimum quantiser no picture does.
 */
constexpr int SAFE_MIN_QP = 28;

/**
 * As for VP8: everything is coded for two seconds after a key frame, and again for a second when a
 * picture has not changed for STILL_FRAMES frames.
 */
constexpr int REFINE_FRAMES = 60, STILL_FRAMES = 8;

class H264Encoder final : public VideoEncoder {
 public:
  explicit H264Encoder(const VideoSettings& settings)
      : VideoEncoder(settings),
        bitrate_(settings.bitrate_kbps * 1000),
        repeater_(macroblocks(settings.width, settings.height)) {
    set_up();
  }

  /**
   * `dirty` only tells whether anything has changed: OpenH264 detects unchanged blocks itself, at
   * nearly the cost of changed ones. The output is Annex B, with SPS and PPS before every IDR
   * slice.
   */
  EncodedFrame encode(std::span<const uint8_t> picture, std::span<uint8_t> out, bool force_key,
                      std::span<const uint8_t> dirty,
                      std::span<const int16_t> /*motion*/) override {
    if (!force_key && !needs_key_ && is_repetition(dirty)) {
      const auto again = repeater_.repeat();
      if (!again.empty()) {
        return copy_repeat(again, out);
      }
    }
    const int width = settings_.width, height = settings_.height;
    SSourcePicture source{};
    source.iColorFormat = videoFormatI420;
    source.iPicWidth = width;
    source.iPicHeight = height;
    source.iStride[0] = width;
    source.iStride[1] = source.iStride[2] = width / 2;
    source.pData[0] = const_cast<uint8_t*>(picture.data());  // OpenH264 only reads it
    source.pData[1] = source.pData[0] + size_t(width) * size_t(height);
    source.pData[2] = source.pData[1] + size_t(width / 2) * size_t(height / 2);
    source.uiTimeStamp = time_++ * 1000 / settings_.fps;
    if (force_key || needs_key_) {
      check(codec_->ForceIntraFrame(true), "make a key frame");
    }
    SFrameBSInfo info{};
    int error = codec_->EncodeFrame(&source, &info);
    if (error == cmMallocMemeError && min_qp_ < SAFE_MIN_QP) {
      min_qp_ = SAFE_MIN_QP;
      set_up();
      info = {};
      error = codec_->EncodeFrame(&source, &info);
    }
    check(error, "encode");

    EncodedFrame frame{0, info.eFrameType == videoFrameTypeIDR};
    if (info.eFrameType == videoFrameTypeSkip) {
      return frame;
    }
    for (int i = 0; i < info.iLayerNum; i++) {
      const SLayerBSInfo& layer = info.sLayerInfo[i];
      size_t bytes = 0;
      for (int n = 0; n < layer.iNalCount; n++) {
        bytes += size_t(layer.pNalLengthInByte[n]);
      }
      if (frame.bytes + bytes > out.size()) {
        fail_too_small(out, size_t(info.iFrameSizeInBytes));
      }
      std::memcpy(out.data() + frame.bytes, layer.pBsBuf, bytes);
      frame.bytes += bytes;
    }
    if (frame.is_key) {
      needs_key_ = false;
    }
    frames_since_key_ = frame.is_key ? 0 : frames_since_key_ + 1;
    frame.bytes = repeater_.renumber(out, frame.bytes, frame.is_key);
    if (frame.bytes > out.size()) {
      fail_too_small(out, frame.bytes);
    }
    return frame;
  }

  void set_bitrate(int kbps) override {
    const int bitrate = kbps * 1000;
    if (bitrate == bitrate_) {
      return;
    }
    // The target must not exceed the maximum at any moment, so the order depends on the direction.
    // SPATIAL_LAYER_ALL would leave the layer's own maximum unchanged.
    const bool up = bitrate > bitrate_;
    for (const bool maximum : {up, !up}) {
      SBitrateInfo info{SPATIAL_LAYER_0, maximum ? peak(bitrate) : bitrate};
      check(codec_->SetOption(maximum ? ENCODER_OPTION_MAX_BITRATE : ENCODER_OPTION_BITRATE, &info),
            "change the bitrate");
    }
    bitrate_ = bitrate;
  }

  // 2.9 MB at 512x512 (measured).
  size_t external_bytes() const override {
    return size_t(settings_.width) * size_t(settings_.height) * 11;
  }

 private:
  /**
   * Whether nothing has changed and the frame may be a repetition. Not within REFINE_FRAMES of a
   * key frame. After STILL_FRAMES equal pictures OpenH264 codes for one second, in case the picture
   * was coded coarsely.
   */
  bool is_repetition(std::span<const uint8_t> dirty) {
    const bool still =
        !dirty.empty() && std::find_if(dirty.begin(), dirty.end(),
                                       [](uint8_t block) { return block != 0; }) == dirty.end();
    still_frames_ = still ? still_frames_ + 1 : 0;
    return still && frames_since_key_ >= REFINE_FRAMES &&
           (still_frames_ < STILL_FRAMES || still_frames_ >= STILL_FRAMES + settings_.fps);
  }

  EncodedFrame copy_repeat(std::span<const uint8_t> frame, std::span<uint8_t> out) {
    if (frame.size() > out.size()) {
      fail_too_small(out, frame.size());
    }
    std::copy(frame.begin(), frame.end(), out.begin());
    time_++;
    return {frame.size(), false};
  }

  [[noreturn]] void fail_too_small(std::span<const uint8_t> out, size_t bytes) {
    needs_key_ = true;  // later frames would refer to this one, which is lost
    throw std::out_of_range("out has " + std::to_string(out.size()) + " bytes, the frame needs " +
                            std::to_string(bytes));
  }

  static int peak(int bitrate) { return bitrate + bitrate / 2; }

  void set_up() {
    ISVCEncoder* created = nullptr;
    check(WelsCreateSVCEncoder(&created), "set up");
    codec_.reset(created);
    int level = WELS_LOG_QUIET;
    codec_->SetOption(ENCODER_OPTION_TRACE_LEVEL, &level);
    SEncParamExt p;
    check(codec_->GetDefaultParams(&p), "set up");
    p.iUsageType = CAMERA_VIDEO_REAL_TIME;
    p.iPicWidth = settings_.width;
    p.iPicHeight = settings_.height;
    p.fMaxFrameRate = float(settings_.fps);
    p.iRCMode = RC_BITRATE_MODE;
    p.iTargetBitrate = bitrate_;
    p.iMaxBitrate = peak(bitrate_);
    p.iMinQp = min_qp_;
    p.iMaxQp = 51;
    p.bEnableFrameSkip = false;
    p.iTemporalLayerNum = 1;
    p.iSpatialLayerNum = 1;
    p.iNumRefFrame = 1;
    p.uiIntraPeriod = 0;  // key frames only on request
    p.eSpsPpsIdStrategy = CONSTANT_ID;
    p.iComplexityMode = LOW_COMPLEXITY;
    p.iMultipleThreadIdc = 1;
    p.bEnableDenoise = false;
    p.bEnableBackgroundDetection = true;  // a third less CPU time, and more bits for the face
    p.bEnableAdaptiveQuant = true;
    p.bEnableSceneChangeDetect = false;
    SSpatialLayerConfig& layer = p.sSpatialLayers[0];
    layer.iVideoWidth = settings_.width;
    layer.iVideoHeight = settings_.height;
    layer.fFrameRate = p.fMaxFrameRate;
    layer.iSpatialBitrate = p.iTargetBitrate;
    layer.iMaxSpatialBitrate = p.iMaxBitrate;
    layer.uiProfileIdc = PRO_BASELINE;
    // WebRTC's default profile-level-id 42e01f promises level 3.1: up to 1280x720 at 30 fps.
    const size_t blocks = macroblocks(settings_.width, settings_.height);
    layer.uiLevelIdc =
        blocks <= 3600 && blocks * size_t(settings_.fps) <= 108000 ? LEVEL_3_1 : LEVEL_UNKNOWN;
    layer.sSliceArgument.uiSliceMode = SM_SINGLE_SLICE;
    check(codec_->InitializeExt(&p), "set up");
    int format = videoFormatI420;
    check(codec_->SetOption(ENCODER_OPTION_DATAFORMAT, &format), "set up");
  }

  static void check(int error, const char* what) {
    if (error != cmResultSuccess) {
      throw std::runtime_error(std::string("OpenH264 cannot ") + what + ": error " +
                               std::to_string(error));
    }
  }

  struct Destroy {
    void operator()(ISVCEncoder* codec) const {
      codec->Uninitialize();
      WelsDestroySVCEncoder(codec);
    }
  };

  std::unique_ptr<ISVCEncoder, Destroy> codec_;
  int bitrate_;  // bit/s
  int min_qp_ = 18;
  long long time_ = 0;
  bool needs_key_ = true;
  int frames_since_key_ = 0, still_frames_ = 0;
  H264Repeater repeater_;
};

}  // namespace

std::unique_ptr<VideoEncoder> make_h264_encoder(const VideoSettings& settings) {
  return std::make_unique<H264Encoder>(settings);
}

}  // namespace mouthpiece
