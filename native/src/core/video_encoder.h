// The interface of a video encoder without frame delay, which VP8 and H.264 implement.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace mouthpiece {

struct VideoSettings {
  int width;         // pixels, even
  int height;        // pixels, even
  int fps;           // frame rate for rate control, 1/s
  int bitrate_kbps;  // target, kbit/s
};

/** @returns 16x16 macroblocks of a picture; the last column and row may be partly outside */
inline size_t macroblocks(int width, int height) {
  return size_t((width + 15) / 16) * size_t((height + 15) / 16);
}
/** @returns bytes of an I420 picture without padding: Y, then U and V at half width and height */
inline size_t i420_bytes(int width, int height) {
  return size_t(width) * size_t(height) * 3 / 2;
}

/** An encoded frame in the caller's buffer. */
struct EncodedFrame {
  size_t bytes = 0;  // 0: rate control dropped the frame
  bool is_key = false;
};

/** One encoder of one stream. Not thread-safe. */
class VideoEncoder {
 public:
  virtual ~VideoEncoder() = default;

  /**
   * Encodes one picture.
   * @param picture i420_bytes(width, height) bytes
   * @param out receives the frame
   * @param force_key whether the frame must be a key frame
   * @param dirty empty, or a BlockChange per macroblock in rows. SHIFTED is for VP8 alone; other
   * codecs code the picture as it is
   * @param motion empty, or two numbers per macroblock that is not equal: where what it shows was
   * in the previous picture, right and below of where it is now, in quarters of a pixel
   * @throws std::out_of_range when `out` is too small (the next frame is then a key frame),
   * std::runtime_error with the codec's error
   */
  virtual EncodedFrame encode(std::span<const uint8_t> picture, std::span<uint8_t> out,
                              bool force_key, std::span<const uint8_t> dirty,
                              std::span<const int16_t> motion = {}) = 0;
  /** Changes the target from the next picture on. */
  virtual void set_bitrate(int kbps) = 0;
  /** @returns an estimate of the codec's memory, bytes */
  virtual size_t external_bytes() const = 0;
  const VideoSettings& settings() const { return settings_; }

 protected:
  explicit VideoEncoder(const VideoSettings& settings) : settings_(settings) {}
  VideoSettings settings_;
};

/** libvpx. @throws std::runtime_error with the codec's error */
std::unique_ptr<VideoEncoder> make_vp8_encoder(const VideoSettings& settings);
/** OpenH264, constrained baseline. @throws std::runtime_error with the codec's error */
std::unique_ptr<VideoEncoder> make_h264_encoder(const VideoSettings& settings);

}  // namespace mouthpiece
