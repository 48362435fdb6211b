// The lines that offers and answers of ours have in common.
import { EXTENSION_URI, type ExtensionName } from './extensions.ts';
import { DEFAULT_PROFILE, parameterOf } from './fmtp.ts';
import type { Feedback, OfferedCodec } from './offer.ts';

/** A host candidate (RFC 8445). */
export interface Candidate {
  readonly address: string;
  readonly port: number;
}

/** What every description of ours repeats. */
export interface LocalIdentity {
  readonly sessionNumber: string;
  /** Rises with each description of a session (RFC 8866 section 5.2). */
  readonly sessionVersion: number;
  readonly ufrag: string;
  readonly password: string;
  readonly fingerprint: string;
  readonly candidates: readonly Candidate[];
  readonly cname: string;
  /** The ids in `a=msid`: of the stream, and of its tracks. */
  readonly streamId: string;
  readonly videoTrackId: string;
  readonly audioTrackId: string;
  readonly videoSsrc: number;
  readonly videoRtxSsrc: number;
  readonly audioSsrc: number;
}

/** A sent stream and its retransmissions (0: none). */
interface StreamSsrcs {
  readonly ssrc: number;
  readonly rtxSsrc: number;
}

/** The session part (RFC 8866 section 5). `isIceLite`: we send no checks without being checked. */
export const sessionLines = (
  { sessionNumber, sessionVersion }: LocalIdentity,
  isIceLite: boolean,
  mids: readonly string[] | undefined,
): string[] => [
  'v=0',
  `o=- ${sessionNumber} ${sessionVersion} IN IP4 127.0.0.1`,
  's=-',
  't=0 0',
  ...(isIceLite ? ['a=ice-lite'] : []),
  'a=msid-semantic: WMS *',
  ...(mids === undefined ? [] : [`a=group:BUNDLE ${mids.join(' ')}`]),
];

/** ICE credentials, certificate and DTLS role. This side is the DTLS server: passive. */
export const transportLines = (
  { ufrag, password, fingerprint }: LocalIdentity,
  mid: string,
): string[] => [
  `a=ice-ufrag:${ufrag}`,
  `a=ice-pwd:${password}`,
  `a=fingerprint:sha-256 ${fingerprint}`,
  'a=setup:passive', // the other side authenticates first
  `a=mid:${mid}`,
];

/** The m-line of a section in use, its address, and all candidates. */
export function addressLines(
  { candidates }: LocalIdentity,
  kind: string,
  protocol: string,
  formats: string,
): string[] {
  const [first] = candidates;
  const address = first?.address ?? '0.0.0.0';
  const connection = `IN ${address.includes(':') ? 'IP6' : 'IP4'} ${address}`;
  return [
    `m=${kind} ${first?.port ?? 9} ${protocol} ${formats}`,
    `c=${connection}`,
    ...(kind === 'application' ? [] : [`a=rtcp:${first?.port ?? 9} ${connection}`]),
    ...candidates.map(candidateLine),
    'a=end-of-candidates',
  ];
}

/**
 * A host candidate, with the priority of RFC 8445 section 5.1.2. There are no other candidates: the
 * server has public addresses, or ANNOUNCED_IPS names them.
 */
const candidateLine = ({ address, port }: Candidate, index: number): string => {
  const priority = 126 * 2 ** 24 + (65_535 - index) * 2 ** 8 + 255;
  return `a=candidate:${index + 1} 1 udp ${priority} ${address} ${port} typ host`;
};

/** The header extensions in use, in a fixed order. */
export const extensionLines = (ids: Readonly<Record<ExtensionName, number>>): string[] =>
  (['mid', 'absSendTime', 'playoutDelay', 'audioLevel'] as const).flatMap((name) =>
    ids[name] > 0 ? [`a=extmap:${ids[name]} ${EXTENSION_URI[name]}`] : [],
  );

/** Opus, as we send and take it. */
export const opusLines = (payloadType: number): string[] => [
  `a=rtpmap:${payloadType} opus/48000/2`,
  `a=fmtp:${payloadType} minptime=10;useinbandfec=1`,
];

/** A video codec, its feedback messages, and its retransmissions (RFC 4588). */
export function videoCodecLines(
  { name, payloadType, parameters }: OfferedCodec,
  feedback: readonly Feedback[],
  rtxPayloadType: number | undefined,
): string[] {
  const profile = parameterOf(parameters, 'profile-level-id') ?? DEFAULT_PROFILE;
  const fmtp = `level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=${profile}`;
  return [
    `a=rtpmap:${payloadType} ${name === 'vp8' ? 'VP8' : 'H264'}/90000`,
    ...(name === 'vp8' ? [] : [`a=fmtp:${payloadType} ${fmtp}`]),
    ...feedback.map((message) => `a=rtcp-fb:${payloadType} ${message}`),
    ...(rtxPayloadType === undefined
      ? []
      : [`a=rtpmap:${rtxPayloadType} rtx/90000`, `a=fmtp:${rtxPayloadType} apt=${payloadType}`]),
  ];
}

/** The SSRC of the media before that of RTX: Chromium uses the first one for the stream. */
export const ssrcLines = ({ ssrc, rtxSsrc }: StreamSsrcs, cname: string): string[] => [
  ...(rtxSsrc === 0 ? [] : [`a=ssrc-group:FID ${ssrc} ${rtxSsrc}`]),
  `a=ssrc:${ssrc} cname:${cname}`,
  ...(rtxSsrc === 0 ? [] : [`a=ssrc:${rtxSsrc} cname:${cname}`]),
];
