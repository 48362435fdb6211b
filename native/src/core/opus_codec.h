// Opus encoder and decoder (RFC 6716) for frames of interleaved 16-bit samples.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct OpusEncoder;
struct OpusDecoder;

namespace mouthpiece {

/** Settings of an encoder. */
struct OpusSettings {
  int sample_rate;  // 8000, 12000, 16000, 24000 or 48000
  int channels;     // 1 or 2
  int bitrate = 32000;
  int complexity = 5;
  bool inband_fec = false;
};

/**
 * @param samples per channel
 * @returns whether Opus has a frame of that length: 2.5, 5, 10, 20, 40 or 60 ms (RFC 6716, 2.1.4)
 */
bool is_opus_frame(int sample_rate, size_t samples);

class OpusEncoding {
 public:
  /** @throws std::out_of_range for a sample rate that Opus does not support */
  explicit OpusEncoding(const OpusSettings& settings);
  ~OpusEncoding();
  OpusEncoding(const OpusEncoding&) = delete;
  OpusEncoding& operator=(const OpusEncoding&) = delete;

  /**
   * @param pcm one frame, interleaved
   * @returns bytes written to `out`
   * @throws std::invalid_argument for a wrong frame length, std::out_of_range when `out` is too
   * small
   */
  size_t encode(std::span<const int16_t> pcm, std::span<uint8_t> out);
  void set_bitrate(int bitrate);
  /** Sets the expected packet loss, percent: the more, the more redundancy in-band FEC adds. */
  void set_packet_loss(int percent);
  size_t external_bytes() const;

 private:
  OpusSettings settings_;
  ::OpusEncoder* codec_;
};

class OpusDecoding {
 public:
  /** @throws std::out_of_range for a sample rate that Opus does not support */
  OpusDecoding(int sample_rate, int channels);
  ~OpusDecoding();
  OpusDecoding(const OpusDecoding&) = delete;
  OpusDecoding& operator=(const OpusDecoding&) = delete;

  /**
   * @returns samples per channel written to `out`
   * @throws std::invalid_argument for an empty packet, std::out_of_range when `out` is too small,
   * std::runtime_error for a corrupt packet
   */
  size_t decode(std::span<const uint8_t> packet, std::span<int16_t> out);
  /**
   * Conceals a lost frame of out.size() / channels samples.
   * @returns samples per channel
   * @throws std::invalid_argument when Opus has no frame of that length
   */
  size_t conceal(std::span<int16_t> out);
  /**
   * Recovers the lost frame before `packet` from the packet's in-band redundancy. Without
   * redundancy it conceals the frame.
   * @returns, @throws as `conceal`; std::runtime_error for a corrupt packet
   */
  size_t recover(std::span<const uint8_t> packet, std::span<int16_t> out);
  size_t external_bytes() const;

 private:
  int sample_rate_;
  int channels_;
  ::OpusDecoder* codec_;
};

}  // namespace mouthpiece
