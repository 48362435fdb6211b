// RTCP messages as receivers send them, unencrypted.

const RECEIVER_SSRC = 1;
const TYPE = { receiverReport: 201, rtpFeedback: 205, payloadFeedback: 206 } as const;

function message(type: number, format: number, words: readonly number[]): Buffer {
  const out = Buffer.alloc(4 + words.length * 4);
  out[0] = 0x80 | format;
  out[1] = type;
  out.writeUInt16BE(words.length, 2);
  words.forEach((word, index) => {
    out.writeUInt32BE(word >>> 0, 4 + index * 4);
  });
  return out;
}

/** Generic NACK (RFC 4585 section 6.2.1): one entry per sequence number. */
export const nack = (ssrc: number, sequenceNumbers: readonly number[]): Buffer =>
  message(TYPE.rtpFeedback, 1, [
    RECEIVER_SSRC,
    ssrc,
    ...sequenceNumbers.map((sequenceNumber) => (sequenceNumber & 0xffff) << 16),
  ]);

/** Picture loss indication (RFC 4585 section 6.3.1). */
export const pli = (ssrc: number): Buffer =>
  message(TYPE.payloadFeedback, 1, [RECEIVER_SSRC, ssrc]);

/** Full intra request (RFC 5104 section 4.3.1). */
export const fir = (ssrc: number, sequenceNumber: number): Buffer =>
  message(TYPE.payloadFeedback, 4, [RECEIVER_SSRC, 0, ssrc, sequenceNumber << 24]);

/** Receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb-03). */
export function remb(ssrc: number, bitsPerSecond: number): Buffer {
  const exponent = Math.max(0, Math.ceil(Math.log2(bitsPerSecond / 0x3ffff)));
  const mantissa = Math.floor(bitsPerSecond / 2 ** exponent);
  const identifier = Buffer.from('REMB').readUInt32BE();
  const estimate = (1 << 24) | (exponent << 18) | mantissa;
  return message(TYPE.payloadFeedback, 15, [RECEIVER_SSRC, 0, identifier, estimate, ssrc]);
}

/** The fields of a report block (RFC 3550 section 6.4.1). */
export interface ReportBlock {
  /** Cumulative number of packets lost. */
  readonly lost?: number;
  /** Extended highest sequence number received. */
  readonly highest?: number;
  /** LSR and DLSR in 1/65536 s; 0: no sender report received. */
  readonly lastSr?: number;
  readonly delaySinceLastSr?: number;
}

/** A receiver report with one block. */
export const receiverReport = (
  ssrc: number,
  { lost = 0, highest = 0, lastSr = 0, delaySinceLastSr = 0 }: ReportBlock,
): Buffer =>
  message(TYPE.receiverReport, 1, [
    RECEIVER_SSRC,
    ssrc,
    lost & 0xffffff,
    highest,
    0,
    lastSr,
    delaySinceLastSr,
  ]);
