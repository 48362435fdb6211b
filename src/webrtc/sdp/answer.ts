// Plans the answer to an offer (RFC 9429 section 5.3): which sections to accept, with which codecs.
import type { VideoCodec } from '../../media/coded-frame.ts';
import { DEFAULT_PROFILE, parameterOf } from './fmtp.ts';
import {
  FEEDBACK,
  invalidOffer,
  type ExtensionName,
  type Feedback,
  type Offer,
  type OfferedCodec,
  type OfferedSection,
  type OfferedTransport,
} from './offer.ts';

/** What was negotiated for an accepted audio or video section. */
export interface MediaPlan {
  readonly section: OfferedSection;
  readonly codec: OfferedCodec;
  readonly rtxPayloadType: number | undefined;
  /** Whether we send, and whether we receive, on this section. */
  readonly sends: boolean;
  readonly receives: boolean;
  /** The RTCP feedback messages that both sides support. */
  readonly feedback: readonly Feedback[];
  /** Ids of the header extensions; 0: not used. */
  readonly extensions: Readonly<Record<ExtensionName, number>>;
}

/** The decisions about an offer. */
export interface AnswerPlan {
  readonly offer: Offer;
  readonly video: MediaPlan | undefined;
  /** Undefined: no video is wanted, or none that we encode. */
  readonly videoCodec: VideoCodec | undefined;
  /** The section on which we send audio. */
  readonly audio: MediaPlan | undefined;
  /**
   * The section on which the client sends its microphone: the same object as `audio` if it is
   * sendrecv.
   */
  readonly microphone: MediaPlan | undefined;
  /** The section of the data channels. */
  readonly data: OfferedSection | undefined;
  /** The transport of the BUNDLE group: that of its first accepted section. */
  readonly transport: OfferedTransport;
}

/**
 * Decides which sections to accept.
 * @throws ServiceError INVALID_OFFER if nothing can be sent, or the transport is not supported
 */
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
  const chosenVideo = chooseVideo(media);
  const video = chosenVideo?.plan;
  const { audio, microphone } = planAudio(media);
  if (video === undefined && audio === undefined) {
    throw invalidOffer(whyNothing(offer, media));
  }
  const data = usable.find(({ dataChannelForm }) => dataChannelForm !== undefined);
  const accepted = [video?.section, audio?.section, microphone?.section, data].filter(
    (section) => section !== undefined,
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
    videoCodec: chosenVideo?.codec,
    audio,
    microphone,
    data,
    transport: first.transport,
  };
}

/** The directions of an offer in which the client receives, and those in which it sends. */
const canReceive = ({ direction }: OfferedSection): boolean =>
  direction === 'recvonly' || direction === 'sendrecv';
const canSend = ({ direction }: OfferedSection): boolean =>
  direction === 'sendonly' || direction === 'sendrecv';

/** The first section on which the client can receive a video codec that we encode. */
function chooseVideo(
  media: readonly OfferedSection[],
): { readonly codec: VideoCodec; readonly plan: MediaPlan } | undefined {
  for (const section of media) {
    const chosen =
      section.kind === 'video' && canReceive(section) ? chooseVideoCodec(section) : undefined;
    if (chosen !== undefined) {
      const { codec, offered, rtxPayloadType } = chosen;
      return { codec, plan: mediaPlan(section, offered, rtxPayloadType, true, false, FEEDBACK) };
    }
  }
  return undefined;
}

/**
 * The first sections with Opus on which the client receives and sends: one section if it is
 * sendrecv.
 */
function planAudio(media: readonly OfferedSection[]): Pick<AnswerPlan, 'audio' | 'microphone'> {
  const sections = media.flatMap((section) => {
    const opus = section.codecs.find(({ name }) => name === 'opus');
    return section.kind === 'audio' && opus !== undefined ? [{ section, opus }] : [];
  });
  const outgoing = sections.find(({ section }) => canReceive(section));
  const incoming = sections.find(({ section }) => canSend(section));
  const planOf = (one: typeof outgoing): MediaPlan | undefined =>
    one === undefined
      ? undefined
      : mediaPlan(one.section, one.opus, undefined, one === outgoing, one === incoming, []);
  const audio = planOf(outgoing);
  return { audio, microphone: incoming === outgoing ? audio : planOf(incoming) };
}

/** Position of a section in the BUNDLE group, else in the offer. */
const rankIn = (offer: Offer, section: OfferedSection): number =>
  offer.bundle.length === 0 ? section.index : offer.bundle.indexOf(section.mid);

/** Says why nothing can be sent. */
function whyNothing(offer: Offer, media: readonly OfferedSection[]): string {
  const kinds = offer.sections
    .map(({ kind, direction, isRefused }) => `${kind} ${isRefused ? 'refused' : direction}`)
    .join(', ');
  if (media.length === 0) {
    return `no audio or video section with UDP/TLS/RTP/SAVPF and a=rtcp-mux (it has: ${kinds}).`;
  }
  return (
    'nothing in it can be received. Offer video with VP8 or H.264 (constrained baseline, ' +
    'packetization-mode=1) or audio with Opus, direction recvonly or sendrecv ' +
    `(it has: ${kinds}).`
  );
}

/**
 * ICE credentials (RFC 8839 section 5.4), fingerprints, and the DTLS role (RFC 8842 section 5.3).
 */
function checkTransport({ ufrag, password, fingerprints, setup }: OfferedTransport): void {
  if (!/^[A-Za-z0-9+/=_-]{4,256}$/.test(ufrag) || !/^[A-Za-z0-9+/=_-]{22,256}$/.test(password)) {
    throw invalidOffer('a=ice-ufrag or a=ice-pwd is missing or malformed.');
  }
  if (fingerprints.length === 0) {
    throw invalidOffer('it has no a=fingerprint with sha-256, sha-384 or sha-512.');
  }
  if (setup !== 'actpass' && setup !== 'active') {
    throw invalidOffer(
      `a=setup:${setup.slice(0, 20)} is not supported, as this side is the DTLS server. ` +
        'Offer actpass.',
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

interface ChosenVideoCodec {
  readonly codec: VideoCodec;
  readonly offered: OfferedCodec;
  readonly rtxPayloadType: number | undefined;
}

/** The first codec, in the client's order, that we encode; and its RTX payload type. */
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
    return { codec, offered, rtxPayloadType: rtx?.payloadType };
  }
  return undefined;
}

/**
 * Whether a decoder with these fmtp parameters can decode what we send: constrained baseline in
 * packetization-mode 1 (RFC 6184 section 8.1). Profile 66 (0x42) is baseline, whose decoders can
 * decode constrained baseline, too.
 */
function isConstrainedBaseline(parameters: string): boolean {
  if (parameterOf(parameters, 'packetization-mode') !== '1') {
    return false;
  }
  const profile = parameterOf(parameters, 'profile-level-id') ?? DEFAULT_PROFILE;
  return /^[0-9a-f]{6}$/i.test(profile) && profile.slice(0, 2) === '42';
}
