// Writes an offer of ours: audio and video that we send, and data channels.
import type { VideoCodec } from '../../media/coded-frame.ts';
import type { ExtensionName } from './extensions.ts';
import type { Feedback, OfferedCodec } from './offer.ts';
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
import { MAX_MESSAGE_BYTES } from './write-answer.ts';

/** One section. It keeps its place, and so its mid, in all offers of a connection. */
export interface OwnSection {
  readonly kind: 'audio' | 'video' | 'data';
  readonly mid: string;
  /** false: inactive. Data sections are always active. */
  readonly sends: boolean;
}

const OPUS_TYPE = 111;
/** Payload types as browsers number them: codec -> its own and that of its retransmissions. */
const VIDEO_TYPES = { vp8: [96, 97], h264: [102, 103] } as const;
/** Constrained baseline, level 3.1: what every H.264 receiver in browsers and SFUs decodes. */
const H264_PARAMETERS = 'packetization-mode=1;profile-level-id=42e01f';
const AUDIO_EXTENSIONS = { mid: 1, absSendTime: 0, playoutDelay: 0, audioLevel: 4 };
/** The playout delay is for the browser that plays the video: an SFU chooses its own. */
const videoExtensions = (isForBrowser: boolean): Record<ExtensionName, number> => ({
  mid: 1,
  absSendTime: 2,
  playoutDelay: isForBrowser ? 3 : 0,
  audioLevel: 0,
});
const VIDEO_FEEDBACK: readonly Feedback[] = ['nack', 'nack pli', 'ccm fir', 'goog-remb'];

/**
 * @param codecs the video codecs, the preferred one first
 * @param isIceLite true: the offer is for a browser; false: for an SFU
 */
export function writeOffer(
  sections: readonly OwnSection[],
  codecs: readonly VideoCodec[],
  identity: LocalIdentity,
  isIceLite: boolean,
): string {
  const mids = sections.map(({ mid }) => mid);
  const lines = sessionLines(identity, isIceLite, mids);
  lines.push('a=ice-options:trickle');
  for (const section of sections) {
    lines.push(
      ...(section.kind === 'data'
        ? dataLines(section, identity)
        : mediaLines(section, section.kind, codecs, identity, isIceLite)),
    );
  }
  return `${lines.join('\r\n')}\r\n`;
}

const dataLines = ({ mid }: OwnSection, identity: LocalIdentity): string[] => [
  ...addressLines(identity, 'application', 'UDP/DTLS/SCTP', 'webrtc-datachannel'),
  ...transportLines(identity, mid),
  'a=sctp-port:5000',
  `a=max-message-size:${MAX_MESSAGE_BYTES}`,
];

function mediaLines(
  { mid, sends }: OwnSection,
  kind: 'audio' | 'video',
  codecs: readonly VideoCodec[],
  identity: LocalIdentity,
  isForBrowser: boolean,
): string[] {
  const { streamId, videoTrackId, audioTrackId, videoSsrc, videoRtxSsrc, audioSsrc } = identity;
  const isVideo = kind === 'video';
  const types = isVideo ? codecs.flatMap((codec) => VIDEO_TYPES[codec]) : [OPUS_TYPE];
  const ssrcs = isVideo
    ? { ssrc: videoSsrc, rtxSsrc: videoRtxSsrc }
    : { ssrc: audioSsrc, rtxSsrc: 0 };
  return [
    ...addressLines(identity, kind, 'UDP/TLS/RTP/SAVPF', types.join(' ')),
    ...transportLines(identity, mid),
    ...extensionLines(isVideo ? videoExtensions(isForBrowser) : AUDIO_EXTENSIONS),
    sends ? 'a=sendonly' : 'a=inactive',
    ...(sends ? [`a=msid:${streamId} ${isVideo ? videoTrackId : audioTrackId}`] : []),
    'a=rtcp-mux',
    'a=rtcp-rsize',
    ...(isVideo
      ? codecs.flatMap((codec) => {
          const [payloadType, rtxPayloadType] = VIDEO_TYPES[codec];
          return videoCodecLines(offeredCodec(codec, payloadType), VIDEO_FEEDBACK, rtxPayloadType);
        })
      : opusLines(OPUS_TYPE)),
    ...(sends ? ssrcLines(ssrcs, identity.cname) : []),
  ];
}

const offeredCodec = (name: VideoCodec, payloadType: number): OfferedCodec => ({
  name,
  payloadType,
  parameters: name === 'h264' ? H264_PARAMETERS : '',
  feedback: VIDEO_FEEDBACK,
});
