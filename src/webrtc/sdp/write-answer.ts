// Writes the SDP of an answer.
import type { AnswerPlan, MediaPlan } from './answer.ts';
import type { Direction } from './attributes.ts';
import type { OfferedSection } from './offer.ts';
import {
  addressLines,
  extensionLines,
  opusLines,
  sessionLines,
  ssrcLines,
  transportLines,
  videoCodecLines,
  type LocalIdentity,
} from './sdp-lines.ts';

/** Longest message that we take (RFC 8841 section 6). */
export const MAX_MESSAGE_BYTES = 65_536;

/** Writes the answer: the sections in the order of the offer, refused ones with port 0. */
export function writeAnswer(plan: AnswerPlan, identity: LocalIdentity, isIceLite = true): string {
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
      `a=max-message-size:${MAX_MESSAGE_BYTES}`,
    ]);
  }
  const { sections, bundle } = plan.offer;
  const mids = bundle.filter((mid) =>
    sections.some((section) => section.mid === mid && accepted.has(section.index)),
  );
  const lines = sessionLines(identity, isIceLite, bundle.length > 0 ? mids : undefined);
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
  identity: LocalIdentity,
): string[] {
  const transport = transportLines(identity, section.mid);
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
  return [...addressLines(identity, section.kind, section.protocol, formats), ...transport, ...own];
}

function directionOf({ sends, receives }: MediaPlan): Direction {
  if (sends) {
    return receives ? 'sendrecv' : 'sendonly';
  }
  return receives ? 'recvonly' : 'inactive';
}

/** The attributes of an accepted audio or video section. */
function mediaLines(media: MediaPlan, identity: LocalIdentity, isVideo: boolean): string[] {
  const { codec, section, rtxPayloadType, extensions } = media;
  const lines = [...extensionLines(extensions), `a=${directionOf(media)}`];
  if (media.sends) {
    const { streamId, videoTrackId, audioTrackId } = identity;
    lines.push(`a=msid:${streamId} ${isVideo ? videoTrackId : audioTrackId}`);
  }
  lines.push('a=rtcp-mux');
  if (section.hasReducedSize) {
    lines.push('a=rtcp-rsize');
  }
  lines.push(
    ...(isVideo
      ? videoCodecLines(codec, media.feedback, rtxPayloadType)
      : opusLines(codec.payloadType)),
  );
  if (media.sends) {
    const { videoSsrc, videoRtxSsrc, audioSsrc, cname } = identity;
    const rtxSsrc = isVideo && rtxPayloadType !== undefined ? videoRtxSsrc : 0;
    lines.push(...ssrcLines({ ssrc: isVideo ? videoSsrc : audioSsrc, rtxSsrc }, cname));
  }
  return lines;
}
