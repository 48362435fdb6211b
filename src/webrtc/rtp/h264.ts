// RTP payloads of H.264 access units in Annex B form (RFC 6184, packetization-mode 1): single NAL units, STAP-A and FU-A.
import type { Packetizer } from './packetizer.ts';

const NAL = { sei: 6, sps: 7, pps: 8, delimiter: 9, filler: 12, stapA: 24, fuA: 28 } as const;
/** More than an access unit of a real-time encoder has; what would go beyond is joined to the last one. */
const MAX_UNITS = 64;

export class H264Packetizer implements Packetizer {
  #frame: Uint8Array = new Uint8Array(0);
  #maxPayload = 0;
  readonly #starts = new Int32Array(MAX_UNITS);
  readonly #ends = new Int32Array(MAX_UNITS);
  #units = 0;
  #unit = 0;
  #fragment = 0; // offset in the unit being fragmented, 0 when none is
  #fragmentsLeft = 0;

  start(frame: Uint8Array, length: number, maxPayloadBytes: number): void {
    this.#frame = frame;
    this.#maxPayload = maxPayloadBytes;
    this.#unit = 0;
    this.#fragment = 0;
    this.#fragmentsLeft = 0;
    this.#findUnits(length);
  }

  get isDone(): boolean {
    return this.#unit >= this.#units;
  }

  next(out: Uint8Array, offset: number): number {
    if (this.#unit >= this.#units) {
      return 0;
    }
    if (this.#fragmentsLeft > 0) {
      return this.#writeFragment(out, offset);
    }
    const start = this.#starts[this.#unit] ?? 0;
    const bytes = (this.#ends[this.#unit] ?? 0) - start;
    if (bytes > this.#maxPayload) {
      this.#fragment = 1; // the NAL header travels in the FU header
      this.#fragmentsLeft = Math.ceil((bytes - 1) / (this.#maxPayload - 2));
      return this.#writeFragment(out, offset);
    }
    if (isParameter(this.#typeOf(this.#unit)) && this.#unit + 1 < this.#units) {
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

  /** STAP-A of the parameter sets from here on (RFC 6184 section 5.7.1), so that none is lost alone. @returns 0 when fewer than two fit. */
  #writeAggregate(out: Uint8Array, offset: number): number {
    let bytes = 1;
    let last = this.#unit;
    while (last < this.#units && isParameter(this.#typeOf(last))) {
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
    let importance = 0;
    let at = offset + 1;
    for (; this.#unit < last; this.#unit++) {
      const start = this.#starts[this.#unit] ?? 0;
      const size = (this.#ends[this.#unit] ?? 0) - start;
      importance = Math.max(importance, (this.#frame[start] ?? 0) & 0x60);
      out[at] = size >> 8;
      out[at + 1] = size & 255;
      out.set(this.#frame.subarray(start, start + size), at + 2);
      at += 2 + size;
    }
    out[offset] = importance | NAL.stapA;
    return bytes;
  }

  /** FU-A (RFC 6184 section 5.8). */
  #writeFragment(out: Uint8Array, offset: number): number {
    const start = this.#starts[this.#unit] ?? 0;
    const end = this.#ends[this.#unit] ?? 0;
    const header = this.#frame[start] ?? 0;
    const share = Math.ceil((end - start - this.#fragment) / this.#fragmentsLeft);
    const isFirst = this.#fragment === 1;
    this.#fragmentsLeft--;
    out[offset] = (header & 0xe0) | NAL.fuA;
    out[offset + 1] = (isFirst ? 0x80 : 0) | (this.#fragmentsLeft === 0 ? 0x40 : 0) | (header & 31);
    out.set(
      this.#frame.subarray(start + this.#fragment, start + this.#fragment + share),
      offset + 2,
    );
    this.#fragment += share;
    if (this.#fragmentsLeft === 0) {
      this.#unit++;
      this.#fragment = 0;
    }
    return 2 + share;
  }

  /** Splits at start codes 00 00 01, leaving out delimiters and filler, which RTP has no use for. */
  #findUnits(length: number): void {
    const frame = this.#frame;
    this.#units = 0;
    let start = -1;
    for (let index = 0; index + 2 < length; index++) {
      // Every start code has a 1 or 0 at its third byte, so most bytes are skipped three at a time.
      if ((frame[index + 2] ?? 0) > 1) {
        index += 2;
        continue;
      }
      if (frame[index] !== 0 || frame[index + 1] !== 0 || frame[index + 2] !== 1) {
        continue;
      }
      if (start >= 0 && this.#units < MAX_UNITS - 1) {
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
    while (end > start && this.#frame[end - 1] === 0) {
      end--;
    } // trailing zeros belong to the next start code
    const type = (this.#frame[start] ?? 0) & 31;
    if (end <= start || type === NAL.delimiter || type === NAL.filler) {
      return;
    }
    this.#starts[this.#units] = start;
    this.#ends[this.#units] = end;
    this.#units++;
  }
}

const isParameter = (type: number): boolean =>
  type === NAL.sps || type === NAL.pps || type === NAL.sei;
