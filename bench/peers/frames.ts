// Video frames as a receiver could show them: packets put in order, gaps waited for, freezes
// measured. Decodes nothing.
import type { VideoCodec } from '../../src/media/coded-frame.ts';

export interface ArrivedFrame {
  readonly rtpTimestamp: number;
  /**
   * When the frame and all before it were there: the earliest moment a decoder could have shown it.
   */
  readonly completedMs: number;
  readonly bytes: number;
  readonly isKey: boolean;
  /** RTP payloads in order; only when payloads are kept. */
  readonly payloads: readonly Buffer[];
}

interface Arrived {
  readonly timestamp: number;
  readonly isLast: boolean;
  readonly isKeyStart: boolean;
  readonly payload: Buffer;
}

/**
 * Packets a receiver holds while it waits for a lost one; more than this and it starts over at a
 * key frame.
 */
const MAX_HELD_PACKETS = 2048;
const PLI_INTERVAL_MS = 300;
/** Longer than a NACK's way there and back twice on a poor path. */
const GIVE_UP_MS = 400;

export class FrameAssembler {
  framesLost = 0;
  readonly #held = new Map<number, Arrived>();
  #next = -1;
  #highest = -1;
  #current: Arrived[] = [];
  #waitingSinceMs = 0;
  #askedMs = 0;
  readonly #codec: VideoCodec;
  readonly #onFrame: (frame: ArrivedFrame) => void;
  readonly #askForKeyFrame: () => void;

  constructor(
    codec: VideoCodec,
    onFrame: (frame: ArrivedFrame) => void,
    askForKeyFrame: () => void,
  ) {
    this.#codec = codec;
    this.#onFrame = onFrame;
    this.#askForKeyFrame = askForKeyFrame;
  }

  push(
    sequenceNumber: number,
    timestamp: number,
    isLast: boolean,
    payload: Buffer,
    nowMs: number,
  ): void {
    const sequence = this.#extend(sequenceNumber);
    if (this.#next < 0) {
      this.#next = sequence;
    }
    if (sequence < this.#next || payload.length === 0) {
      return;
    }
    this.#held.set(sequence, {
      timestamp,
      isLast,
      isKeyStart: beginsKeyFrame(this.#codec, payload),
      payload,
    });
    this.#drain(nowMs);
    if (this.#held.size === 0) {
      this.#waitingSinceMs = 0;
    } else {
      this.#wait(nowMs);
    }
  }

  #extend(sequenceNumber: number): number {
    if (this.#highest < 0) {
      return (this.#highest = sequenceNumber);
    }
    let difference = (sequenceNumber - this.#highest) & 0xffff;
    if (difference >= 0x8000) {
      difference -= 0x10000;
    }
    const sequence = this.#highest + difference;
    this.#highest = Math.max(this.#highest, sequence);
    return sequence;
  }

  #drain(nowMs: number): void {
    for (
      let packet = this.#held.get(this.#next);
      packet !== undefined;
      packet = this.#held.get(this.#next)
    ) {
      this.#held.delete(this.#next);
      this.#next++;
      this.#waitingSinceMs = 0;
      this.#current.push(packet);
      if (!packet.isLast) {
        continue;
      }
      this.#onFrame({
        rtpTimestamp: packet.timestamp,
        completedMs: nowMs,
        bytes: this.#current.reduce((sum, { payload }) => sum + payload.length, 0),
        isKey: this.#current[0]!.isKeyStart,
        payloads: this.#current.map(({ payload }) => payload),
      });
      this.#current = [];
    }
  }

  /** Something is missing: ask for a key frame after a while, and go on there if one came. */
  #wait(nowMs: number): void {
    if (this.#waitingSinceMs === 0) {
      this.#waitingSinceMs = nowMs;
    }
    if (nowMs - this.#waitingSinceMs < GIVE_UP_MS && this.#held.size < MAX_HELD_PACKETS) {
      return;
    }
    const keyStart = [...this.#held]
      .filter(([, packet]) => packet.isKeyStart)
      .map(([sequence]) => sequence)
      .sort((a, b) => a - b)[0];
    if (keyStart !== undefined) {
      const skipped = new Set(
        [...this.#held]
          .filter(([sequence]) => sequence < keyStart)
          .map(([, packet]) => packet.timestamp),
      );
      this.framesLost += Math.max(1, skipped.size);
      for (const sequence of this.#held.keys()) {
        if (sequence < keyStart) {
          this.#held.delete(sequence);
        }
      }
      this.#current = [];
      this.#next = keyStart;
      this.#drain(nowMs);
      return;
    }
    if (this.#held.size >= MAX_HELD_PACKETS) {
      this.#held.clear();
    }
    if (nowMs - this.#askedMs < PLI_INTERVAL_MS) {
      return;
    }
    this.#askedMs = nowMs;
    this.#askForKeyFrame();
  }
}

/**
 * Whether an RTP payload is the first of a key frame: VP8 by RFC 7741 sections 4.2 and 4.3, H.264
 * by its SPS or IDR slice (RFC 6184).
 */
export function beginsKeyFrame(codec: VideoCodec, payload: Buffer): boolean {
  if (codec === 'vp8') {
    const isStart = (payload[0]! & 0x1f) === 0x10; // S = 1, PID = 0
    const header = vp8DescriptorBytes(payload);
    return isStart && header < payload.length && (payload[header]! & 1) === 0;
  }
  const type = payload[0]! & 0x1f;
  if (type === 24) {
    return payload.length > 3 && isKeyUnit(payload[3]! & 0x1f);
  } // STAP-A: its first unit
  if (type === 28) {
    return payload.length > 1 && (payload[1]! & 0x80) !== 0 && (payload[1]! & 0x1f) === 7;
  } // FU-A; an IDR slice follows its SPS
  return type === 7;
}

const isKeyUnit = (type: number): boolean => type === 7 || type === 5;

export function vp8DescriptorBytes(payload: Buffer): number {
  if ((payload[0]! & 0x80) === 0) {
    return 1;
  }
  const extensions = payload[1]!;
  let bytes = 2;
  if (extensions & 0x80) {
    bytes += (payload[bytes]! & 0x80) === 0 ? 1 : 2;
  }
  if (extensions & 0x40) {
    bytes++;
  }
  if (extensions & 0x30) {
    bytes++;
  }
  return bytes;
}
