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

/** A message with its sender, as the server names it. */
export interface RoomMessage {
  readonly sender: string;
  readonly value: DataPacket['value'];
}

/** How long we wait for the answer to an RPC. Nothing depends on it. */
const RPC_RESPONSE_MS = 8000;
/** UNSUPPORTED_METHOD of LiveKit's RPC. */
const UNSUPPORTED_METHOD = 1400;

/** @returns undefined when it is malformed */
export function readDataPacket(bytes: Uint8Array): RoomMessage | undefined {
  try {
    // Not as a Buffer: its slice() would not copy.
    const { participantIdentity, value } = DataPacket.fromBinary(
      new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length),
    );
    return { sender: participantIdentity, value };
  } catch {
    return undefined;
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
