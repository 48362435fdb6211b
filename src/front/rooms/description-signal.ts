// An offer or an answer in a signal message: a SessionDescription of LiveKit's protocol.
import { readFields } from '../../base/protobuf.ts';

/** `id`: that of the offer. */
export interface DescriptionSignal {
  readonly sdp: string;
  readonly id: number;
}

/** @throws RangeError if it is malformed */
export function readDescription(message: Uint8Array): DescriptionSignal {
  const value = { sdp: '', id: 0 };
  readFields(message, {
    2: ({ text }) => (value.sdp = text),
    3: ({ number }) => (value.id = number),
  });
  return value;
}
