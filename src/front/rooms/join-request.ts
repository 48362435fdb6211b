// Reads what a LiveKit client asks for when it opens the signal WebSocket.
import { gunzipSync } from 'node:zlib';
import { WrappedJoinRequest_Compression } from '@livekit/protocol';
import { readFields } from '../../base/protobuf.ts';
import { type DescriptionSignal, readDescription } from './description-signal.ts';

/** What a client asks for. */
export interface Join {
  /** The participant that this socket continues; undefined: a new one joins. */
  readonly resumedSid: string | undefined;
  /** The client's offer, if it came with the request. */
  readonly offer: DescriptionSignal | undefined;
  /** The client and its version, for the log. */
  readonly client: string;
}

/** The request as it arrives; that of livekit-client has 3 to 5 kB. */
const MAX_REQUEST_CHARS = 64 * 1024;
/** The request after decompression. */
const MAX_REQUEST_BYTES = 256 * 1024;
const NAME_CHARS = 40;
const GZIP: number = WrappedJoinRequest_Compression.GZIP;

/**
 * Reads the parameter `join_request` of `/rtc/v1`.
 * @returns undefined when it is malformed or too large
 */
export function readJoinRequest(text: string): Join | undefined {
  if (text === '' || text.length > MAX_REQUEST_CHARS) {
    return undefined;
  }
  try {
    return readRequest(unwrapped(Buffer.from(text, 'base64url')));
  } catch {
    return undefined;
  }
}

/** The JoinRequest in a WrappedJoinRequest. */
function unwrapped(message: Uint8Array): Uint8Array {
  let compression = 0;
  let request: Uint8Array = new Uint8Array(0);
  readFields(message, {
    1: ({ number }) => (compression = number),
    2: ({ bytes }) => (request = bytes),
  });
  return compression === GZIP
    ? gunzipSync(request, { maxOutputLength: MAX_REQUEST_BYTES })
    : request;
}

function readRequest(message: Uint8Array): Join {
  let [isResumed, sid, client] = [false, '', ''];
  let offer: DescriptionSignal | undefined;
  readFields(message, {
    1: ({ bytes }) => (client = clientName(bytes)),
    6: ({ bytes }) => (offer = readDescription(bytes)),
    7: ({ number }) => (isResumed = number !== 0),
    9: ({ text }) => (sid = text),
  });
  return {
    resumedSid: isResumed ? sid : undefined,
    offer: offer?.sdp === '' ? undefined : offer,
    client,
  };
}

/** SDK and version of a ClientInfo. */
function clientName(message: Uint8Array): string {
  let [sdk, version] = [0, ''];
  readFields(message, {
    1: ({ number }) => (sdk = number),
    2: ({ text }) => (version = text.slice(0, NAME_CHARS)),
  });
  return `${sdk} ${version}`;
}
