// Plans the answer to an offer (RFC 9429 section 5.3): which sections to accept, with which codecs.
import type { VideoCodec } from '../../media/coded-frame.ts';
import type { ExtensionName } from './extensions.ts';
import { DEFAULT_PROFILE, parameterOf } from './fmtp.ts';
import {
  FEEDBACK,
  invalidOffer,
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

/** What planning needs besides the offer. */
export interface PlanOptions {
  /**
   * What the offers before this one led to. Its sections are preferred: our streams stay where they
   * are. A section that we may not send on for now is kept, and answered as inactive.
   */
  readonly previous?: AnswerPlan | undefined;
  /** Accept an offer in which nothing can be received. */
  readonly allowsNoMedia?: boolean;
  /** We are full ICE, so the other side may be ICE-lite. */
  readonly isFullIce?: boolean;
}

/**
 * Decides which sections to accept.
 * @throws ServiceError INVALID_OFFER if nothing can be sent, the transport is not supported, or the
 * offer does not follow from the previous one
 */
export function planAnswer(offer: Offer, options: PlanOptions = {}): AnswerPlan {
  const { previous, allowsNoMedia = false, isFullIce = false } = options;
  if (offer.isIceLite && !isFullIce) {
    throw invalidOffer('both sides would be ICE-lite. Offer full ICE.');
  }
  const usable = offer.sections.filter(
    (section) =>
      !section.isRefused && (offer.bundle.length === 0 || offer.bundle.includes(section.mid)),
  );
  const media = usable.filter(
    ({ protocol, hasRtcpMux }) => /^(UDP\/TLS\/)?RTP\/SAVPF$/.test(protocol) && hasRtcpMux,
  );
  const chosenVideo = chooseVideo(media, previous);
  const video = chosenVideo?.plan;
  const { audio, microphone } = planAudio(media, previous);
  const data = usable.find(({ dataChannelForm }) => dataChannelForm !== undefined);
  const isEnough = video !== undefined || audio !== undefined || allowsNoMedia;
  const accepted = acceptedSections({ video, audio, microphone, data });
  const [any, ...others] = accepted;
  if (!isEnough || any === undefined) {
    throw invalidOffer(whyNothing(offer, media));
  }
  const first = others.reduce(
    (earliest, section) => (rankIn(offer, section) < rankIn(offer, earliest) ? section : earliest),
    any,
  );
  if (offer.bundle.length === 0 && new Set(accepted).size > 1) {
    throw invalidOffer('its m-lines are not bundled. Use a=group:BUNDLE.');
  }
  checkTransport(first.transport);
  const plan: AnswerPlan = {
    offer,
    video,
    videoCodec: chosenVideo?.codec,
    audio,
    microphone,
    data,
    transport: first.transport,
  };
  if (previous !== undefined) {
    checkFollows(plan, previous);
  }
  return plan;
}

/** The sections of a plan that are in use. */
const acceptedSections = ({
  video,
  audio,
  microphone,
  data,
}: Pick<AnswerPlan, 'video' | 'audio' | 'microphone' | 'data'>): OfferedSection[] =>
  [video?.section, audio?.section, microphone?.section, data].filter(
    (section) => section !== undefined,
  );

/**
 * Whether an offer may follow the previous one (RFC 9429 section 5.2.2, RFC 8842 section 5.5): an
 * m-line in use keeps its place and its mid, and the certificate stays. Another certificate would
 * be another DTLS association.
 */
function checkFollows({ offer, transport }: AnswerPlan, previous: AnswerPlan): void {
  for (const { index, mid } of acceptedSections(previous)) {
    const now = offer.sections[index];
    if (now === undefined) {
      throw invalidOffer('it has fewer m-lines than the one before. Keep them, with port 0.');
    }
    if (now.mid !== mid && !now.isRefused) {
      throw invalidOffer(`the a=mid of m-line ${index + 1} has changed. Add a new m-line.`);
    }
  }
  checkSameCertificate(transport, previous.transport, invalidOffer);
}

/** @throws the error that `refusal` makes, if the fingerprints are not those of before */
export function checkSameCertificate(
  now: OfferedTransport,
  before: OfferedTransport,
  refusal: (reason: string) => Error,
): void {
  const digests = ({ fingerprints }: OfferedTransport): string =>
    fingerprints
      .map(({ hash, value }) => `${hash} ${value}`)
      .sort()
      .join();
  if (digests(now) !== digests(before)) {
    throw refusal('its a=fingerprint has changed. Open a new connection.');
  }
}

/** The directions of an offer in which the client receives, and those in which it sends. */
const canReceive = ({ direction }: OfferedSection): boolean =>
  direction === 'recvonly' || direction === 'sendrecv';
const canSend = ({ direction }: OfferedSection): boolean =>
  direction === 'sendonly' || direction === 'sendrecv';

/** The section of the plan before comes first. */
const preferring = (
  media: readonly OfferedSection[],
  previous: MediaPlan | undefined,
): readonly OfferedSection[] => {
  const kept = media.find(({ mid }) => mid === previous?.section.mid);
  return kept === undefined ? media : [kept, ...media.filter((section) => section !== kept)];
};

/**
 * The first section on which the client can receive a video codec that we encode. The section of
 * the plan before is kept even if the client does not want to receive for now.
 */
function chooseVideo(
  media: readonly OfferedSection[],
  previous: AnswerPlan | undefined,
): { readonly codec: VideoCodec; readonly plan: MediaPlan } | undefined {
  const before = previous?.video;
  for (const section of preferring(media, before)) {
    const isKept = section.mid === before?.section.mid;
    const chosen =
      section.kind === 'video' && (canReceive(section) || isKept)
        ? chooseVideoCodec(section, isKept ? before.codec.payloadType : undefined)
        : undefined;
    if (chosen !== undefined) {
      const { codec, offered, rtxPayloadType } = chosen;
      const sends = canReceive(section);
      return { codec, plan: mediaPlan(section, offered, rtxPayloadType, sends, false, FEEDBACK) };
    }
  }
  return undefined;
}

/**
 * The first sections with Opus on which the client receives and sends: one section if it is
 * sendrecv. The section of the plan before is kept even if the client does not want to receive for
 * now.
 */
function planAudio(
  media: readonly OfferedSection[],
  previous: AnswerPlan | undefined,
): Pick<AnswerPlan, 'audio' | 'microphone'> {
  const before = previous?.audio;
  const sections = preferring(media, before).flatMap((section) => {
    const opus = section.codecs.find(({ name }) => name === 'opus');
    return section.kind === 'audio' && opus !== undefined ? [{ section, opus }] : [];
  });
  const outgoing = sections.find(
    ({ section }) => canReceive(section) || section.mid === before?.section.mid,
  );
  const incoming = sections.find(({ section }) => canSend(section));
  const planOf = (one: typeof outgoing): MediaPlan | undefined => {
    if (one === undefined) {
      return undefined;
    }
    const sends = one === outgoing && canReceive(one.section);
    return mediaPlan(one.section, one.opus, undefined, sends, one === incoming, []);
  };
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

/** Whether name and password have the form of RFC 8839 section 5.4. */
export const hasCredentials = ({ ufrag, password }: OfferedTransport): boolean =>
  /^[A-Za-z0-9+/=_-]{4,256}$/.test(ufrag) && /^[A-Za-z0-9+/=_-]{22,256}$/.test(password);

/** ICE credentials, fingerprints, and the DTLS role (RFC 8842 section 5.3). */
function checkTransport(transport: OfferedTransport): void {
  const { fingerprints, setup } = transport;
  if (!hasCredentials(transport)) {
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

/** What is agreed on for one section. */
export function mediaPlan(
  section: OfferedSection,
  codec: OfferedCodec,
  rtxPayloadType: number | undefined,
  sends: boolean,
  receives: boolean,
  feedback: readonly Feedback[],
): MediaPlan {
  const { mid, absSendTime, playoutDelay, audioLevel } = section.extensions;
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
      audioLevel: isVideo ? 0 : audioLevel,
    },
  };
}

interface ChosenVideoCodec {
  readonly codec: VideoCodec;
  readonly offered: OfferedCodec;
  readonly rtxPayloadType: number | undefined;
}

/**
 * The first codec, in the client's order, that we encode; and its RTX payload type.
 * @param preferredType payload type that is in use: it comes first
 */
export function chooseVideoCodec(
  section: OfferedSection,
  preferredType: number | undefined,
): ChosenVideoCodec | undefined {
  const kept = section.codecs.filter(({ payloadType }) => payloadType === preferredType);
  for (const offered of [...kept, ...section.codecs]) {
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
