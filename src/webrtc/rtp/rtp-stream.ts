// One outbound RTP stream (RFC 3550): numbering, header template, counters, and the packets kept for retransmission.
import { randomInt } from 'node:crypto';
import { rtpTimestamp } from '../../media/timeline.ts';
import type { SrtpSender } from '../srtp/srtp.ts';

/** Largest RTP packet before protection: with SRTP's tag and RTX's two bytes the datagram stays within 1200 bytes. */
export const MAX_RTP_BYTES = 1200 - 16 - 2;

/**
 * The playout-delay extension's two 12-bit numbers in units of 10 ms: the least and the most that a receiver may hold a picture.
 * Sound waits in Chromium's jitter buffer for 30 ms on a quiet machine and 60 on a busy one. Measured there: with 0/0 it stays 50 ms
 * and more behind the lips, since that also turns Chromium's own synchronisation off. What is presented, by pixels and loudness: with 50 ms the
 * sound is 15-20 ms ahead of the lips on a quiet machine and 16-26 behind on a busy one. 40 ms puts both within what viewers tolerate: sound
 * from 15 ms ahead to 45 ms behind.
 */
const PLAYOUT_DELAY = (4 << 12) | 50;

/** Ids of the negotiated header extensions (RFC 8285, one-byte form); 0 when not negotiated. */
export interface ExtensionIds {
  readonly mid: number;
  readonly absSendTime: number;
  readonly playoutDelay: number;
}

export interface StreamOptions {
  readonly payloadType: number;
  readonly clockRate: number;
  readonly mid: string;
  readonly extensions: ExtensionIds;
  /** Packets to keep, a power of two; 0 keeps none. */
  readonly historyPackets: number;
  readonly rtxPayloadType: number | undefined;
}

export interface RetransmitLimits {
  readonly maxTimes: number;
  readonly minIntervalMs: number;
}

/** Sends a protected datagram that lies in the first `length` bytes of `datagram`; the buffer is the sender's again on return. */
export type DatagramSink = (datagram: Buffer, length: number) => void;

export class RtpStream {
  readonly ssrc = randomSsrc();
  readonly rtxSsrc = randomSsrc();
  readonly payloadType: number;
  readonly rtxPayloadType: number | undefined;
  /** Where a payload begins in `packet`. */
  readonly headerBytes: number;
  readonly #clockRate: number;
  readonly #timestampOffset = randomInt(2 ** 32);
  readonly #absSendTimeAt: number;
  readonly #slots: Buffer[];
  readonly #lengths: Uint16Array;
  readonly #sequences: Int32Array;
  readonly #rollovers: Uint32Array;
  readonly #times: Uint8Array;
  readonly #sentMs: Float64Array;
  readonly #rtxPacket = Buffer.alloc(MAX_RTP_BYTES + 2);
  #sequence = randomInt(2 ** 15); // in the lower half, so that the rollover counter starts at 0 for both sides (RFC 3711 section 3.3.1)
  #rollover = 0;
  #rtxSequence = randomInt(2 ** 15);
  #rtxRollover = 0;
  packets = 0;
  payloadBytes = 0;
  retransmitted = 0;

  constructor(options: StreamOptions) {
    this.payloadType = options.payloadType;
    this.rtxPayloadType = options.rtxPayloadType;
    this.#clockRate = options.clockRate;
    const { template, absSendTimeAt } = headerTemplate(options, this.ssrc);
    this.headerBytes = template.length;
    this.#absSendTimeAt = absSendTimeAt;
    const slots = Math.max(1, options.historyPackets);
    const memory = Buffer.alloc(slots * MAX_RTP_BYTES);
    this.#slots = Array.from({ length: slots }, (_, index) =>
      memory.subarray(index * MAX_RTP_BYTES, (index + 1) * MAX_RTP_BYTES),
    );
    for (const slot of this.#slots) {
      template.copy(slot, 0);
    }
    this.#lengths = new Uint16Array(slots);
    this.#sequences = new Int32Array(slots).fill(-1);
    this.#rollovers = new Uint32Array(slots);
    this.#times = new Uint8Array(slots);
    this.#sentMs = new Float64Array(slots);
  }

  /** Whether packets can be sent again. */
  get keepsHistory(): boolean {
    return this.#slots.length > 1;
  }

  get maxPayloadBytes(): number {
    return MAX_RTP_BYTES - this.headerBytes;
  }

  timestampOf(mediaMs: number): number {
    return rtpTimestamp(mediaMs, this.#clockRate, this.#timestampOffset);
  }

  /** The buffer of the next packet: its payload is to be written from `headerBytes` on, then `send` called. */
  get packet(): Buffer {
    return this.#slots[this.#sequence & (this.#slots.length - 1)] ?? this.#rtxPacket;
  }

  /** Finishes the header of the packet in `packet`, protects and sends it. */
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
    this.#sequences[index] = sequence;
    this.#rollovers[index] = this.#rollover;
    this.#times[index] = 0;
    this.#sentMs[index] = Number.NEGATIVE_INFINITY;
    sink(out, srtp.protectRtp(packet.subarray(0, length), this.headerBytes, this.#rollover, out));
    this.packets++;
    this.payloadBytes += payloadBytes;
    this.#sequence = (sequence + 1) & 0xffff;
    if (this.#sequence === 0) {
      this.#rollover++;
    }
  }

  /** Number of the packet that goes out next. */
  get nextSequence(): number {
    return this.#sequence;
  }

  /** How often packet `sequence`, if it is still kept, was sent again. */
  timesRetransmitted(sequence: number): number {
    return this.#times[sequence & (this.#slots.length - 1)] ?? 0;
  }

  /** Bytes that sending packet `sequence` again would cost; 0 when it is no longer kept, or was sent again too often or just now. */
  retransmitCost(sequence: number, nowMs: number, limits: RetransmitLimits): number {
    const index = sequence & (this.#slots.length - 1);
    if (this.#sequences[index] !== sequence || (this.#times[index] ?? 0) >= limits.maxTimes) {
      return 0;
    }
    if (nowMs - (this.#sentMs[index] ?? 0) < limits.minIntervalMs) {
      return 0;
    }
    return this.#lengths[index] ?? 0;
  }

  /** Sends packet `sequence` again: on the RTX stream where negotiated (RFC 4588), else as it was. */
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
    this.#times[index] = (this.#times[index] ?? 0) + 1;
    this.#sentMs[index] = nowMs;
    this.retransmitted++;
    if (this.rtxPayloadType === undefined) {
      // Byte for byte the packet it was: another ciphertext under the same index would break the cipher (RFC 3711 section 9.1).
      sink(out, srtp.protectRtp(packet, this.headerBytes, this.#rollovers[index] ?? 0, out));
      return;
    }
    const rtx = this.#rtxPacket;
    packet.copy(rtx, 0, 0, this.headerBytes);
    rtx[1] = ((packet[1] ?? 0) & 0x80) | this.rtxPayloadType;
    rtx.writeUInt16BE(this.#rtxSequence, 2);
    rtx.writeUInt32BE(this.rtxSsrc, 8);
    this.#stampSendTime(rtx, wallMs);
    rtx.writeUInt16BE(sequence, this.headerBytes); // original sequence number
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

  /** abs-send-time: 24 bits of 6.18 fixed-point seconds, from any clock. */
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

/** Everything in a packet's header that does not change: flags, SSRC, mid, playout-delay. */
function headerTemplate(
  options: StreamOptions,
  ssrc: number,
): { template: Buffer; absSendTimeAt: number } {
  const { extensions } = options;
  const body: number[] = [];
  let absSendTimeAt = 0;
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
  return { template, absSendTimeAt };
}
