// Data channels over SCTP (RFC 8831, RFC 8832): opens ours, accepts those of the other side.
import { Association } from './association.ts';
import { MAX_INBOUND_STREAMS, type InboundMessage } from './inbound.ts';
import { MAX_WAITING_MESSAGES } from './outbound.ts';

/** How a channel delivers its messages (RFC 8831 section 6.6). Default: in order, all of them. */
export interface ChannelReliability {
  readonly isOrdered?: boolean;
  /** Not both of these. */
  readonly maxRetransmits?: number;
  readonly maxLifetimeMs?: number;
  readonly protocol?: string;
}

/** A data channel. */
export interface DataChannel {
  readonly label: string;
  readonly protocol: string;
  readonly isOrdered: boolean;
  /** The other side has opened it. */
  readonly isRemote: boolean;
  /** Stream identifier. */
  readonly stream: number;
  readonly state: 'connecting' | 'open' | 'closed';
  /** Bytes that wait to be sent or acknowledged. */
  readonly bufferedBytes: number;
  /**
   * Sends a message, at once or as soon as the channel is connected.
   * @returns false if it was not taken: the channel is closed, the message longer than the other
   * side takes, or the buffer full (then `onDrain` follows)
   */
  send(message: Uint8Array, isText?: boolean): boolean;
}

/** What the channels of a peer report. None of these may throw. */
export interface ChannelListener {
  /** The other side has opened a channel. */
  onChannel?(channel: DataChannel): void;
  /** A whole message. Without this listener messages are acknowledged and dropped. */
  onMessage?(channel: DataChannel, data: Buffer, isText: boolean): void;
  /** There is room in the buffer again. */
  onDrain?(channel: DataChannel): void;
  /** The association has ended. */
  onChannelClosed?(channel: DataChannel): void;
}

/** Payload protocol identifiers (RFC 8831 section 8). */
const PROTOCOL = { dcep: 50, text: 51, binary: 53, emptyText: 56, emptyBinary: 57 } as const;
/** DCEP message types (RFC 8832 section 8.2.1). */
const DCEP = { open: 3, ack: 2 } as const;
/** Channel types (RFC 8832 section 5.1): one bit, and how a message is given up. */
const CHANNEL_TYPE = { reliable: 0, retransmits: 1, lifetime: 2, unordered: 0x80 } as const;
const OPEN_BYTES = 12;
/** Label and protocol of a channel. */
const MAX_NAME_BYTES = 512;
/** Channels of one peer, of either side. */
const MAX_CHANNELS = 64;
/** Bytes of all channels that wait to be sent or acknowledged. */
const MAX_BUFFERED_BYTES = 1 << 20;

/** A message of a channel. */
interface Outgoing {
  readonly protocol: number;
  readonly data: Buffer;
}

class Channel implements DataChannel {
  readonly label: string;
  readonly stream: number;
  readonly isRemote: boolean;
  readonly reliability: ChannelReliability;
  state: DataChannel['state'] = 'connecting';
  bufferedBytes = 0;
  /** The other side knows the channel; until then even unordered messages keep their order. */
  isConfirmed: boolean;
  /** `send` has returned false for want of room. */
  isWaiting = false;
  readonly #transmit: (channel: Channel, message: Outgoing) => boolean;

  constructor(
    label: string,
    stream: number,
    isRemote: boolean,
    reliability: ChannelReliability,
    transmit: (channel: Channel, message: Outgoing) => boolean,
  ) {
    this.label = label;
    this.stream = stream;
    this.isRemote = this.isConfirmed = isRemote;
    this.reliability = reliability;
    this.#transmit = transmit;
  }

  get protocol(): string {
    return this.reliability.protocol ?? '';
  }
  get isOrdered(): boolean {
    return this.reliability.isOrdered ?? true;
  }

  send(message: Uint8Array, isText = false): boolean {
    const isEmpty = message.length === 0;
    const full = isText ? PROTOCOL.text : PROTOCOL.binary;
    const empty = isText ? PROTOCOL.emptyText : PROTOCOL.emptyBinary;
    // An empty message has one byte that does not count (RFC 8831 section 6.6).
    const data = isEmpty ? Buffer.alloc(1) : Buffer.from(message);
    return this.#transmit(this, { protocol: isEmpty ? empty : full, data });
  }
}

/** The data channels of one peer. Times are `monotonicMs()`. */
export class DataChannels {
  readonly #association: Association;
  readonly #listener: ChannelListener;
  readonly #now: () => number;
  readonly #channels = new Map<number, Channel>();
  /** Messages that wait for the association. */
  #early: { readonly channel: Channel; readonly message: Outgoing }[] = [];
  #nextStream: number;
  #bufferedBytes = 0;
  /** Longest message that the other side takes. */
  maxMessageBytes = 65_536;

  /** @param isDtlsServer it has the odd streams (RFC 8832 section 6) */
  constructor(
    send: (packet: Buffer) => void,
    now: () => number,
    listener: ChannelListener,
    isDtlsServer = true,
  ) {
    this.#now = now;
    this.#nextStream = isDtlsServer ? 1 : 0;
    this.#listener = listener;
    this.#association = new Association(send, {
      onOpen: () => {
        this.#onOpen();
      },
      onMessage: (message) => {
        this.#onMessage(message);
      },
      onEnd: () => {
        this.#onEnd();
      },
    });
  }

  /** DTLS is connected. */
  start(): void {
    this.#association.start(this.#now());
  }

  /** Processes one SCTP packet. @returns false if it is malformed */
  receive(packet: Buffer): boolean {
    return this.#association.receive(packet, this.#now());
  }

  /** Retransmits what is due. */
  poll(nowMs: number): void {
    this.#association.poll(nowMs);
  }

  /** Ends the association. Nothing is reported any more. */
  close(): void {
    for (const channel of this.#channels.values()) {
      channel.state = 'closed';
    }
    this.#channels.clear();
    this.#early = [];
    this.#association.abort();
  }

  /** @throws Error if there are too many channels, or its name is too long */
  create(label: string, reliability: ChannelReliability): DataChannel {
    while (this.#channels.has(this.#nextStream)) {
      this.#nextStream += 2;
    }
    const bytes = Buffer.byteLength(label) + Buffer.byteLength(reliability.protocol ?? '');
    const isFull = this.#channels.size >= MAX_CHANNELS || this.#nextStream >= MAX_INBOUND_STREAMS;
    if (isFull || bytes > MAX_NAME_BYTES) {
      throw new Error(
        isFull
          ? `A peer has ${MAX_CHANNELS} data channels at most.`
          : `Label and protocol of a data channel have ${MAX_NAME_BYTES} bytes at most.`,
      );
    }
    const channel = this.#newChannel(label, this.#nextStream, false, reliability);
    if (this.#association.isOpen) {
      this.#open(channel);
    }
    return channel;
  }

  #newChannel(
    label: string,
    stream: number,
    isRemote: boolean,
    reliability: ChannelReliability,
  ): Channel {
    const channel = new Channel(label, stream, isRemote, reliability, (sender, message) =>
      this.#transmit(sender, message),
    );
    this.#channels.set(stream, channel);
    return channel;
  }

  #onOpen(): void {
    for (const channel of this.#channels.values()) {
      this.#open(channel);
    }
    for (const { channel, message } of this.#early.splice(0)) {
      this.#dispatch(channel, message);
    }
  }

  /** Sends OPEN. Messages may follow at once (RFC 8832 section 6). */
  #open(channel: Channel): void {
    channel.state = 'open';
    this.#dispatch(channel, { protocol: PROTOCOL.dcep, data: openMessage(channel) });
  }

  #onEnd(): void {
    this.#early = [];
    for (const channel of this.#channels.values()) {
      channel.state = 'closed';
      this.#listener.onChannelClosed?.(channel);
    }
    this.#channels.clear();
  }

  #transmit(channel: Channel, message: Outgoing): boolean {
    const bytes = message.data.length;
    if (channel.state === 'closed' || bytes > this.maxMessageBytes) {
      return false;
    }
    const waiting = this.#association.waitingMessages + this.#early.length;
    if (this.#bufferedBytes + bytes > MAX_BUFFERED_BYTES || waiting >= MAX_WAITING_MESSAGES) {
      channel.isWaiting = true;
      return false;
    }
    this.#count(channel, bytes);
    if (channel.state === 'open') {
      this.#dispatch(channel, message);
    } else {
      this.#early.push({ channel, message });
    }
    return true;
  }

  #dispatch(channel: Channel, { protocol, data }: Outgoing): void {
    const nowMs = this.#now();
    const { isOrdered = true, maxRetransmits, maxLifetimeMs } = channel.reliability;
    const isControl = protocol === PROTOCOL.dcep;
    const message = {
      stream: channel.stream,
      protocol,
      data,
      isUnordered: !isControl && !isOrdered && channel.isConfirmed,
      maxRetransmits: isControl ? undefined : maxRetransmits,
      expiresMs: isControl || maxLifetimeMs === undefined ? undefined : nowMs + maxLifetimeMs,
      onDone: () => {
        if (!isControl) {
          this.#count(channel, -data.length);
          this.#reportRoom();
        }
      },
    };
    this.#association.sendMessage(message, nowMs);
  }

  #count(channel: Channel, bytes: number): void {
    channel.bufferedBytes += bytes;
    this.#bufferedBytes += bytes;
  }

  #reportRoom(): void {
    if (this.#bufferedBytes > MAX_BUFFERED_BYTES / 2 || !this.#association.isOpen) {
      return;
    }
    for (const channel of this.#channels.values()) {
      if (channel.isWaiting) {
        channel.isWaiting = false;
        this.#listener.onDrain?.(channel);
      }
    }
  }

  #onMessage({ stream, protocol, data }: InboundMessage): void {
    if (protocol === PROTOCOL.dcep) {
      this.#onDcep(stream, data);
      return;
    }
    const channel = this.#channels.get(stream);
    if (channel === undefined) {
      return;
    }
    channel.isConfirmed = true;
    const isText = protocol === PROTOCOL.text || protocol === PROTOCOL.emptyText;
    const isEmpty = protocol === PROTOCOL.emptyText || protocol === PROTOCOL.emptyBinary;
    if (isText || isEmpty || protocol === PROTOCOL.binary) {
      this.#listener.onMessage?.(channel, isEmpty ? Buffer.alloc(0) : data, isText);
    }
  }

  #onDcep(stream: number, data: Buffer): void {
    const known = this.#channels.get(stream);
    if (data[0] === DCEP.ack) {
      if (known !== undefined) {
        known.isConfirmed = true;
      }
      return;
    }
    const opened = parseOpen(data);
    if (opened === undefined || known !== undefined || this.#channels.size >= MAX_CHANNELS) {
      return;
    }
    const channel = this.#newChannel(opened.label, stream, true, opened.reliability);
    channel.state = 'open';
    this.#dispatch(channel, { protocol: PROTOCOL.dcep, data: Buffer.from([DCEP.ack]) });
    this.#listener.onChannel?.(channel);
  }
}

/** DATA_CHANNEL_OPEN (RFC 8832 section 5.1). */
function openMessage({ label, protocol, isOrdered, reliability }: Channel): Buffer {
  const { maxRetransmits, maxLifetimeMs } = reliability;
  const kind =
    maxRetransmits !== undefined
      ? CHANNEL_TYPE.retransmits
      : maxLifetimeMs === undefined
        ? CHANNEL_TYPE.reliable
        : CHANNEL_TYPE.lifetime;
  const head = Buffer.alloc(OPEN_BYTES);
  head[0] = DCEP.open;
  head[1] = kind | (isOrdered ? 0 : CHANNEL_TYPE.unordered);
  head.writeUInt32BE(maxRetransmits ?? maxLifetimeMs ?? 0, 4);
  head.writeUInt16BE(Buffer.byteLength(label), 8);
  head.writeUInt16BE(Buffer.byteLength(protocol), 10);
  return Buffer.concat([head, Buffer.from(label), Buffer.from(protocol)]);
}

function parseOpen(
  data: Buffer,
): { readonly label: string; readonly reliability: ChannelReliability } | undefined {
  if (data[0] !== DCEP.open || data.length < OPEN_BYTES) {
    return undefined;
  }
  const labelBytes = data.readUInt16BE(8);
  const end = OPEN_BYTES + labelBytes + data.readUInt16BE(10);
  if (end > data.length || end - OPEN_BYTES > MAX_NAME_BYTES) {
    return undefined;
  }
  const type = data[1] ?? 0;
  const limit = data.readUInt32BE(4);
  const kind = type & ~CHANNEL_TYPE.unordered;
  return {
    label: data.toString('utf8', OPEN_BYTES, OPEN_BYTES + labelBytes),
    reliability: {
      isOrdered: (type & CHANNEL_TYPE.unordered) === 0,
      protocol: data.toString('utf8', OPEN_BYTES + labelBytes, end),
      ...(kind === CHANNEL_TYPE.retransmits ? { maxRetransmits: limit } : {}),
      ...(kind === CHANNEL_TYPE.lifetime ? { maxLifetimeMs: limit } : {}),
    },
  };
}
