// Messages that may be lost (RFC 3758): which are given up, and how the other side is told.
import type { Progress, SentChunk } from './outbound-message.ts';
import { isAfter, tsnPlus } from './packets.ts';

/** Streams of abandoned messages that one FORWARD TSN names. */
const MAX_FORWARDED = 200;

/** Whether a message has lived too long. */
export const isLate = ({ message }: Progress, nowMs: number): boolean =>
  message.expiresMs !== undefined && nowMs >= message.expiresMs;

/** The messages with a lost chunk that is not to be sent again. */
export function deadMessages(sent: readonly SentChunk[], nowMs: number): ReadonlySet<Progress> {
  const dead = new Set<Progress>();
  for (const { state, times, message: progress } of sent) {
    const { maxRetransmits = Number.POSITIVE_INFINITY, data } = progress.message;
    // All of it has TSNs: otherwise the other side could not be told where it ends.
    const isWhole = progress.sentBytes >= data.length;
    if (state === 'lost' && isWhole && (times > maxRetransmits || isLate(progress, nowMs))) {
      dead.add(progress);
    }
  }
  return dead;
}

/**
 * How far the other side may go on without what was abandoned (RFC 3758 section 3.5, rule C2).
 * @param sent the chunks beyond `acknowledged`, in order
 * @returns undefined if nothing abandoned comes next
 */
export function forwardPoint(sent: readonly SentChunk[], acknowledged: number): number | undefined {
  let to = acknowledged;
  let hasAbandoned = false;
  for (const { tsn, state } of sent) {
    if (tsn !== tsnPlus(to, 1) || state === 'inFlight' || state === 'lost') {
      break;
    }
    hasAbandoned ||= state === 'abandoned';
    to = tsn;
  }
  return hasAbandoned ? to : undefined;
}

/** The body of FORWARD TSN: the TSN, and the last abandoned message of each ordered stream. */
export function forwardBody(sent: readonly SentChunk[], to: number): Buffer {
  const last = new Map<number, number>();
  for (const { tsn, state, sequence, message } of sent) {
    const { isUnordered, stream } = message.message;
    if (state === 'abandoned' && !isUnordered && !isAfter(tsn, to)) {
      last.set(stream, sequence);
    }
  }
  const pairs = [...last].slice(0, MAX_FORWARDED);
  const body = Buffer.alloc(4 + 4 * pairs.length);
  body.writeUInt32BE(to, 0);
  for (const [index, [stream, sequence]] of pairs.entries()) {
    body.writeUInt16BE(stream, 4 + 4 * index);
    body.writeUInt16BE(sequence, 6 + 4 * index);
  }
  return body;
}
