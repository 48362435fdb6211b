// One outbound RTP stream (RFC 3550): headers, sequence numbers, counters, and the history for
// retransmission.
import { randomInt } from 'node:crypto';
import { rtpTimestamp } from '../../media/timeline.ts';
import type { SrtpSender } from '../srtp/srtp.ts';

/**
 * Largest RTP packet before encryption. With the SRTP tag (16 bytes) and the RTX sequence number
 * (2) the datagram has at most 1200 bytes, which every path carries (RFC 9000 section 14).
 */
export const MAX_RTP_BYTES = 1200 - 16 - 2;

/**
 * The playout-delay extension: least and greatest delay of a picture at the receiver, 12 bits each,
 * in units of 10 ms. Here 40 ms and 500 ms.
 *
 * Audio waits in Chromium's jitter buffer for 30 ms on an idle machine and 60 ms on a busy one.
 * With 0/0 Chromium also stops synchronizing the streams: the audio stays 50 ms or more behind the
 * lips. With at least 50 ms, measured by pixels and loudness, the audio is 15-20 ms ahead of the
 * lips on an idle machine and 16-26 ms behind on a busy one. With 40 ms both are within what
 * viewers
 * tolerate: from 15 ms ahead to 45 ms behind.
 */
const PLAYOUT_DELAY = (4 << 12) | 50;

/** Ids of the negotiated header extensions (RFC 8285, one-byte form); 0: not negotiated. */
export interface ExtensionIds {
  readonly mid: number;
  readonly absSendTime: number;
  readonly playoutDelay: number;
  readonly audioLevel: number;
}

/** What was negotiated for a stream. */
export interface StreamOptions {
  readonly payloadType: number;
  readonly clockRate: number;
  readonly mid: string;
  readonly extensions: ExtensionIds;
  /** Packets kept for retransmission: a power of two, or 0 for none. */
  readonly historyPackets: number;
  readonly rtxPayloadType: number | undefined;
}

/** The streams of a peer, as they were negotiated last. */
export interface MediaStreams {
  video: RtpStream | undefined;
  audio: RtpStream | undefined;
}

/** Limits on the retransmissions of one packet. */
export interface RetransmitLimits {
  readonly maxTimes: number;
  readonly minIntervalMs: number;
}

/** Sends the first `length` bytes of `datagram`. */
export type DatagramSink = (datagram: Buffer, length: number) => void;

/** The SSRC of a stream, and that of its retransmissions. */
export interface Ssrcs {
  readonly ssrc: number;
  readonly rtxSsrc: number;
}

/** Chosen at random (RFC 3550 section 8.1). */
export const newSsrcs = (): Ssrcs => ({ ssrc: randomSsrc(), rtxSsrc: randomSsrc() });

/** Owns the SSRCs and the rollover counters of a stream and its RTX stream. */
export class RtpStream {
  readonly ssrc: number;
  readonly rtxSsrc: number;
  readonly options: StreamOptions;
  readonly payloadType: number;
  readonly rtxPayloadType: number | undefined;
  /** Offset of the payload in `packet`. */
  readonly headerBytes: number;
  readonly #clockRate: number;
  readonly #timestampOffset = randomInt(2 ** 32);
  readonly #absSendTimeAt: number;
  readonly #audioLevelAt: number;
  readonly #slots: Buffer[];
  readonly #lengths: Uint16Array;
  readonly #sentWallMs: Float64Array;
  readonly #sequences: Int32Array;
  readonly #rolloverCounters: Uint32Array;
  readonly #timesRetransmitted: Uint8Array;
  readonly #retransmittedMs: Float64Array;
  readonly #rtxPacket = Buffer.alloc(MAX_RTP_BYTES + 2);
  /**
   * Starts in the lower half, so that both sides start with rollover counter 0 (RFC 3711 section
   * 3.3.1).
   */
  #sequence = randomInt(2 ** 15);
  #rollover = 0;
  #rtxSequence = randomInt(2 ** 15);
  #rtxRollover = 0;
  /** Packets and payload bytes sent, retransmissions not counted: for sender reports. */
  packets = 0;
  payloadBytes = 0;
  /** Packets retransmitted. */
  retransmitted = 0;

  /** @param ssrcs never those of another stream with the same keys */
  constructor(options: StreamOptions, { ssrc, rtxSsrc } = newSsrcs()) {
    this.options = options;
    this.ssrc = ssrc;
    this.rtxSsrc = rtxSsrc;
    this.payloadType = options.payloadType;
    this.rtxPayloadType = options.rtxPayloadType;
    this.#clockRate = options.clockRate;
    const { template, absSendTimeAt, audioLevelAt } = headerTemplate(options, this.ssrc);
    this.headerBytes = template.length;
    this.#absSendTimeAt = absSendTimeAt;
    this.#audioLevelAt = audioLevelAt;
    const slots = Math.max(1, options.historyPackets);
    const memory = Buffer.alloc(slots * MAX_RTP_BYTES);
    this.#slots = Array.from({ length: slots }, (_, index) =>
      memory.subarray(index * MAX_RTP_BYTES, (index + 1) * MAX_RTP_BYTES),
    );
    for (const slot of this.#slots) {
      template.copy(slot, 0);
    }
    this.#lengths = new Uint16Array(slots);
    this.#sentWallMs = new Float64Array(slots);
    this.#sequences = new Int32Array(slots).fill(-1);
    this.#rolloverCounters = new Uint32Array(slots);
    this.#timesRetransmitted = new Uint8Array(slots);
    this.#retransmittedMs = new Float64Array(slots);
  }

  /** Whether packets can be retransmitted on request. */
  get keepsHistory(): boolean {
    return this.#slots.length > 1;
  }

  /** Longest payload that fits into a packet. */
  get maxPayloadBytes(): number {
    return MAX_RTP_BYTES - this.headerBytes;
  }

  /** RTP timestamp of a media time. */
  timestampOf(mediaMs: number): number {
    return rtpTimestamp(mediaMs, this.#clockRate, this.#timestampOffset);
  }

  /** The buffer of the next packet. Write the payload at `headerBytes`, then call `send`. */
  get packet(): Buffer {
    return this.#slots[this.#sequence & (this.#slots.length - 1)] ?? this.#rtxPacket;
  }

  /**
   * Completes the header of the packet in `packet`, encrypts the packet into `out`, and sends it.
   */
  send(
    payloadBytes: number,
    timestamp: number,
    marker: boolean,
    wallMs: number,
    srtp: SrtpSender,
    out: Buffer,
    sink: DatagramSink,
  ): void {
    const sequence = this.#sequence;
    const index = sequence & (this.#slots.length - 1);
    const packet = this.packet;
    const length = this.headerBytes + payloadBytes;
    packet[1] = (marker ? 0x80 : 0) | this.payloadType;
    packet.writeUInt16BE(sequence, 2);
    packet.writeUInt32BE(timestamp, 4);
    this.#stampSendTime(packet, wallMs);
    this.#lengths[index] = length;
    this.#sentWallMs[index] = wallMs;
    this.#sequences[index] = sequence;
    this.#rolloverCounters[index] = this.#rollover;
    this.#timesRetransmitted[index] = 0;
    this.#retransmittedMs[index] = Number.NEGATIVE_INFINITY;
    sink(out, srtp.protectRtp(packet.subarray(0, length), this.headerBytes, this.#rollover, out));
    this.packets++;
    this.payloadBytes += payloadBytes;
    this.#sequence = (sequence + 1) & 0xffff;
    if (this.#sequence === 0) {
      this.#rollover++;
    }
  }

  /** Sequence number of the next packet. */
  get nextSequence(): number {
    return this.#sequence;
  }

  /** Wall-clock time when packet `sequence` was sent first; undefined if it left the history. */
  sentWallMs(sequence: number): number | undefined {
    const index = sequence & (this.#slots.length - 1);
    return this.#sequences[index] === sequence ? this.#sentWallMs[index] : undefined;
  }

  /** How often the packet in the history slot of `sequence` was retransmitted. */
  timesRetransmitted(sequence: number): number {
    return this.#timesRetransmitted[sequence & (this.#slots.length - 1)] ?? 0;
  }

  /**
   * Length of packet `sequence` in bytes; 0 if it left the history, or `limits` forbid its
   * retransmission.
   */
  retransmitCost(sequence: number, nowMs: number, limits: RetransmitLimits): number {
    const index = sequence & (this.#slots.length - 1);
    if (
      this.#sequences[index] !== sequence ||
      (this.#timesRetransmitted[index] ?? 0) >= limits.maxTimes
    ) {
      return 0;
    }
    if (nowMs - (this.#retransmittedMs[index] ?? 0) < limits.minIntervalMs) {
      return 0;
    }
    return this.#lengths[index] ?? 0;
  }

  /** Retransmits packet `sequence`: on the RTX stream if negotiated (RFC 4588), else unchanged. */
  retransmit(
    sequence: number,
    nowMs: number,
    wallMs: number,
    srtp: SrtpSender,
    out: Buffer,
    sink: DatagramSink,
  ): void {
    const index = sequence & (this.#slots.length - 1);
    const packet = (this.#slots[index] ?? this.#rtxPacket).subarray(0, this.#lengths[index]);
    this.#timesRetransmitted[index] = (this.#timesRetransmitted[index] ?? 0) + 1;
    this.#retransmittedMs[index] = nowMs;
    this.retransmitted++;
    if (this.rtxPayloadType === undefined) {
      // Byte for byte the same packet: a different one under the same index would break the cipher
      // (RFC 3711 section 9.1).
      sink(out, srtp.protectRtp(packet, this.headerBytes, this.#rolloverCounters[index] ?? 0, out));
      return;
    }
    const rtx = this.#rtxPacket;
    packet.copy(rtx, 0, 0, this.headerBytes);
    rtx[1] = ((packet[1] ?? 0) & 0x80) | this.rtxPayloadType;
    rtx.writeUInt16BE(this.#rtxSequence, 2);
    rtx.writeUInt32BE(this.rtxSsrc, 8);
    this.#stampSendTime(rtx, wallMs);
    // OSN, original sequence number (RFC 4588 section 4)
    rtx.writeUInt16BE(sequence, this.headerBytes);
    packet.copy(rtx, this.headerBytes + 2, this.headerBytes);
    sink(
      out,
      srtp.protectRtp(rtx.subarray(0, packet.length + 2), this.headerBytes, this.#rtxRollover, out),
    );
    this.#rtxSequence = (this.#rtxSequence + 1) & 0xffff;
    if (this.#rtxSequence === 0) {
      this.#rtxRollover++;
    }
  }

  /** Writes the audio level of the packet in `packet` (RFC 6464). */
  stampAudioLevel(audioLevel: number): void {
    if (this.#audioLevelAt > 0) {
      this.packet[this.#audioLevelAt] = audioLevel;
    }
  }

  /** Writes abs-send-time: seconds modulo 64 as 6.18 fixed-point number, from any clock. */
  #stampSendTime(packet: Buffer, wallMs: number): void {
    if (this.#absSendTimeAt > 0) {
      packet.writeUIntBE(
        Math.floor(((wallMs % 64_000) / 1000) * 262_144) & 0xffffff,
        this.#absSendTimeAt,
        3,
      );
    }
  }
}

const randomSsrc = (): number => randomInt(1, 2 ** 32);

/**
 * The constant fields of a header: flags, SSRC, mid, playout-delay. `absSendTimeAt`, `audioLevelAt`:
 * offsets of what differs from packet to packet; 0: none.
 */
function headerTemplate(
  options: StreamOptions,
  ssrc: number,
): { template: Buffer; absSendTimeAt: number; audioLevelAt: number } {
  const { extensions } = options;
  const body: number[] = [];
  let absSendTimeAt = 0;
  let audioLevelAt = 0;
  if (extensions.mid > 0) {
    body.push(
      (extensions.mid << 4) | (options.mid.length - 1),
      ...Buffer.from(options.mid, 'latin1'),
    );
  }
  if (extensions.absSendTime > 0) {
    absSendTimeAt = 16 + body.length + 1;
    body.push((extensions.absSendTime << 4) | 2, 0, 0, 0);
  }
  if (extensions.playoutDelay > 0) {
    body.push(
      (extensions.playoutDelay << 4) | 2,
      PLAYOUT_DELAY >> 16,
      (PLAYOUT_DELAY >> 8) & 255,
      PLAYOUT_DELAY & 255,
    );
  }
  if (extensions.audioLevel > 0) {
    audioLevelAt = 16 + body.length + 1;
    body.push(extensions.audioLevel << 4, 0);
  }
  while (body.length % 4 !== 0) {
    body.push(0);
  }
  const template = Buffer.alloc(body.length > 0 ? 16 + body.length : 12);
  template[0] = body.length > 0 ? 0x90 : 0x80;
  template.writeUInt32BE(ssrc, 8);
  if (body.length > 0) {
    template.writeUInt16BE(0xbede, 12);
    template.writeUInt16BE(body.length / 4, 14);
    Buffer.from(body).copy(template, 16);
  }
  return { template, absSendTimeAt, audioLevelAt };
}
