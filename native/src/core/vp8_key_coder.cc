#include "core/vp8_key_coder.h"

#include <vpx/vp8cx.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "core/vp8_tables.h"

namespace mouthpiece::vp8 {
namespace {

/** libvpx numbers quantisers from 0 to 63: the quantiser indices of these. */
constexpr std::array<uint8_t, 64> INDICES = {
    0,  1,  2,  3,  4,  5,  7,  8,  9,  10, 12,  13,  15,  17,  18,  19,  20,  21,  23,  24, 25, 26,
    27, 28, 29, 30, 31, 33, 35, 37, 39, 41, 43,  45,  47,  49,  51,  53,  55,  57,  59,  61, 64, 67,
    70, 73, 76, 79, 82, 85, 88, 91, 94, 97, 100, 103, 106, 109, 112, 115, 118, 121, 124, 127};
/** Of libvpx's numbers. */
constexpr int FINEST = 14, COARSEST = 60;
/** As in WebRTC: what a key frame may take of the target, seconds. */
constexpr double LONGEST = .3;
/** The first guess: bytes of a portrait of 512x512 times its quantiser step. */
constexpr double BYTES_BY_STEP = 460'000;
constexpr int MAX_TRIALS = 3;

double step_of(int number) {
  return AC_STEPS[INDICES[size_t(number)]];
}

/** @returns libvpx's number of the finest quantiser with a step of at least `step` */
int number_of(double step) {
  int number = FINEST;
  while (number < COARSEST && step_of(number) < step) {
    number++;
  }
  return number;
}

}  // namespace

KeyCoder::KeyCoder(int width, int height) {
  check(vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &config_, 0), "set up");
  config_.g_w = unsigned(width);
  config_.g_h = unsigned(height);
  config_.g_threads = 1;
  config_.g_lag_in_frames = 0;
  config_.rc_end_usage = VPX_CBR;
  if (vpx_codec_enc_init(&codec_, vpx_codec_vp8_cx(), &config_, 0) != VPX_CODEC_OK) {
    throw std::runtime_error(std::string("libvpx cannot set up: ") + vpx_codec_error(&codec_));
  }
  vpx_codec_control(&codec_, VP8E_SET_CPUUSED, -12);
}

KeyCoder::~KeyCoder() {
  vpx_codec_destroy(&codec_);
}

std::span<const uint8_t> KeyCoder::code(std::span<const uint8_t> picture, int kbps) {
  const double limit = kbps * 1000. / 8 * LONGEST;
  const double size = double(config_.g_w) * double(config_.g_h) / (512. * 512.);
  int number = number_of(BYTES_BY_STEP * size / limit);
  for (int trial = 1;; trial++) {
    const auto frame = code_at(picture, number);
    const double bytes = double(frame.size());
    if (bytes <= 1.1 * limit || number == COARSEST || trial == MAX_TRIALS) {
      return frame;
    }
    number = std::max(number + 1, number_of(step_of(number) * bytes / limit));
  }
}

std::span<const uint8_t> KeyCoder::code_at(std::span<const uint8_t> picture, int quantizer) {
  config_.rc_min_quantizer = config_.rc_max_quantizer = unsigned(quantizer);
  check(vpx_codec_enc_config_set(&codec_, &config_), "change its quantiser");
  vpx_image_t image;
  vpx_img_wrap(&image, VPX_IMG_FMT_I420, config_.g_w, config_.g_h, 1,
               const_cast<uint8_t*>(picture.data()));  // libvpx only reads it
  check(vpx_codec_encode(&codec_, &image, time_++, 1, VPX_EFLAG_FORCE_KF | VP8_EFLAG_NO_UPD_ENTROPY,
                         VPX_DL_REALTIME),
        "encode");
  vpx_codec_iter_t position = nullptr;
  while (const vpx_codec_cx_pkt_t* packet = vpx_codec_get_cx_data(&codec_, &position)) {
    if (packet->kind == VPX_CODEC_CX_FRAME_PKT) {
      return {static_cast<const uint8_t*>(packet->data.frame.buf), packet->data.frame.sz};
    }
  }
  throw std::runtime_error("libvpx made no key frame");
}

Planes KeyCoder::decoded() {
  const vpx_image_t* image = vpx_codec_get_preview_frame(&codec_);
  if (image == nullptr) {
    throw std::runtime_error("libvpx does not show its key frame");
  }
  return {{image->planes[0], image->planes[1], image->planes[2]},
          {image->stride[0], image->stride[1], image->stride[2]}};
}

int KeyCoder::quantizer() {
  int index = 0;
  check(vpx_codec_control(&codec_, VP8E_GET_LAST_QUANTIZER, &index), "report its quantiser");
  return index;
}

void KeyCoder::check(vpx_codec_err_t error, const char* what) {
  if (error == VPX_CODEC_OK) {
    return;
  }
  const char* detail = vpx_codec_error_detail(&codec_);
  throw std::runtime_error(std::string("libvpx cannot ") + what + ": " +
                           vpx_codec_err_to_string(error) +
                           (detail ? std::string(", ") + detail : ""));
}

}  // namespace mouthpiece::vp8
