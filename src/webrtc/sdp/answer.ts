// The answer to an offer (RFC 9429 section 5.3): which sections are taken, and the text that says so.
import type { VideoCodec } from '../../media/coded-frame.ts';
import {
  EXTENSION_URI,
  FEEDBACK,
  invalidOffer,
  type Direction,
  type ExtensionName,
  type Feedback,
  type Offer,
  type OfferedCodec,
  type OfferedSection,
  type OfferedTransport,
} from './offer.ts';

export interface Candidate {
  readonly address: string;
  readonly port: number;
}

/** What one accepted audio or video section came to. */
export interface MediaPlan {
  readonly section: OfferedSection;
  readonly codec: OfferedCodec;
  readonly rtxPayloadType: number | undefined;
  readonly sends: boolean;
  readonly receives: boolean;
  /** Feedback messages that both sides know, as SDP writes them. */
  readonly feedback: readonly Feedback[];
  readonly extensions: Readonly<Record<ExtensionName, number>>;
}

export interface AnswerPlan {
  readonly offer: Offer;
  readonly video: MediaPlan | undefined;
  /** Null: no video is wanted, or none that we code. */
  readonly videoCodec: VideoCodec | undefined;
  /** The section on which our audio leaves. */
  readonly audio: MediaPlan | undefined;
  /** The section on which the client's microphone arrives: the same one when it is sendrecv. */
  readonly microphone: MediaPlan | undefined;
  readonly data: OfferedSection | undefined;
  readonly transport: OfferedTransport;
}

/** Decides. @throws ServiceError INVALID_OFFER when nothing could be sent, or the transport cannot be had. */
export function planAnswer(offer: Offer): AnswerPlan {
  if (offer.isIceLite) {
    throw invalidOffer('both sides would be ICE-lite. Offer full ICE.');
  }
  const usable = offer.sections.filter(
    (section) =>
      !section.isRefused && (offer.bundle.length === 0 || offer.bundle.includes(section.mid)),
  );
  const media = usable.filter(
    ({ protocol, hasRtcpMux }) => /^(UDP\/TLS\/)?RTP\/SAVPF$/.test(protocol) && hasRtcpMux,
  );
  const canReceive = ({ direction }: OfferedSection): boolean =>
    direction === 'recvonly' || direction === 'sendrecv';
  const canSend = ({ direction }: OfferedSection): boolean =>
    direction === 'sendonly' || direction === 'sendrecv';

  const videoSection = media.find(
    (section) =>
      section.kind === 'video' && canReceive(section) && chooseVideoCodec(section) !== undefined,
  );
  const chosen = videoSection === undefined ? undefined : chooseVideoCodec(videoSection);
  const video =
    videoSection === undefined || chosen === undefined
      ? undefined
      : mediaPlan(videoSection, chosen.offered, chosen.rtxPayloadType, true, false, FEEDBACK);
  const opusIn = (section: OfferedSection): OfferedCodec | undefined =>
    section.codecs.find(({ name }) => name === 'opus');
  const audioSections = media.filter(
    (section) => section.kind === 'audio' && opusIn(section) !== undefined,
  );
  const outgoing = audioSections.find(canReceive);
  const incoming = audioSections.find(canSend);
  const planAudio = (section: OfferedSection | undefined): MediaPlan | undefined => {
    const opus = section === undefined ? undefined : opusIn(section);
    return section === undefined || opus === undefined
      ? undefined
      : mediaPlan(section, opus, undefined, section === outgoing, section === incoming, []);
  };
  const audio = planAudio(outgoing);
  const microphone =
    incoming === outgoing ? (audio?.receives === true ? audio : undefined) : planAudio(incoming);
  if (video === undefined && audio === undefined) {
    throw invalidOffer(whyNothing(offer, media));
  }
  // A data channel that was not asked for does not exist: SCTP is spoken only with this section.
  const data = usable.find(({ dataChannelForm }) => dataChannelForm !== undefined) ?? undefined;
  const accepted = [video?.section, audio?.section, microphone?.section, data].filter(
    (section) => section !== undefined && section !== undefined,
  );
  const first = accepted.reduce((earliest, section) =>
    rankIn(offer, section) < rankIn(offer, earliest) ? section : earliest,
  );
  if (offer.bundle.length === 0 && new Set(accepted).size > 1) {
    throw invalidOffer('its m-lines are not bundled. Use a=group:BUNDLE.');
  }
  checkTransport(first.transport);
  return {
    offer,
    video,
    videoCodec: chosen?.codec ?? undefined,
    audio,
    microphone,
    data,
    transport: first.transport,
  };
}

const rankIn = (offer: Offer, section: OfferedSection): number =>
  offer.bundle.length === 0 ? section.index : offer.bundle.indexOf(section.mid);

function whyNothing(offer: Offer, media: readonly OfferedSection[]): string {
  const kinds = offer.sections
    .map(({ kind, direction, isRefused }) => `${kind} ${isRefused ? 'refused' : direction}`)
    .join(', ');
  if (media.length === 0) {
    return `no audio or video section with UDP/TLS/RTP/SAVPF and a=rtcp-mux (it has: ${kinds}).`;
  }
  return `nothing in it can be received. Offer video with VP8 or H.264 (constrained baseline, packetization-mode=1) or audio with Opus, direction recvonly or sendrecv (it has: ${kinds}).`;
}

/** RFC 8839 section 5.4 gives the lengths of credentials; RFC 8842 the roles. */
function checkTransport({ ufrag, password, fingerprints, setup }: OfferedTransport): void {
  if (!/^[A-Za-z0-9+/=_-]{4,256}$/.test(ufrag) || !/^[A-Za-z0-9+/=_-]{22,256}$/.test(password)) {
    throw invalidOffer('a=ice-ufrag or a=ice-pwd is missing or malformed.');
  }
  if (fingerprints.length === 0) {
    throw invalidOffer('it has no a=fingerprint with sha-256, sha-384 or sha-512.');
  }
  if (setup !== 'actpass' && setup !== 'active') {
    throw invalidOffer(
      `a=setup:${setup.slice(0, 20)} leaves no role for this side. Offer actpass.`,
    );
  }
}

function mediaPlan(
  section: OfferedSection,
  codec: OfferedCodec,
  rtxPayloadType: number | undefined,
  sends: boolean,
  receives: boolean,
  feedback: readonly Feedback[],
): MediaPlan {
  const { mid, absSendTime, playoutDelay } = section.extensions;
  const isVideo = section.kind === 'video';
  return {
    section,
    codec,
    rtxPayloadType,
    sends,
    receives,
    feedback: feedback.filter((name) => codec.feedback.includes(name)),
    extensions: {
      mid,
      absSendTime: isVideo ? absSendTime : 0,
      playoutDelay: isVideo ? playoutDelay : 0,
    },
  };
}

export interface ChosenVideoCodec {
  readonly codec: VideoCodec;
  readonly offered: OfferedCodec;
  readonly rtxPayloadType: number | undefined;
}

/** The first codec of the client's order that we encode, and the RTX payload type that goes with it. */
function chooseVideoCodec(section: OfferedSection): ChosenVideoCodec | undefined {
  for (const offered of section.codecs) {
    const codec =
      offered.name === 'vp8'
        ? 'vp8'
        : offered.name === 'h264' && isConstrainedBaseline(offered.parameters)
          ? 'h264'
          : undefined;
    if (codec === undefined) {
      continue;
    }
    const type = String(offered.payloadType);
    const rtx = section.codecs.find(
      ({ name, parameters }) => name === 'rtx' && parameterOf(parameters, 'apt') === type,
    );
    return { codec, offered, rtxPayloadType: rtx?.payloadType ?? undefined };
  }
  return undefined;
}

function parameterOf(parameters: string, name: string): string | undefined {
  for (const part of parameters.split(';')) {
    const equals = part.indexOf('=');
    if (equals > 0 && part.slice(0, equals).trim().toLowerCase() === name) {
      return part.slice(equals + 1).trim();
    }
  }
  return undefined;
}

/**
 * Whether a decoder with these fmtp parameters reads what we send: constrained baseline in packetization-mode 1 (RFC 6184
 * section 8.2.2). Profile 66 is baseline; constrained or not, its decoders read the constrained form.
 */
function isConstrainedBaseline(parameters: string): boolean {
  if (parameterOf(parameters, 'packetization-mode') !== '1') {
    return false;
  }
  const profile = parameterOf(parameters, 'profile-level-id') ?? '42000a';
  return /^[0-9a-f]{6}$/i.test(profile) && profile.slice(0, 2) === '42';
}

export interface AnswerIdentity {
  readonly sessionNumber: string;
  readonly ufrag: string;
  readonly password: string;
  readonly fingerprint: string;
  readonly candidates: readonly Candidate[];
  readonly cname: string;
  readonly streamId: string;
  readonly videoSsrc: number;
  readonly videoRtxSsrc: number;
  readonly audioSsrc: number;
}

/** Writes the answer: sections in the offer's order, refused ones with port 0. */
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
    `o=- ${identity.sessionNumber} 2 IN IP4 127.0.0.1`,
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
    'a=setup:passive', // we are the DTLS server: the client's proof of identity comes first
    `a=mid:${section.mid}`,
  ];
  // aiortc takes no answer in which a refused section lacks these.
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
    media === undefined || media === undefined
      ? section.dataChannelForm === 'sctpmap'
        ? '5000'
        : section.formats
      : [
          media.codec.payloadType,
          ...(media.rtxPayloadType === undefined ? [] : [media.rtxPayloadType]),
        ].join(' ');
  const [first] = identity.candidates;
  const where = `IN ${first?.address.includes(':') === true ? 'IP6' : 'IP4'} ${first?.address ?? '0.0.0.0'}`;
  return [
    `m=${section.kind} ${first?.port ?? 9} ${section.protocol} ${formats}`,
    `c=${where}`,
    ...(media === undefined || media === undefined ? [] : [`a=rtcp:${first?.port ?? 9} ${where}`]),
    ...identity.candidates.map(candidateLine),
    'a=end-of-candidates',
    ...transport,
    ...own,
  ];
}

/** Host candidates only: the server has public addresses or is told them (ANNOUNCED_IPS). RFC 8445 section 5.1.2 for the priority. */
const candidateLine = ({ address, port }: Candidate, index: number): string =>
  `a=candidate:${index + 1} 1 udp ${126 * 2 ** 24 + (65_535 - index) * 2 ** 8 + 255} ${address} ${port} typ host`;

function mediaLines(media: MediaPlan, identity: AnswerIdentity, isVideo: boolean): string[] {
  const { codec, section, rtxPayloadType, extensions } = media;
  const type = codec.payloadType;
  const direction: Direction =
    media.sends && media.receives ? 'sendrecv' : media.sends ? 'sendonly' : 'recvonly';
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
    lines.push(`a=msid:${identity.streamId} ${identity.streamId}-${isVideo ? 'video' : 'audio'}`);
  }
  lines.push('a=rtcp-mux');
  if (section.hasReducedSize) {
    lines.push('a=rtcp-rsize');
  }
  if (isVideo) {
    const isVp8 = codec.name === 'vp8';
    lines.push(`a=rtpmap:${type} ${isVp8 ? 'VP8' : 'H264'}/90000`);
    if (!isVp8) {
      lines.push(
        `a=fmtp:${type} level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=${parameterOf(codec.parameters, 'profile-level-id') ?? '42000a'}`,
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
    lines.push(`a=ssrc:${ssrc} cname:${identity.cname}`); // the media's own first: Chromium takes that for the stream
    if (hasRtx) {
      lines.push(`a=ssrc:${identity.videoRtxSsrc} cname:${identity.cname}`);
    }
  }
  return lines;
}
