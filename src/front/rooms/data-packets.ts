// The messages that participants of a room exchange: RPC and byte streams, as protocol buffers.
import { randomUUID } from 'node:crypto';
import {
  DataPacket,
  DataPacket_Kind,
  RpcAck,
  RpcError,
  RpcRequest,
  RpcResponse,
} from '@livekit/protocol';
import { ProtobufFields, readFields, readMap } from '../../base/protobuf.ts';

/** What participants say, as far as we act on it. */
export type RoomData =
  | { readonly case: 'rpcRequest'; readonly id: string; readonly method: string }
  | { readonly case: 'rpcResponse'; readonly requestId: string; readonly isError: boolean }
  | ({ readonly case: 'streamHeader' } & StreamHeader)
  | { readonly case: 'streamChunk'; readonly streamId: string; readonly content: Uint8Array }
  | { readonly case: 'streamTrailer'; readonly streamId: string }
  | { readonly case: 'other' };

/** The beginning of a stream. */
export interface StreamHeader {
  readonly streamId: string;
  readonly topic: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** Of bytes, not of text. */
  readonly isBytes: boolean;
}

/** A message with its sender, as the server names it. */
export interface RoomMessage {
  readonly sender: string;
  readonly data: RoomData;
}

/** How long we wait for the answer to an RPC. Nothing depends on it. */
const RPC_RESPONSE_MS = 8000;
/** UNSUPPORTED_METHOD of LiveKit's RPC. */
const UNSUPPORTED_METHOD = 1400;

const SENDER_FIELD = 4;

/** The readers of what is in a DataPacket, by field. */
const DATA: Readonly<Record<number, (message: Uint8Array) => RoomData>> = {
  10: (message) => {
    const found = { id: '', method: '' };
    readFields(message, {
      1: ({ text }) => (found.id = text),
      2: ({ text }) => (found.method = text),
    });
    return { case: 'rpcRequest', ...found };
  },
  12: (message) => {
    const found = { requestId: '', isError: false };
    const answered = ({ field }: ProtobufFields): void => {
      found.isError = field === 3;
    };
    readFields(message, {
      1: ({ text }) => (found.requestId = text),
      2: answered,
      3: answered,
      4: answered,
    });
    return { case: 'rpcResponse', ...found };
  },
  13: (message) => {
    const found = { streamId: '', topic: '', isBytes: false };
    const begins = ({ field }: ProtobufFields): void => {
      found.isBytes = field === 10;
    };
    readFields(message, {
      1: ({ text }) => (found.streamId = text),
      3: ({ text }) => (found.topic = text),
      9: begins,
      10: begins,
    });
    return { case: 'streamHeader', ...found, attributes: readMap(message, 8) };
  },
  14: (message) => {
    let streamId = '';
    let content: Uint8Array = new Uint8Array(0);
    readFields(message, {
      1: ({ text }) => (streamId = text),
      3: ({ bytes }) => (content = bytes),
    });
    return { case: 'streamChunk', streamId, content };
  },
  15: (message) => {
    let streamId = '';
    readFields(message, { 1: ({ text }) => (streamId = text) });
    return { case: 'streamTrailer', streamId };
  },
};

/** @returns undefined when it is malformed */
export function readDataPacket(packet: Uint8Array): RoomMessage | undefined {
  let sender = '';
  let read: (typeof DATA)[number] | undefined;
  let message: Uint8Array = new Uint8Array(0);
  const fields = new ProtobufFields(packet);
  while (fields.next()) {
    if (fields.field === SENDER_FIELD) {
      sender = fields.text;
    } else if (DATA[fields.field] !== undefined) {
      read = DATA[fields.field];
      message = fields.bytes;
    }
  }
  if (fields.isMalformed) {
    return undefined;
  }
  try {
    return { sender, data: read?.(message) ?? { case: 'other' } };
  } catch (error) {
    if (error instanceof RangeError) {
      return undefined;
    }
    throw error;
  }
}

/** Writes messages to one participant. */
export class PacketWriter {
  #sequence = 0;

  /** A method of `destination` is called. `id` comes back with the answer. */
  rpcRequest(
    destination: string,
    method: string,
    payload: string,
  ): { readonly id: string; readonly packet: Uint8Array } {
    const id = randomUUID();
    const value = new RpcRequest({
      id,
      method,
      payload,
      responseTimeoutMs: RPC_RESPONSE_MS,
      version: 1,
    });
    return { id, packet: this.#packet(destination, { case: 'rpcRequest', value }) };
  }

  rpcAck(destination: string, requestId: string): Uint8Array {
    return this.#packet(destination, { case: 'rpcAck', value: new RpcAck({ requestId }) });
  }

  /** @param payload undefined: there is no such method */
  rpcResponse(destination: string, requestId: string, payload: string | undefined): Uint8Array {
    const error = new RpcError({ code: UNSUPPORTED_METHOD, message: 'Method not supported' });
    const value = new RpcResponse({
      requestId,
      value:
        payload === undefined
          ? { case: 'error', value: error }
          : { case: 'payload', value: payload },
    });
    return this.#packet(destination, { case: 'rpcResponse', value });
  }

  #packet(destination: string, value: DataPacket['value']): Uint8Array {
    this.#sequence++;
    return new DataPacket({
      kind: DataPacket_Kind.RELIABLE,
      destinationIdentities: [destination],
      sequence: this.#sequence,
      value,
    }).toBinary();
  }
}
