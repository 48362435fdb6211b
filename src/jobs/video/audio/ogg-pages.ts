// Reads Ogg pages and their packets (RFC 3533).
import { AudioError } from './pcm-stream.ts';

const HEADER_BYTES = 27;
const CONTINUED = 1;
const FIRST = 2;
const LAST = 4;
/** Largest packet, bytes. Packets of speech and music are far smaller. */
const MAX_PACKET_BYTES = 1 << 20;

/** One page, with the packets that end on it. */
export interface OggPage {
  /** Granule position: samples up to the end of this page; -1 when no packet ends on it. */
  readonly granule: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
  readonly serial: number;
  readonly packets: readonly Uint8Array[];
}

/**
 * Yields the pages of a file in order.
 * @throws AudioError when a page is broken or truncated
 */
export function* oggPages(bytes: Uint8Array): Generator<OggPage> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const unfinished = new Map<number, Uint8Array[]>();
  for (let at = 0; at < bytes.length;) {
    if (at + HEADER_BYTES > bytes.length || at + HEADER_BYTES + bytes[at + 26]! > bytes.length) {
      throw cutOff();
    }
    if (view.getUint32(at) !== 0x4f67_6753 || bytes[at + 4] !== 0) {
      throw new AudioError(
        at === 0
          ? 'This is not an Ogg file: it does not begin with OggS. Check audioFormat.'
          : `The Ogg file is broken at byte ${at}. Send it again.`,
      );
    }
    const flags = bytes[at + 5]!;
    const serial = view.getUint32(at + 14, true);
    const lacing = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + bytes[at + 26]!);
    let body = at + HEADER_BYTES + lacing.length;
    const packets: Uint8Array[] = [];
    let parts = flags & CONTINUED ? (unfinished.get(serial) ?? []) : [];
    unfinished.delete(serial);
    let start = body;
    for (const [index, size] of lacing.entries()) {
      body += size;
      const isEnd = size < 255;
      if (!isEnd && index < lacing.length - 1) {
        continue;
      }
      parts.push(bytes.slice(start, body));
      start = body;
      if (isEnd) {
        packets.push(join(parts));
        parts = [];
      } else {
        unfinished.set(serial, parts);
      }
    }
    if (body > bytes.length) {
      throw cutOff();
    }
    if (total(parts) > MAX_PACKET_BYTES) {
      throw new AudioError('The Ogg file is broken: one of its packets has no end.');
    }
    yield {
      granule: Number(view.getBigInt64(at + 6, true)),
      isFirst: (flags & FIRST) !== 0,
      isLast: (flags & LAST) !== 0,
      serial,
      packets,
    };
    at = body;
  }
}

const cutOff = (): AudioError =>
  new AudioError('The Ogg file is incomplete: it ends within a page. Send the whole file.');

const total = (parts: readonly Uint8Array[]): number =>
  parts.reduce((sum, part) => sum + part.length, 0);

function join(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) {
    return parts[0]!;
  }
  const joined = new Uint8Array(total(parts));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
