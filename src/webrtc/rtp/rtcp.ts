// RTCP (RFC 3550, 4585, 5104, REMB draft): writes the packets we send, and parses those of the
// receiver.

const TYPE = {
  sr: 200,
  rr: 201,
  sdes: 202,
  bye: 203,
  rtpFeedback: 205,
  payloadFeedback: 206,
} as const;
/**
 * Feedback message types (RFC 4585 section 6, RFC 5104 section 4.3.1). REMB is an application layer
 * message.
 */
const FORMAT = { nack: 1, pli: 1, fir: 4, applicationLayer: 15 } as const;
/** Seconds from 1900, the NTP epoch, to 1970, the Unix epoch. */
const NTP_UNIX_OFFSET_SECONDS = 2_208_988_800;
const REMB_IDENTIFIER = 0x52454d42; // 'REMB'

/**
 * The contents of a compound packet. `ssrc` is that of the media stream a message is about; the
 * handler ignores unknown ones.
 */
export interface RtcpHandler {
  /**
   * One report block (RFC 3550 section 6.4.1).
   * @param fractionLost 0 to 1, since the previous report
   * @param lost cumulative number of packets lost
   * @param highest extended highest sequence number received
   * @param jitterTicks interarrival jitter in units of the RTP clock
   * @param lastSr middle 32 bits of the NTP time of our latest sender report; 0: none received
   * @param delaySinceLastSr in 1/65536 s; 0: no sender report received
   */
  onReport(
    ssrc: number,
    fractionLost: number,
    lost: number,
    highest: number,
    jitterTicks: number,
    lastSr: number,
    delaySinceLastSr: number,
  ): void;
  onNack(ssrc: number, sequenceNumber: number): void;
  onPli(ssrc: number): void;
  onFir(ssrc: number, sequenceNumber: number): void;
  onRemb(bitsPerSecond: number): void;
  onBye(): void;
}

/**
 * Parses a compound (or reduced-size, RFC 5506) packet.
 * @returns false if it is malformed. The packets before the malformed one have been handled.
 */
export function parseRtcp(data: Buffer, handler: RtcpHandler): boolean {
  let offset = 0;
  while (offset < data.length) {
    if (offset + 4 > data.length || (data[offset] ?? 0) >> 6 !== 2) {
      return false;
    }
    const count = (data[offset] ?? 0) & 31;
    const type = data[offset + 1] ?? 0;
    const end = offset + 4 + data.readUInt16BE(offset + 2) * 4;
    if (end > data.length) {
      return false;
    }
    const packet = data.subarray(offset, end);
    if (type === TYPE.sr) {
      parseReportBlocks(packet, 28, count, handler);
    } else if (type === TYPE.rr) {
      parseReportBlocks(packet, 8, count, handler);
    } else if (type === TYPE.bye) {
      handler.onBye();
    } else if (type === TYPE.rtpFeedback && count === FORMAT.nack) {
      parseNacks(packet, handler);
    } else if (type === TYPE.payloadFeedback && packet.length >= 12) {
      parsePayloadFeedback(packet, count, handler);
    }
    offset = end;
  }
  return true;
}

function parseReportBlocks(
  packet: Buffer,
  start: number,
  count: number,
  handler: RtcpHandler,
): void {
  for (let index = 0, at = start; index < count && at + 24 <= packet.length; index++, at += 24) {
    handler.onReport(
      packet.readUInt32BE(at),
      (packet[at + 4] ?? 0) / 256,
      packet.readIntBE(at + 5, 3),
      packet.readUInt32BE(at + 8),
      packet.readUInt32BE(at + 12),
      packet.readUInt32BE(at + 16),
      packet.readUInt32BE(at + 20),
    );
  }
}

/**
 * Generic NACK (RFC 4585 section 6.2.1): a sequence number, and a bit mask of the 16 packets after
 * it.
 */
function parseNacks(packet: Buffer, handler: RtcpHandler): void {
  if (packet.length < 12) {
    return;
  }
  const ssrc = packet.readUInt32BE(8);
  for (let at = 12; at + 4 <= packet.length; at += 4) {
    const first = packet.readUInt16BE(at);
    const mask = packet.readUInt16BE(at + 2);
    handler.onNack(ssrc, first);
    for (let bit = 0; bit < 16; bit++) {
      if (((mask >> bit) & 1) === 1) {
        handler.onNack(ssrc, (first + bit + 1) & 0xffff);
      }
    }
  }
}

function parsePayloadFeedback(packet: Buffer, format: number, handler: RtcpHandler): void {
  if (format === FORMAT.pli) {
    handler.onPli(packet.readUInt32BE(8));
  } else if (format === FORMAT.fir) {
    for (let at = 12; at + 8 <= packet.length; at += 8) {
      handler.onFir(packet.readUInt32BE(at), packet[at + 4] ?? 0);
    }
  } else if (
    format === FORMAT.applicationLayer &&
    packet.length >= 20 &&
    packet.readUInt32BE(12) === REMB_IDENTIFIER
  ) {
    // draft-alvestrand-rmcat-remb-03: 6 bits of exponent, 18 of mantissa
    const value = packet.readUIntBE(17, 3);
    handler.onRemb((value & 0x3ffff) * 2 ** (value >> 18));
  }
}

/** Writes the NTP timestamp of `wallMs` (milliseconds since the Unix epoch): 8 bytes at `at`. */
export function writeNtp(out: Buffer, at: number, wallMs: number): void {
  const seconds = Math.floor(wallMs / 1000);
  out.writeUInt32BE((seconds + NTP_UNIX_OFFSET_SECONDS) % 2 ** 32, at);
  out.writeUInt32BE(Math.floor((wallMs / 1000 - seconds) * 2 ** 32), at + 4);
}

/**
 * The middle 32 bits of an NTP timestamp, in 1/65536 s: the form of LSR (RFC 3550 section 6.4.1).
 */
export function compactNtp(wallMs: number): number {
  const units = Math.floor(((wallMs / 1000) % 65536) * 65536);
  return (units + (NTP_UNIX_OFFSET_SECONDS % 65536) * 65536) % 2 ** 32;
}

/** The counters of a sender report (RFC 3550 section 6.4.1), since the start of the stream. */
export interface SenderReport {
  readonly ssrc: number;
  readonly rtpTimestamp: number;
  readonly packets: number;
  readonly octets: number;
}

/**
 * A compound packet about one stream: sender report and SDES with the CNAME (RFC 3550 section 6.1).
 */
export function senderReport(report: SenderReport, wallMs: number, cname: string): Buffer {
  const head = Buffer.alloc(28);
  head[0] = 0x80;
  head[1] = TYPE.sr;
  head.writeUInt16BE(6, 2);
  head.writeUInt32BE(report.ssrc, 4);
  writeNtp(head, 8, wallMs);
  head.writeUInt32BE(report.rtpTimestamp, 16);
  head.writeUInt32BE(report.packets % 2 ** 32, 20);
  head.writeUInt32BE(report.octets % 2 ** 32, 24);
  return Buffer.concat([head, sourceDescription(report.ssrc, cname)]);
}

function sourceDescription(ssrc: number, cname: string): Buffer {
  const name = Buffer.from(cname, 'latin1');
  const out = Buffer.alloc(8 + Math.ceil((2 + name.length + 1) / 4) * 4);
  out[0] = 0x81;
  out[1] = TYPE.sdes;
  out.writeUInt16BE(out.length / 4 - 1, 2);
  out.writeUInt32BE(ssrc, 4);
  out[8] = 1; // CNAME
  out[9] = name.length;
  name.copy(out, 10);
  return out;
}

/**
 * A compound packet that ends all streams: an empty receiver report, then BYE (RFC 3550 section
 * 6.6).
 */
export function bye(ssrcs: readonly number[]): Buffer {
  const out = Buffer.alloc(8 + 4 + ssrcs.length * 4);
  out[0] = 0x80;
  out[1] = TYPE.rr;
  out.writeUInt16BE(1, 2);
  out.writeUInt32BE(ssrcs[0] ?? 0, 4);
  out[8] = 0x80 | ssrcs.length;
  out[9] = TYPE.bye;
  out.writeUInt16BE(ssrcs.length, 10);
  ssrcs.forEach((ssrc, index) => out.writeUInt32BE(ssrc, 12 + index * 4));
  return out;
}
