// Writes the SDP of an answer.
import type { AnswerPlan, MediaPlan } from './answer.ts';
import { DEFAULT_PROFILE, parameterOf } from './fmtp.ts';
import { EXTENSION_URI, type Direction, type OfferedSection } from './offer.ts';

/** A host candidate (RFC 8445). */
export interface Candidate {
  readonly address: string;
  readonly port: number;
}

/** The values of the answer that do not depend on the offer. */
export interface AnswerIdentity {
  readonly sessionNumber: string;
  /** Rises with each answer of a session (RFC 8866 section 5.2). */
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

/** Writes the answer: the sections in the order of the offer, refused ones with port 0. */
export function writeAnswer(plan: AnswerPlan, identity: AnswerIdentity): string {
  const accepted = new Map<number, string[]>();
  for (const media of new Set([plan.video, plan.audio, plan.microphone])) {
    if (media !== undefined) {
      accepted.set(media.section.index, mediaLines(media, identity, media === plan.video));
    }
  }
  if (plan.data !== undefined) {
    accepted.set(plan.data.index, [
      plan.data.dataChannelForm === 'rfc8841'
        ? 'a=sctp-port:5000'
        : 'a=sctpmap:5000 webrtc-datachannel 65535',
      'a=max-message-size:65536',
    ]);
  }
  const { sections, bundle } = plan.offer;
  const mids = bundle.filter((mid) =>
    sections.some((section) => section.mid === mid && accepted.has(section.index)),
  );
  const lines = [
    'v=0',
    `o=- ${identity.sessionNumber} ${identity.sessionVersion} IN IP4 127.0.0.1`,
    's=-',
    't=0 0',
    'a=ice-lite',
    'a=msid-semantic: WMS *',
  ];
  if (bundle.length > 0) {
    lines.push(`a=group:BUNDLE ${mids.join(' ')}`);
  }
  for (const section of sections) {
    lines.push(...sectionLines(section, accepted.get(section.index), plan, identity));
  }
  return `${lines.join('\r\n')}\r\n`;
}

/** @param own the lines of an accepted section; undefined: refused */
function sectionLines(
  section: OfferedSection,
  own: readonly string[] | undefined,
  plan: AnswerPlan,
  identity: AnswerIdentity,
): string[] {
  const transport = [
    `a=ice-ufrag:${identity.ufrag}`,
    `a=ice-pwd:${identity.password}`,
    `a=fingerprint:sha-256 ${identity.fingerprint}`,
    'a=setup:passive', // this side is the DTLS server: the client authenticates first
    `a=mid:${section.mid}`,
  ];
  // aiortc rejects an answer in which a refused section lacks the transport attributes.
  if (own === undefined) {
    return [
      `m=${section.kind} 0 ${section.protocol} ${section.formats}`,
      'c=IN IP4 0.0.0.0',
      ...transport,
      'a=inactive',
      ...(section.hasRtcpMux ? ['a=rtcp-mux'] : []),
    ];
  }
  const media = [plan.video, plan.audio, plan.microphone].find(
    (candidate) => candidate?.section === section,
  );
  const formats =
    media === undefined
      ? section.dataChannelForm === 'sctpmap'
        ? '5000'
        : section.formats
      : [
          media.codec.payloadType,
          ...(media.rtxPayloadType === undefined ? [] : [media.rtxPayloadType]),
        ].join(' ');
  const [first] = identity.candidates;
  const address = first?.address ?? '0.0.0.0';
  const connection = `IN ${address.includes(':') ? 'IP6' : 'IP4'} ${address}`;
  return [
    `m=${section.kind} ${first?.port ?? 9} ${section.protocol} ${formats}`,
    `c=${connection}`,
    ...(media === undefined ? [] : [`a=rtcp:${first?.port ?? 9} ${connection}`]),
    ...identity.candidates.map(candidateLine),
    'a=end-of-candidates',
    ...transport,
    ...own,
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

function directionOf({ sends, receives }: MediaPlan): Direction {
  if (sends) {
    return receives ? 'sendrecv' : 'sendonly';
  }
  return receives ? 'recvonly' : 'inactive';
}

/** The attributes of an accepted audio or video section. */
function mediaLines(media: MediaPlan, identity: AnswerIdentity, isVideo: boolean): string[] {
  const { codec, section, rtxPayloadType, extensions } = media;
  const type = codec.payloadType;
  const direction = directionOf(media);
  const lines: string[] = [];
  const extension = (id: number, uri: string): void => {
    if (id > 0) {
      lines.push(`a=extmap:${id} ${uri}`);
    }
  };
  extension(extensions.mid, EXTENSION_URI.mid);
  extension(extensions.absSendTime, EXTENSION_URI.absSendTime);
  extension(extensions.playoutDelay, EXTENSION_URI.playoutDelay);
  lines.push(`a=${direction}`);
  if (media.sends) {
    const { streamId, videoTrackId, audioTrackId } = identity;
    lines.push(`a=msid:${streamId} ${isVideo ? videoTrackId : audioTrackId}`);
  }
  lines.push('a=rtcp-mux');
  if (section.hasReducedSize) {
    lines.push('a=rtcp-rsize');
  }
  if (isVideo) {
    const isVp8 = codec.name === 'vp8';
    lines.push(`a=rtpmap:${type} ${isVp8 ? 'VP8' : 'H264'}/90000`);
    if (!isVp8) {
      const profile = parameterOf(codec.parameters, 'profile-level-id') ?? DEFAULT_PROFILE;
      lines.push(
        `a=fmtp:${type} level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=${profile}`,
      );
    }
    for (const name of media.feedback) {
      lines.push(`a=rtcp-fb:${type} ${name}`);
    }
    if (rtxPayloadType !== undefined) {
      lines.push(`a=rtpmap:${rtxPayloadType} rtx/90000`, `a=fmtp:${rtxPayloadType} apt=${type}`);
    }
  } else {
    lines.push(`a=rtpmap:${type} opus/48000/2`, `a=fmtp:${type} minptime=10;useinbandfec=1`);
  }
  if (media.sends) {
    const ssrc = isVideo ? identity.videoSsrc : identity.audioSsrc;
    const hasRtx = isVideo && rtxPayloadType !== undefined;
    if (hasRtx) {
      lines.push(`a=ssrc-group:FID ${ssrc} ${identity.videoRtxSsrc}`);
    }
    // The SSRC of the media before that of RTX: Chromium uses the first one for the stream.
    lines.push(`a=ssrc:${ssrc} cname:${identity.cname}`);
    if (hasRtx) {
      lines.push(`a=ssrc:${identity.videoRtxSsrc} cname:${identity.cname}`);
    }
  }
  return lines;
}
