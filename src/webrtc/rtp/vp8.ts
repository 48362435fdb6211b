// Splits VP8 frames into RTP payloads (RFC 7741), with a 15-bit picture id.
import { randomInt } from 'node:crypto';
import type { Packetizer } from './packetizer.ts';

/** Payload descriptor: two flag bytes and the picture id. */
const DESCRIPTOR_BYTES = 4;

/** One instance per stream: it counts the picture ids. */
export class Vp8Packetizer implements Packetizer {
  #pictureId = randomInt(2 ** 15);
  #frame: Uint8Array = new Uint8Array(0);
  #length = 0;
  #offset = 0;
  #packetsLeft = 0;

  start(frame: Uint8Array, length: number, maxPayloadBytes: number): void {
    this.#frame = frame;
    this.#length = length;
    this.#offset = 0;
    this.#packetsLeft = Math.ceil(length / (maxPayloadBytes - DESCRIPTOR_BYTES));
    this.#pictureId = (this.#pictureId + 1) & 0x7fff;
  }

  get isDone(): boolean {
    return this.#packetsLeft === 0;
  }

  next(out: Uint8Array, offset: number): number {
    if (this.#packetsLeft === 0) {
      return 0;
    }
    // Packets of equal size: a last packet of a few bytes would cost as much to send as a full one.
    const share = Math.ceil((this.#length - this.#offset) / this.#packetsLeft);
    // X; S at the start of the only partition (PID 0)
    out[offset] = 0x80 | (this.#offset === 0 ? 0x10 : 0);
    out[offset + 1] = 0x80; // I: a picture id follows
    out[offset + 2] = 0x80 | (this.#pictureId >> 8); // M: the picture id has 15 bits
    out[offset + 3] = this.#pictureId & 0xff;
    out.set(this.#frame.subarray(this.#offset, this.#offset + share), offset + DESCRIPTOR_BYTES);
    this.#offset += share;
    this.#packetsLeft--;
    return DESCRIPTOR_BYTES + share;
  }
}
