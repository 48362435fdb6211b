// One SCTP association over DTLS (RFC 9260, RFC 8261): its handshake, and the way of each chunk.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import {
  Inbound,
  MAX_INBOUND_STREAMS,
  ProtocolViolation,
  RECEIVE_WINDOW,
  type InboundMessage,
} from './inbound.ts';
import type { OutboundMessage } from './outbound-message.ts';
import { Outbound } from './outbound.ts';
import {
  CHUNK,
  chunkOf,
  chunksOf,
  initBody,
  packetOf,
  parseInit,
  type Chunk,
  type Init,
} from './packets.ts';

/** What the association tells the data channels. */
export interface AssociationListener {
  /** Messages can be sent. Called again if the other side starts again. */
  onOpen(): void;
  onMessage(message: InboundMessage): void;
  /** It has ended, or starts again: messages that are under way are lost. */
  onEnd(): void;
}

/** As in the `a=sctp-port` of our descriptions. */
const PORT = 5000;
const COOKIE_BYTES = 16;
/** Longest cookie of the other side that is sent back. */
const MAX_COOKIE_BYTES = 1_024;
/** How long the other side has to begin: nearly every stack does, and two INIT cost a round trip. */
const INIT_DELAY_MS = 250;
/** INIT and COOKIE ECHO are repeated at doubling intervals from this one. */
const FIRST_REPEAT_MS = 300;
const MAX_REPEATS = 8;
/** On a path that loses packets, the last SACK is repeated when nothing follows. */
const SACK_REPEATS = 3;
const SACK_REPEAT_MS = 20;

/** What the other side has proposed, until its cookie comes back. */
interface Proposal {
  readonly init: Init;
  readonly remotePort: number;
  readonly tsn: number;
  readonly cookie: Buffer;
}

/** Both sides may begin. Times are `monotonicMs()`. */
export class Association {
  readonly #send: (packet: Buffer) => void;
  readonly #listener: AssociationListener;
  readonly #tag = randomBytes(4).readUInt32BE(0) || 1;
  #tsn = randomBytes(4).readUInt32BE(0);
  #state: 'closed' | 'cookieWait' | 'cookieEchoed' | 'open' | 'ended' = 'closed';
  #remoteTag = 0;
  #remotePort = PORT;
  #proposal: Proposal | undefined = undefined;
  #inbound: Inbound | undefined = undefined;
  #outbound: Outbound | undefined = undefined;
  /** INIT or COOKIE ECHO, while it waits for its answer. */
  #repeated: { readonly chunk: Buffer; readonly tag: number } | undefined = undefined;
  #repeats = 0;
  #repeatAtMs = Number.POSITIVE_INFINITY;
  /** Of the latest SACK, that are left. */
  #sackRepeats = 0;
  #sackAtMs = 0;
  #nowMs = 0;

  constructor(send: (packet: Buffer) => void, listener: AssociationListener) {
    this.#send = send;
    this.#listener = listener;
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }
  /** Messages that wait to be sent. */
  get waitingMessages(): number {
    return this.#outbound?.waitingMessages ?? 0;
  }

  /** Packets can be sent. Begins the handshake unless the other side soon does. */
  start(nowMs: number): void {
    if (this.#state === 'closed') {
      this.#repeatAtMs = nowMs + INIT_DELAY_MS;
    }
  }

  /** Only while open. */
  sendMessage(message: OutboundMessage, nowMs: number): void {
    this.#outbound?.add(message, nowMs);
  }

  /**
   * Processes one packet.
   * @returns false if it is malformed, or does not belong to this association. The chunks before
   * the offending one have been processed.
   */
  receive(packet: Buffer, nowMs: number): boolean {
    this.#nowMs = nowMs;
    const chunks = chunksOf(packet);
    const isInit = chunks?.[0]?.type === CHUNK.init;
    if (chunks === undefined || packet.readUInt32BE(4) !== (isInit ? 0 : this.#tag)) {
      return false;
    }
    if (isInit && chunks.length > 1) {
      return false; // RFC 9260 section 6.10: INIT comes alone
    }
    try {
      return this.#process(chunks, packet.readUInt16BE(0));
    } catch (error) {
      if (!(error instanceof ProtocolViolation)) {
        throw error;
      }
      this.abort();
      return false;
    }
  }

  #process(chunks: readonly Chunk[], remotePort: number): boolean {
    let needsSack = false;
    for (const chunk of chunks) {
      const isData = chunk.type === CHUNK.data || chunk.type === CHUNK.forwardTsn;
      if (isData && this.#state === 'cookieEchoed') {
        this.#open(); // its COOKIE ACK was lost, or comes later
      }
      if (isData && (this.#inbound === undefined || this.#state !== 'open')) {
        return false;
      }
      needsSack ||= isData;
      if (isData ? !this.#onData(chunk) : !this.#onControl(chunk, remotePort)) {
        return false;
      }
    }
    if (needsSack && this.#inbound !== undefined) {
      this.#sendChunk(chunkOf(CHUNK.sack, this.#inbound.sack()));
      this.#sackRepeats = this.#inbound.hasSeenLoss ? SACK_REPEATS : 0;
      this.#sackAtMs = this.#nowMs + SACK_REPEAT_MS;
    }
    return true;
  }

  /** Where packets are lost, so are SACKs: the other side would wait for its time-out, a second. */
  #repeatSack(nowMs: number): void {
    if (this.#sackRepeats > 0 && nowMs >= this.#sackAtMs && this.#inbound !== undefined) {
      this.#sackRepeats--;
      this.#sackAtMs = nowMs + SACK_REPEAT_MS;
      this.#sendChunk(chunkOf(CHUNK.sack, this.#inbound.sack()));
    }
  }

  /** Retransmits what is due. */
  poll(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#outbound?.poll(nowMs);
    this.#repeatSack(nowMs);
    if (nowMs < this.#repeatAtMs) {
      return;
    }
    if (this.#state === 'closed') {
      this.#state = 'cookieWait';
      this.#repeated = { chunk: chunkOf(CHUNK.init, initBody(this.#ownInit(undefined))), tag: 0 };
      this.#repeats = 0;
    }
    if (this.#repeated === undefined || ++this.#repeats > MAX_REPEATS) {
      this.#repeatAtMs = Number.POSITIVE_INFINITY;
      return;
    }
    this.#repeatAtMs = nowMs + FIRST_REPEAT_MS * 2 ** (this.#repeats - 1);
    this.#sendChunk(this.#repeated.chunk, this.#repeated.tag);
  }

  /** Ends the association: nothing is sent or received any more. */
  abort(): void {
    if (this.#state === 'open') {
      this.#sendChunk(chunkOf(CHUNK.abort, Buffer.alloc(0)));
    }
    this.#end();
  }

  #end(): void {
    const wasOpen = this.#state === 'open';
    this.#state = 'ended';
    this.#repeatAtMs = Number.POSITIVE_INFINITY;
    this.#proposal = undefined;
    this.#inbound = undefined;
    const outbound = this.#outbound;
    this.#outbound = undefined;
    outbound?.close();
    if (wasOpen) {
      this.#listener.onEnd();
    }
  }

  #ownInit(cookie: Buffer | undefined): Omit<Init, 'hasForwardTsn'> {
    return {
      tag: this.#tag,
      window: RECEIVE_WINDOW,
      outboundStreams: 0xffff,
      inboundStreams: MAX_INBOUND_STREAMS,
      tsn: this.#tsn,
      cookie,
    };
  }

  #onData(chunk: Chunk): boolean {
    const inbound = this.#inbound;
    const messages =
      chunk.type === CHUNK.data ? inbound?.receive(chunk) : inbound?.skip(chunk.body);
    for (const message of messages ?? []) {
      if (this.#state === 'open') {
        this.#listener.onMessage(message);
      }
    }
    return true;
  }

  /** @returns false if the chunk is malformed, or out of place */
  #onControl({ type, body }: Chunk, remotePort: number): boolean {
    switch (type) {
      case CHUNK.init:
        return this.#onInit(body, remotePort);
      case CHUNK.initAck:
        return this.#onInitAck(body, remotePort);
      case CHUNK.cookieEcho:
        return this.#onCookieEcho(body);
      case CHUNK.cookieAck:
        if (this.#state === 'cookieEchoed') {
          this.#open();
        }
        return true;
      case CHUNK.sack:
        return this.#outbound?.onSack(body, this.#nowMs) ?? false;
      case CHUNK.heartbeat:
        this.#sendChunk(chunkOf(CHUNK.heartbeatAck, body));
        return true;
      case CHUNK.shutdown:
        this.#sendChunk(chunkOf(CHUNK.shutdownAck, Buffer.alloc(0)));
        this.#end();
        return true;
      case CHUNK.abort:
      case CHUNK.shutdownComplete:
        this.#end();
        return true;
      default:
        return true; // errors, and extensions that we have not offered
    }
  }

  /** Also if we have begun, too (RFC 9260 section 5.2.1), and if the other side starts again. */
  #onInit(body: Buffer, remotePort: number): boolean {
    const init = parseInit(body);
    if (init === undefined || this.#state === 'ended') {
      return false;
    }
    if (this.#state === 'open' && init.tag !== this.#remoteTag) {
      this.#tsn = randomBytes(4).readUInt32BE(0);
    }
    const before = this.#proposal;
    const cookie = before?.init.tag === init.tag ? before.cookie : randomBytes(COOKIE_BYTES);
    this.#proposal = { init, remotePort, tsn: this.#tsn, cookie };
    const answer = chunkOf(CHUNK.initAck, initBody(this.#ownInit(cookie)));
    this.#sendChunk(answer, init.tag, remotePort);
    if (this.#state === 'closed') {
      this.#repeatAtMs = Number.POSITIVE_INFINITY;
    }
    return true;
  }

  #onInitAck(body: Buffer, remotePort: number): boolean {
    const init = parseInit(body);
    if (init?.cookie === undefined || init.cookie.length > MAX_COOKIE_BYTES) {
      return false;
    }
    if (this.#state !== 'cookieWait') {
      return true; // a repeated one
    }
    this.#adopt(init, remotePort, this.#tsn);
    this.#state = 'cookieEchoed';
    this.#repeated = { chunk: chunkOf(CHUNK.cookieEcho, init.cookie), tag: init.tag };
    this.#repeats = 1;
    this.#repeatAtMs = this.#nowMs + FIRST_REPEAT_MS;
    this.#sendChunk(this.#repeated.chunk);
    return true;
  }

  #onCookieEcho(body: Buffer): boolean {
    const proposal = this.#proposal;
    if (
      proposal === undefined ||
      body.length !== COOKIE_BYTES ||
      !timingSafeEqual(body, proposal.cookie)
    ) {
      return false;
    }
    const { init, remotePort, tsn } = proposal;
    const isRepeated = this.#state === 'open' && init.tag === this.#remoteTag;
    if (!isRepeated) {
      if (this.#state === 'open') {
        const outbound = this.#outbound;
        this.#outbound = undefined;
        outbound?.close();
        this.#listener.onEnd();
      }
      this.#adopt(init, remotePort, tsn);
    }
    this.#sendChunk(chunkOf(CHUNK.cookieAck, Buffer.alloc(0)));
    if (!isRepeated) {
      this.#open();
    }
    return true;
  }

  #adopt(init: Init, remotePort: number, tsn: number): void {
    this.#remoteTag = init.tag;
    this.#remotePort = remotePort;
    this.#inbound = new Inbound(init.tsn);
    this.#outbound = new Outbound(tsn, init.window, init.hasForwardTsn, (chunks) => {
      this.#sendPacket(chunks, this.#remoteTag, this.#remotePort);
    });
  }

  #open(): void {
    this.#state = 'open';
    this.#repeated = undefined;
    this.#repeatAtMs = Number.POSITIVE_INFINITY;
    this.#listener.onOpen();
  }

  #sendChunk(chunk: Buffer, tag = this.#remoteTag, remotePort = this.#remotePort): void {
    this.#sendPacket([chunk], tag, remotePort);
  }

  #sendPacket(chunks: readonly Buffer[], tag: number, remotePort: number): void {
    this.#send(packetOf({ localPort: PORT, remotePort, tag }, chunks));
  }
}
