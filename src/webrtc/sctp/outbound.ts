// What is sent on an SCTP association: fragments messages, retransmits chunks, gives up what may be
// lost (RFC 9260 sections 6.1, 6.3 and 7.2, RFC 3758).
import { Congestion, MAX_PACKET_BYTES } from './congestion.ts';
import type { OutboundMessage, Progress, SentChunk } from './outbound-message.ts';
import { deadMessages, forwardBody, forwardPoint, isLate } from './partial-reliability.ts';
import {
  CHUNK,
  chunkOf,
  DATA_FLAG,
  DATA_HEADER_BYTES,
  HEADER_BYTES,
  isAfter,
  padded,
  tsnPlus,
} from './packets.ts';

/** Payload of one DATA chunk: a packet of its own, if the message is long. */
const MAX_FRAGMENT_BYTES = MAX_PACKET_BYTES - HEADER_BYTES - 4 - DATA_HEADER_BYTES;
/** Messages that wait, however short. */
export const MAX_WAITING_MESSAGES = 4_096;
/** Later chunks that arrived before one that did not: then it is lost (RFC 9260 section 7.2.4). */
const MISSING_REPORTS = 3;
/** Probes before the time-out, when the latest packets, or their SACK, may be lost. */
const MAX_PROBES = 3;
/** Chunks that are not acknowledged, however short. */
const MAX_SENT_CHUNKS = 1_024;

/** The sending half of an association. Times are `monotonicMs()`. */
export class Outbound {
  readonly #send: (chunks: readonly Buffer[]) => void;
  readonly #congestion = new Congestion();
  #waiting: Progress[] = [];
  /** In the order of their TSNs. */
  #sent: SentChunk[] = [];
  #nextTsn: number;
  /** The other side has everything up to here. */
  #acknowledged: number;
  /** The last TSN that FORWARD TSN asks the other side to pass over. */
  #forwardedTo: number;
  #window: number;
  readonly #canForward: boolean;
  readonly #sequences = new Map<number, number>();
  /** Some message may be given up. */
  #isPartial = false;
  #flightBytes = 0;
  #orders = 0;
  #timeoutAtMs = Number.POSITIVE_INFINITY;
  #probeAtMs = Number.POSITIVE_INFINITY;
  #probes = 0;
  /** Until this TSN is acknowledged, losses belong to one event. */
  #recoveryTsn: number | undefined = undefined;

  /**
   * @param tsn the first one
   * @param window bytes that the other side can take
   * @param canForward whether it supports FORWARD TSN
   * @param send sends a packet with these chunks
   */
  constructor(
    tsn: number,
    window: number,
    canForward: boolean,
    send: (chunks: readonly Buffer[]) => void,
  ) {
    this.#nextTsn = tsn;
    this.#acknowledged = this.#forwardedTo = tsnPlus(tsn, -1);
    this.#window = window;
    this.#canForward = canForward;
    this.#send = send;
  }

  /** Whether nothing waits or is under way. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#sent.length === 0;
  }
  /** Messages that wait to be sent. */
  get waitingMessages(): number {
    return this.#waiting.length;
  }

  add(message: OutboundMessage, nowMs: number): void {
    const { maxRetransmits, expiresMs } = message;
    this.#isPartial ||= maxRetransmits !== undefined || expiresMs !== undefined;
    this.#waiting.push({ message, sequence: 0, sentBytes: 0, pending: 0 });
    this.#flush(nowMs);
  }

  /** Gives up everything. */
  close(): void {
    const open = new Set([...this.#waiting, ...this.#sent.map(({ message }) => message)]);
    this.#waiting = [];
    this.#sent = [];
    this.#timeoutAtMs = this.#probeAtMs = Number.POSITIVE_INFINITY;
    for (const { message } of open) {
      message.onDone();
    }
  }

  /** Retransmits what the other side has not acknowledged in time. */
  poll(nowMs: number): void {
    if (nowMs >= this.#timeoutAtMs) {
      this.#congestion.onTimeout();
      this.#timeoutAtMs = nowMs + this.#congestion.timeoutMs;
      this.#recoveryTsn = undefined;
      for (const sent of this.#sent) {
        if (sent.state === 'inFlight') {
          this.#lose(sent);
        }
      }
      this.#flush(nowMs);
      if (isAfter(this.#forwardedTo, this.#acknowledged)) {
        this.#sendForward();
      }
    } else if (nowMs >= this.#probeAtMs) {
      this.#probe(nowMs);
    } else if (this.#waiting.length > 0) {
      this.#flush(nowMs);
    }
  }

  /** Sends the oldest chunk again, to get a SACK that tells what else is lost (RFC 8985). */
  #probe(nowMs: number): void {
    const oldest = this.#sent.find(({ state }) => state === 'inFlight');
    this.#probeAtMs = Number.POSITIVE_INFINITY;
    if (oldest !== undefined && ++this.#probes <= MAX_PROBES) {
      this.#lose(oldest);
      this.#flush(nowMs);
    }
  }

  /**
   * A SACK has arrived.
   * @returns false if it is malformed, or acknowledges what was never sent
   */
  onSack(body: Buffer, nowMs: number): boolean {
    if (body.length < 12) {
      return false;
    }
    const cumulative = body.readUInt32BE(0);
    const blocks = body.readUInt16BE(8);
    const isUnsent = !isAfter(this.#nextTsn, cumulative);
    if (isUnsent || body.length < 12 + 4 * blocks) {
      return false;
    }
    if (isAfter(this.#acknowledged, cumulative)) {
      return true; // an old one
    }
    const wasFull = this.#flightBytes + MAX_PACKET_BYTES > this.#congestion.windowBytes;
    const hasAdvanced = isAfter(cumulative, this.#acknowledged);
    this.#acknowledged = cumulative;
    let bytes = 0;
    let latestOrder = 0;
    const take = (sent: SentChunk): void => {
      if (sent.state === 'acknowledged' || sent.state === 'abandoned') {
        return;
      }
      bytes += sent.chunk.length;
      latestOrder = Math.max(latestOrder, sent.order);
      this.#acknowledge(sent, nowMs);
    };
    const isGone = (sent: SentChunk): boolean => !isAfter(sent.tsn, cumulative);
    const kept = this.#sent.findIndex((sent) => !isGone(sent));
    this.#sent.splice(0, kept < 0 ? this.#sent.length : kept).forEach(take);
    this.#takeBlocks(body, blocks, cumulative, take);
    this.#window = Math.max(0, body.readUInt32BE(4) - this.#flightBytes);
    this.#probes = bytes > 0 ? 0 : this.#probes;
    if (hasAdvanced) {
      this.#congestion.onAcknowledged(bytes, wasFull && this.#recoveryTsn === undefined);
      this.#timeoutAtMs = nowMs + this.#congestion.timeoutMs;
    }
    if (this.#recoveryTsn !== undefined && !isAfter(this.#recoveryTsn, cumulative)) {
      this.#recoveryTsn = undefined;
    }
    this.#findLost(latestOrder);
    this.#flush(nowMs);
    return true;
  }

  #takeBlocks(
    body: Buffer,
    blocks: number,
    cumulative: number,
    take: (sent: SentChunk) => void,
  ): void {
    let at = 0;
    for (let block = 0; block < blocks; block++) {
      const first = tsnPlus(cumulative, body.readUInt16BE(12 + 4 * block));
      const last = tsnPlus(cumulative, body.readUInt16BE(14 + 4 * block));
      for (; at < this.#sent.length; at++) {
        const sent = this.#sent[at]!;
        if (isAfter(sent.tsn, last)) {
          break;
        }
        if (!isAfter(first, sent.tsn)) {
          take(sent);
        }
      }
    }
  }

  #acknowledge(sent: SentChunk, nowMs: number): void {
    if (sent.state === 'inFlight') {
      this.#flightBytes -= sent.chunk.length;
    }
    if (sent.times === 1) {
      this.#congestion.onRoundTrip(nowMs - sent.sentMs);
    }
    sent.state = 'acknowledged';
    this.#settle(sent.message);
  }

  /** One chunk of a message needs no more attention. */
  #settle(progress: Progress): void {
    progress.pending--;
    if (progress.pending === 0 && progress.sentBytes >= progress.message.data.length) {
      progress.message.onDone();
    }
  }

  /**
   * Chunks that were sent before one that has just been acknowledged. Counted by transmissions, so
   * that a lost retransmission is noticed, too.
   */
  #findLost(latestOrder: number): void {
    let isLost = false;
    for (const sent of this.#sent) {
      if (sent.state !== 'inFlight' || sent.order > latestOrder) {
        continue;
      }
      if (++sent.missing >= MISSING_REPORTS) {
        this.#lose(sent);
        isLost = true;
      }
    }
    if (isLost && this.#recoveryTsn === undefined) {
      this.#recoveryTsn = tsnPlus(this.#nextTsn, -1);
      this.#congestion.onLoss();
    }
  }

  #lose(sent: SentChunk): void {
    sent.state = 'lost';
    this.#flightBytes -= sent.chunk.length;
  }

  /** Sends what the windows allow: lost chunks, then new ones. */
  #flush(nowMs: number): void {
    if (this.#isPartial) {
      this.#giveUp(nowMs);
    }
    let packet: Buffer[] = [];
    let bytes = HEADER_BYTES;
    const put = (sent: SentChunk): void => {
      if (bytes + sent.chunk.length > MAX_PACKET_BYTES && packet.length > 0) {
        this.#send(packet);
        packet = [];
        bytes = HEADER_BYTES;
      }
      packet.push(sent.chunk);
      bytes += sent.chunk.length;
      sent.state = 'inFlight';
      sent.sentMs = nowMs;
      sent.order = ++this.#orders;
      sent.times++;
      sent.missing = 0;
      this.#flightBytes += sent.chunk.length;
      this.#timeoutAtMs = Math.min(this.#timeoutAtMs, nowMs + this.#congestion.timeoutMs);
      this.#probeAtMs = nowMs + this.#congestion.probeMs;
    };
    for (const sent of this.#sent) {
      if (sent.state === 'lost' && this.#hasRoom(sent.chunk.length)) {
        put(sent);
      }
    }
    for (;;) {
      const next = this.#nextChunk(nowMs);
      if (next === undefined) {
        break;
      }
      put(next);
    }
    if (packet.length > 0) {
      this.#send(packet);
    }
    if (this.#sent.length === 0 && !isAfter(this.#forwardedTo, this.#acknowledged)) {
      this.#timeoutAtMs = this.#probeAtMs = Number.POSITIVE_INFINITY;
    }
  }

  /** One chunk may always be under way: it finds out whether there is room again. */
  #hasRoom(bytes: number): boolean {
    return this.#flightBytes === 0 || this.#flightBytes + bytes <= this.#congestion.windowBytes;
  }

  /** The next fragment, with its TSN; undefined if there is none, or no room for it. */
  #nextChunk(nowMs: number): SentChunk | undefined {
    const [progress] = this.#waiting;
    if (progress === undefined || this.#sent.length >= MAX_SENT_CHUNKS) {
      return undefined;
    }
    const { message, sentBytes } = progress;
    const part = message.data.subarray(sentBytes, sentBytes + MAX_FRAGMENT_BYTES);
    const bytes = padded(4 + DATA_HEADER_BYTES + part.length);
    const hasWindow = this.#flightBytes === 0 || bytes <= this.#window;
    if (!this.#hasRoom(bytes) || !hasWindow) {
      return undefined;
    }
    if (sentBytes === 0 && !message.isUnordered) {
      progress.sequence = this.#sequences.get(message.stream) ?? 0;
      this.#sequences.set(message.stream, (progress.sequence + 1) & 0xffff);
    }
    progress.sentBytes += part.length;
    const isLast = progress.sentBytes >= message.data.length;
    if (isLast) {
      this.#waiting.shift();
    }
    const body = Buffer.alloc(DATA_HEADER_BYTES + part.length);
    body.writeUInt32BE(this.#nextTsn, 0);
    body.writeUInt16BE(message.stream, 4);
    body.writeUInt16BE(progress.sequence, 6);
    body.writeUInt32BE(message.protocol, 8);
    part.copy(body, DATA_HEADER_BYTES);
    const flags =
      (sentBytes === 0 ? DATA_FLAG.begins : 0) |
      (isLast ? DATA_FLAG.ends : 0) |
      (message.isUnordered ? DATA_FLAG.unordered : 0);
    const sent: SentChunk = {
      tsn: this.#nextTsn,
      chunk: chunkOf(CHUNK.data, body, flags),
      message: progress,
      sequence: progress.sequence,
      state: 'lost',
      sentMs: nowMs,
      order: 0,
      times: 0,
      missing: 0,
    };
    progress.pending++;
    this.#nextTsn = tsnPlus(this.#nextTsn, 1);
    this.#window = Math.max(0, this.#window - bytes);
    this.#sent.push(sent);
    return sent;
  }

  /** Abandons messages that may be lost, and tells the other side. */
  #giveUp(nowMs: number): void {
    const late = this.#waiting.filter((each) => each.sentBytes === 0 && isLate(each, nowMs));
    if (late.length > 0) {
      this.#waiting = this.#waiting.filter((each) => !late.includes(each));
      for (const { message } of late) {
        message.onDone();
      }
    }
    if (!this.#canForward) {
      return;
    }
    const dead = deadMessages(this.#sent, nowMs);
    for (const sent of this.#sent) {
      const isOpen = sent.state === 'inFlight' || sent.state === 'lost';
      if (!isOpen || !dead.has(sent.message)) {
        continue;
      }
      if (sent.state === 'inFlight') {
        this.#flightBytes -= sent.chunk.length;
      }
      sent.state = 'abandoned';
      this.#settle(sent.message);
    }
    const forwardedTo = forwardPoint(this.#sent, this.#acknowledged);
    if (forwardedTo !== undefined && forwardedTo !== this.#forwardedTo) {
      this.#forwardedTo = forwardedTo;
      this.#sendForward();
    }
  }

  #sendForward(): void {
    this.#send([chunkOf(CHUNK.forwardTsn, forwardBody(this.#sent, this.#forwardedTo))]);
  }
}
