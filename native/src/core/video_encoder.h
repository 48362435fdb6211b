// One video encoder with zero frames of delay: what VP8 and H.264 have in common.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace mouthpiece {

struct VideoSettings {
  int width;         // even pixels
  int height;        // even pixels
  int fps;           // frames per second that rate control plans with
  int bitrate_kbps;  // kbit/s
  int speed = -12;   // libvpx cpu-used; VP8 only
};

/** A picture's macroblocks: 16x16 luma pixels each, the last column and row maybe partly outside.
 */
inline size_t macroblocks(int width, int height) {
  return size_t((width + 15) / 16) * size_t((height + 15) / 16);
}
/** Bytes of a tight I420 picture: Y, then U and V at half the width and height. */
inline size_t i420_bytes(int width, int height) {
  return size_t(width) * size_t(height) * 3 / 2;
}

struct EncodedFrame {
  size_t bytes = 0;  // 0: rate control dropped the frame
  bool is_key = false;
};

class VideoEncoder {
 public:
  virtual ~VideoEncoder() = default;

  /**
   * Encodes one picture into `out`.
   * @param picture i420_bytes(width, height) bytes
   * @param dirty empty, or one byte per macroblock: 0 says that it has not changed since the
   * picture before
   * @throws std::out_of_range when `out` is too small (the next frame will be a key frame),
   * std::runtime_error from the codec
   */
  virtual EncodedFrame encode(std::span<const uint8_t> picture, std::span<uint8_t> out,
                              bool force_key, std::span<const uint8_t> dirty) = 0;
  /** Takes effect with the next picture. */
  virtual void set_bitrate(int kbps) = 0;
  /** About how much memory the codec holds. */
  virtual size_t external_bytes() const = 0;
  const VideoSettings& settings() const { return settings_; }

 protected:
  explicit VideoEncoder(const VideoSettings& settings) : settings_(settings) {}
  VideoSettings settings_;
};

std::unique_ptr<VideoEncoder> make_vp8_encoder(const VideoSettings& settings);
std::unique_ptr<VideoEncoder> make_h264_encoder(const VideoSettings& settings);

}  // namespace mouthpiece
