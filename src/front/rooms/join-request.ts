// Reads what a LiveKit client asks for when it opens the signal WebSocket.
import { gunzipSync } from 'node:zlib';
import { JoinRequest, WrappedJoinRequest, WrappedJoinRequest_Compression } from '@livekit/protocol';

/** What a client asks for. */
export interface Join {
  /** The participant that this socket continues; undefined: a new one joins. */
  readonly resumedSid: string | undefined;
  /** The client's offer, if it came with the request. */
  readonly offer: { readonly sdp: string; readonly id: number } | undefined;
  /** The client and its version, for the log. */
  readonly client: string;
}

/** The request as it arrives; that of livekit-client has 3 to 5 kB. */
const MAX_REQUEST_CHARS = 64 * 1024;
/** The request after decompression. */
const MAX_REQUEST_BYTES = 256 * 1024;
const NAME_CHARS = 40;

/**
 * Reads the parameter `join_request` of `/rtc/v1`.
 * @returns undefined when it is malformed or too large
 */
export function readJoinRequest(text: string): Join | undefined {
  if (text === '' || text.length > MAX_REQUEST_CHARS) {
    return undefined;
  }
  try {
    const wrapped = WrappedJoinRequest.fromBinary(Buffer.from(text, 'base64url'));
    const isCompressed = wrapped.compression === WrappedJoinRequest_Compression.GZIP;
    const bytes = isCompressed
      ? gunzipSync(wrapped.joinRequest, { maxOutputLength: MAX_REQUEST_BYTES })
      : wrapped.joinRequest;
    const { publisherOffer, reconnect, participantSid, clientInfo } = JoinRequest.fromBinary(bytes);
    return {
      resumedSid: reconnect ? participantSid : undefined,
      offer:
        publisherOffer === undefined || publisherOffer.sdp === ''
          ? undefined
          : { sdp: publisherOffer.sdp, id: publisherOffer.id },
      client: clientName(clientInfo?.sdk ?? 0, clientInfo?.version ?? ''),
    };
  } catch {
    return undefined;
  }
}

const clientName = (sdk: number, version: string): string =>
  `${sdk} ${version.slice(0, NAME_CHARS)}`;
