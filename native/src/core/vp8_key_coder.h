// Key frames of VP8, by libvpx.
#pragma once
#include <vpx/vpx_encoder.h>

#include <cstdint>
#include <span>

#include "core/vp8_inter_coder.h"

namespace mouthpiece::vp8 {

/** Codes one picture. Its memory, 10 MB at 512x512, is given back at once. */
class KeyCoder {
 public:
  /** @throws std::runtime_error with the codec's error */
  KeyCoder(int width, int height);
  ~KeyCoder();
  KeyCoder(const KeyCoder&) = delete;
  KeyCoder& operator=(const KeyCoder&) = delete;

  /**
   * @param kbps the stream's target: the frame takes a third of a second of it at most, if the
   * coarsest quantiser allows
   * @returns the frame, valid as long as this. After it a decoder has default probabilities
   */
  std::span<const uint8_t> code(std::span<const uint8_t> picture, int kbps);
  /** The picture as decoders have it. */
  Planes decoded();
  /** Quantiser index of the frame, 0 to 127. */
  int quantizer();

 private:
  std::span<const uint8_t> code_at(std::span<const uint8_t> picture, int quantizer);
  void check(vpx_codec_err_t error, const char* what);

  vpx_codec_enc_cfg_t config_{};
  vpx_codec_ctx_t codec_{};
  vpx_codec_pts_t time_ = 0;
};

}  // namespace mouthpiece::vp8
