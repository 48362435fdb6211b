// SDP offers: one that is as it should be, and those that cost a reader as much as they can.
import { randomBytes } from 'node:crypto';

export interface OfferIdentity { readonly ufrag: string; readonly password: string; readonly fingerprint: string }

export const newIdentity = (): OfferIdentity => ({
  ufrag: randomBytes(3).toString('hex'), password: randomBytes(12).toString('hex'),
  fingerprint: (randomBytes(32).toString('hex').toUpperCase().match(/../g) ?? []).join(':'),
});

const head = ({ ufrag, password, fingerprint }: OfferIdentity, mids: readonly string[]): string[] => [
  'v=0', 'o=- 4711 2 IN IP4 127.0.0.1', 's=-', 't=0 0', `a=group:BUNDLE ${mids.join(' ')}`,
  `a=ice-ufrag:${ufrag}`, `a=ice-pwd:${password}`, `a=fingerprint:sha-256 ${fingerprint}`, 'a=setup:actpass',
];

const AUDIO = ['m=audio 9 UDP/TLS/RTP/SAVPF 111', 'c=IN IP4 0.0.0.0', 'a=mid:0', 'a=recvonly', 'a=rtcp-mux', 'a=rtpmap:111 opus/48000/2'];
const VIDEO = ['c=IN IP4 0.0.0.0', 'a=mid:1', 'a=recvonly', 'a=rtcp-mux'];
const VIDEO_LINE = 'm=video 9 UDP/TLS/RTP/SAVPF 96';

const text = (lines: readonly string[]): string => `${lines.join('\r\n')}\r\n`;
const repeat = (count: number, line: (index: number) => string): string[] => Array.from({ length: count }, (_, index) => line(index));

/** What a browser that only listens and watches would offer. */
export const plainOffer = (identity = newIdentity()): string =>
  text([...head(identity, ['0', '1']), ...AUDIO, VIDEO_LINE, ...VIDEO, 'a=rtpmap:96 VP8/90000', 'a=rtcp-fb:96 nack', 'a=rtcp-fb:96 nack pli']);

/** The size that a WebSocket message may have (src/front/http/socket.ts), less what JSON adds. */
const MESSAGE_BYTES = 1_000_000;
/** Sizes and counts just within what the parser takes (src/worker/peer/sdp-offer.ts), where its work is greatest. */
const WITHIN = { bytes: 250_000, lines: 3_900, sections: 31 };

const withVideo = (videoLine: string, lines: readonly string[]): string => text([...head(newIdentity(), ['0', '1']), ...AUDIO, videoLine, ...VIDEO, ...lines]);

/** Offers by what they aim at. */
export const HOSTILE_OFFERS: Readonly<Record<string, () => string>> = {
  'longer than a message may be': () => `${plainOffer()}a=${'x'.repeat(MESSAGE_BYTES)}`,
  'as long as an offer may be': () => `${plainOffer()}a=${'x'.repeat(WITHIN.bytes)}`,
  'as many lines as it may have': () => withVideo(VIDEO_LINE, repeat(WITHIN.lines - 30, (index) => `a=candidate:${index} 1 udp 1 10.0.0.1 ${index} typ host`)),
  'one payload type named 60,000 times, feedback for all': () => withVideo(
    `${VIDEO_LINE}${' 96'.repeat(60_000)}`, ['a=rtpmap:96 VP8/90000', ...repeat(2_000, (index) => `a=rtcp-fb:* x${index}`)],
  ),
  'one payload type named 30,000 times, parameters of 100 kB': () => withVideo(
    `${VIDEO_LINE.replace('96', '98')}${' 98'.repeat(30_000)}`, ['a=rtpmap:98 H264/90000', `a=fmtp:98 ${'a=b;'.repeat(25_000)}`],
  ),
  'extensions for every section': () => text([
    ...head(newIdentity(), repeat(WITHIN.sections, String)), ...repeat(WITHIN.lines - 120, (index) => `a=extmap:${index % 14 + 1} urn:x:${index}`),
    ...repeat(WITHIN.sections, (index) => [VIDEO_LINE, `a=mid:${index}`, 'a=rtpmap:96 VP8/90000'].join('\r\n')),
  ]),
  'thousands of fingerprints': () => withVideo(VIDEO_LINE, repeat(WITHIN.lines - 30, () => `a=fingerprint:sha-256 ${'AB:'.repeat(18)}`)),
  'blanks without end': () => withVideo(`${VIDEO_LINE}${' '.repeat(WITHIN.bytes - 2_000)}`, ['a=rtpmap:96 VP8/90000']),
  'no sections': () => text(['v=0', 's=-']),
  'bytes of chance': () => randomBytes(20_000).toString('latin1'),
};
