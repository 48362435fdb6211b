// What a viewer says on its signal connection to a room of ours, as far as we act on it.
import { type ProtobufFields, readFields, readUnion } from '../../base/protobuf.ts';
import { type DescriptionSignal, readDescription } from './description-signal.ts';

/** A message of the viewer. Times are the client's own, in milliseconds. */
export type ClientSignal =
  | { readonly case: 'offer'; readonly value: DescriptionSignal }
  | { readonly case: 'leave' }
  | { readonly case: 'ping'; readonly timestamp: bigint }
  | { readonly case: 'pingReq'; readonly timestamp: bigint }
  | { readonly case: 'other' };

/** Of 64 bits, whatever was sent. */
const timestampOf = (value: number): bigint => BigInt.asIntN(64, BigInt(value));

/** The readers of messages, by their fields in SignalRequest. */
const MESSAGES: Readonly<Record<number, (fields: ProtobufFields) => ClientSignal>> = {
  1: ({ bytes }) => ({ case: 'offer', value: readDescription(bytes) }),
  8: () => ({ case: 'leave' }),
  14: ({ number }) => ({ case: 'ping', timestamp: timestampOf(number) }),
  16: ({ bytes }) => {
    let timestamp = 0n;
    readFields(bytes, { 1: ({ number }) => (timestamp = timestampOf(number)) });
    return { case: 'pingReq', timestamp };
  },
};

/** @returns undefined when it is malformed */
export const readClientSignal = (message: Uint8Array): ClientSignal | undefined =>
  readUnion(message, MESSAGES, { case: 'other' });
