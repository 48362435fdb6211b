// SDP offers: one that is as it should be, and those that cost a reader as much as they can.
import { randomBytes } from 'node:crypto';
import { MAX_OFFER_CHARS } from '../../src/webrtc/sdp/offer.ts';

export interface OfferIdentity {
  readonly ufrag: string;
  readonly password: string;
  readonly fingerprint: string;
}

export const newIdentity = (): OfferIdentity => ({
  ufrag: randomBytes(3).toString('hex'),
  password: randomBytes(12).toString('hex'),
  fingerprint: (randomBytes(32).toString('hex').toUpperCase().match(/../g) ?? []).join(':'),
});

const head = (
  { ufrag, password, fingerprint }: OfferIdentity,
  mids: readonly string[],
): string[] => [
  'v=0',
  'o=- 4711 2 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  `a=group:BUNDLE ${mids.join(' ')}`,
  `a=ice-ufrag:${ufrag}`,
  `a=ice-pwd:${password}`,
  `a=fingerprint:sha-256 ${fingerprint}`,
  'a=setup:actpass',
];

const AUDIO = [
  'm=audio 9 UDP/TLS/RTP/SAVPF 111',
  'c=IN IP4 0.0.0.0',
  'a=mid:0',
  'a=recvonly',
  'a=rtcp-mux',
  'a=rtpmap:111 opus/48000/2',
];
const VIDEO = ['c=IN IP4 0.0.0.0', 'a=mid:1', 'a=recvonly', 'a=rtcp-mux'];
const VIDEO_LINE = 'm=video 9 UDP/TLS/RTP/SAVPF 96';

const text = (lines: readonly string[]): string => `${lines.join('\r\n')}\r\n`;
const repeat = (count: number, line: (index: number) => string): string[] =>
  Array.from({ length: count }, (_, index) => line(index));

/** What a browser that only listens and watches would offer. */
export const plainOffer = (identity = newIdentity()): string =>
  text([
    ...head(identity, ['0', '1']),
    ...AUDIO,
    VIDEO_LINE,
    ...VIDEO,
    'a=rtpmap:96 VP8/90000',
    'a=rtcp-fb:96 nack',
    'a=rtcp-fb:96 nack pli',
  ]);

/** The size that a WebSocket message may have (src/front/http/socket.ts), less what JSON adds. */
const MESSAGE_BYTES = 1_000_000;
/** Just within what the parser takes, where its work is greatest, and far beyond. */
const WITHIN = { chars: MAX_OFFER_CHARS - 2_000, lines: 1_900, sections: 31 } as const;
const BEYOND = { chars: 250_000, lines: 3_900, sections: 400 } as const;
type Size = { readonly [name in keyof typeof WITHIN]: number };

const withVideo = (videoLine: string, lines: readonly string[]): string =>
  text([...head(newIdentity(), ['0', '1']), ...AUDIO, videoLine, ...VIDEO, ...lines]);

/** By what they aim at, each in two sizes. */
const SHAPES: Readonly<Record<string, (size: Size) => string>> = {
  'one long line': ({ chars }) => `${plainOffer()}a=${'x'.repeat(chars - 1_000)}`,
  'candidates without end': ({ lines }) =>
    withVideo(
      VIDEO_LINE,
      repeat(lines - 30, (index) => `a=candidate:${index} 1 udp 1 10.0.0.1 9 typ host`),
    ),
  'one payload type again and again, feedback for all': ({ chars, lines }) =>
    withVideo(`${VIDEO_LINE}${' 96'.repeat(chars / 4)}`, [
      'a=rtpmap:96 VP8/90000',
      ...repeat(Math.min(lines - 100, chars / 80), (index) => `a=rtcp-fb:* x${index}`),
    ]),
  'one payload type again and again, long parameters': ({ chars }) =>
    withVideo(`${VIDEO_LINE.replace('96', '98')}${' 98'.repeat(chars / 8)}`, [
      'a=rtpmap:98 H264/90000',
      `a=fmtp:98 ${'a=b;'.repeat(chars / 8)}`,
    ]),
  'extensions for every section': ({ lines, sections }) =>
    text([
      ...head(newIdentity(), repeat(sections, String)),
      ...repeat(
        lines - sections * 3 - 30,
        (index) => `a=extmap:${(index % 14) + 1} urn:x:${index}`,
      ),
      ...repeat(sections, (index) =>
        [VIDEO_LINE, `a=mid:${index}`, 'a=rtpmap:96 VP8/90000'].join('\r\n'),
      ),
    ]),
  'fingerprints without end': ({ chars }) =>
    withVideo(
      VIDEO_LINE,
      repeat(chars / 85, () => `a=fingerprint:sha-256 ${'AB:'.repeat(18)}`),
    ),
  'blanks without end': ({ chars }) =>
    withVideo(`${VIDEO_LINE}${' '.repeat(chars - 1_000)}`, ['a=rtpmap:96 VP8/90000']),
};

/** Offers by what they aim at. */
export const HOSTILE_OFFERS: Readonly<Record<string, () => string>> = {
  ...Object.fromEntries(
    Object.entries(SHAPES).flatMap(([aim, make]) => [
      [`${aim}, within the bounds`, () => make(WITHIN)],
      [`${aim}, beyond them`, () => make(BEYOND)],
    ]),
  ),
  'longer than a message may be': () => `${plainOffer()}a=${'x'.repeat(MESSAGE_BYTES)}`,
  'no sections': () => text(['v=0', 's=-']),
  'bytes of chance': () => randomBytes(20_000).toString('latin1'),
};
