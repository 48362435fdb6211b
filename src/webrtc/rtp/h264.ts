// Splits H.264 access units in Annex B form into RTP payloads (RFC 6184, packetization-mode 1).
import type { Packetizer } from './packetizer.ts';

/** NAL unit types (H.264 table 7-1, RFC 6184 table 1). */
const NAL = { sei: 6, sps: 7, pps: 8, delimiter: 9, filler: 12, stapA: 24, fuA: 28 } as const;
/**
 * More NAL units than an access unit of a real-time encoder has. Further ones stay joined to the
 * last one.
 */
const MAX_UNITS = 64;

/**
 * Writes single NAL units, STAP-A for parameter sets, and FU-A for NAL units longer than a payload.
 */
export class H264Packetizer implements Packetizer {
  #frame: Uint8Array = new Uint8Array(0);
  #maxPayload = 0;
  /** Offsets in the frame at which each NAL unit starts and ends. */
  readonly #starts = new Int32Array(MAX_UNITS);
  readonly #ends = new Int32Array(MAX_UNITS);
  #unitCount = 0;
  /** Index of the NAL unit that is written next. */
  #unit = 0;
  /** Offset in the NAL unit that is being fragmented; 0 if none is. */
  #fragmentOffset = 0;
  #fragmentsLeft = 0;

  start(frame: Uint8Array, length: number, maxPayloadBytes: number): void {
    this.#frame = frame;
    this.#maxPayload = maxPayloadBytes;
    this.#unit = 0;
    this.#fragmentOffset = 0;
    this.#fragmentsLeft = 0;
    this.#findUnits(length);
  }

  get isDone(): boolean {
    return this.#unit >= this.#unitCount;
  }

  next(out: Uint8Array, offset: number): number {
    if (this.#unit >= this.#unitCount) {
      return 0;
    }
    if (this.#fragmentsLeft > 0) {
      return this.#writeFragment(out, offset);
    }
    const start = this.#starts[this.#unit] ?? 0;
    const bytes = (this.#ends[this.#unit] ?? 0) - start;
    if (bytes > this.#maxPayload) {
      this.#fragmentOffset = 1; // the FU indicator and header replace the NAL header
      this.#fragmentsLeft = Math.ceil((bytes - 1) / (this.#maxPayload - 2));
      return this.#writeFragment(out, offset);
    }
    if (isParameterSet(this.#typeOf(this.#unit)) && this.#unit + 1 < this.#unitCount) {
      const written = this.#writeAggregate(out, offset);
      if (written > 0) {
        return written;
      }
    }
    out.set(this.#frame.subarray(start, start + bytes), offset);
    this.#unit++;
    return bytes;
  }

  #typeOf(unit: number): number {
    return (this.#frame[this.#starts[unit] ?? 0] ?? 0) & 31;
  }

  /**
   * Writes the parameter sets from here on as one STAP-A (RFC 6184 section 5.7.1), so that none is
   * lost alone. @returns 0 if fewer than two fit.
   */
  #writeAggregate(out: Uint8Array, offset: number): number {
    let bytes = 1;
    let last = this.#unit;
    while (last < this.#unitCount && isParameterSet(this.#typeOf(last))) {
      const size = (this.#ends[last] ?? 0) - (this.#starts[last] ?? 0);
      if (bytes + 2 + size > this.#maxPayload) {
        break;
      }
      bytes += 2 + size;
      last++;
    }
    if (last - this.#unit < 2) {
      return 0;
    }
    let refIdc = 0; // nal_ref_idc, the greatest of all units
    let at = offset + 1;
    for (; this.#unit < last; this.#unit++) {
      const start = this.#starts[this.#unit] ?? 0;
      const size = (this.#ends[this.#unit] ?? 0) - start;
      refIdc = Math.max(refIdc, (this.#frame[start] ?? 0) & 0x60);
      out[at] = size >> 8;
      out[at + 1] = size & 255;
      out.set(this.#frame.subarray(start, start + size), at + 2);
      at += 2 + size;
    }
    out[offset] = refIdc | NAL.stapA;
    return bytes;
  }

  /** Writes the next fragment of the current NAL unit as FU-A (RFC 6184 section 5.8). */
  #writeFragment(out: Uint8Array, offset: number): number {
    const start = this.#starts[this.#unit] ?? 0;
    const end = this.#ends[this.#unit] ?? 0;
    const header = this.#frame[start] ?? 0;
    const share = Math.ceil((end - start - this.#fragmentOffset) / this.#fragmentsLeft);
    const isFirst = this.#fragmentOffset === 1;
    this.#fragmentsLeft--;
    out[offset] = (header & 0xe0) | NAL.fuA;
    out[offset + 1] = (isFirst ? 0x80 : 0) | (this.#fragmentsLeft === 0 ? 0x40 : 0) | (header & 31);
    out.set(
      this.#frame.subarray(start + this.#fragmentOffset, start + this.#fragmentOffset + share),
      offset + 2,
    );
    this.#fragmentOffset += share;
    if (this.#fragmentsLeft === 0) {
      this.#unit++;
      this.#fragmentOffset = 0;
    }
    return 2 + share;
  }

  /**
   * Splits the frame at the start codes 00 00 01. Omits delimiters and filler data, which RTP does
   * not need.
   */
  #findUnits(length: number): void {
    const frame = this.#frame;
    this.#unitCount = 0;
    let start = -1;
    for (let index = 0; index + 2 < length; index++) {
      // A byte above 1 is part of no start code: skip the three positions that include it.
      if ((frame[index + 2] ?? 0) > 1) {
        index += 2;
        continue;
      }
      if (frame[index] !== 0 || frame[index + 1] !== 0 || frame[index + 2] !== 1) {
        continue;
      }
      if (start >= 0 && this.#unitCount < MAX_UNITS - 1) {
        this.#addUnit(start, index);
        start = index + 3;
      } else if (start < 0) {
        start = index + 3;
      }
      index += 2;
    }
    if (start >= 0) {
      this.#addUnit(start, length);
    }
  }

  #addUnit(start: number, limit: number): void {
    let end = limit;
    // Trailing zeros belong to the next start code.
    while (end > start && this.#frame[end - 1] === 0) {
      end--;
    }
    const type = (this.#frame[start] ?? 0) & 31;
    if (end <= start || type === NAL.delimiter || type === NAL.filler) {
      return;
    }
    this.#starts[this.#unitCount] = start;
    this.#ends[this.#unitCount] = end;
    this.#unitCount++;
  }
}

/** SEI too: it goes along with the parameter sets. */
const isParameterSet = (type: number): boolean =>
  type === NAL.sps || type === NAL.pps || type === NAL.sei;
