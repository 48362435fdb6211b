// Reading an SDP offer (RFC 8866, RFC 9429): what the client wants to receive and send, and with which codecs and keys.
import { ServiceError } from '../../base/errors.ts';
import type { VideoCodec } from '../../media/coded-frame.ts';
import type { Fingerprint } from './dtls-server.ts';

const MAX_OFFER_BYTES = 256 * 1024;
const MAX_LINES = 4_000;
const MAX_SECTIONS = 32;
const MAX_MID_BYTES = 16; // longest that a one-byte header extension carries

export const EXTENSION_URI = {
  mid: 'urn:ietf:params:rtp-hdrext:sdes:mid',
  absSendTime: 'http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time',
  playoutDelay: 'http://www.webrtc.org/experiments/rtp-hdrext/playout-delay',
} as const;

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

export interface OfferedCodec {
  readonly payloadType: number;
  /** Lower case: 'vp8', 'h264', 'opus', 'rtx'. */
  readonly name: string;
  readonly parameters: string;
  readonly feedback: ReadonlySet<string>;
}

export interface OfferedSection {
  readonly index: number;
  readonly kind: string;
  readonly protocol: string;
  /** The m-line's last field as it stands, for sections that are refused. */
  readonly formats: string;
  readonly mid: string;
  readonly isRefused: boolean;
  readonly direction: Direction;
  /** In the order of the client's preference. */
  readonly codecs: readonly OfferedCodec[];
  readonly extensions: ReadonlyMap<string, number>;
  readonly hasRtcpMux: boolean;
  readonly hasReducedSize: boolean;
  /** Which way of writing a data channel this is: RFC 8841's, or the drafts' before it, which aiortc writes to this day. */
  readonly dataChannelForm: 'rfc8841' | 'sctpmap' | null;
  readonly transport: OfferedTransport;
}

export interface OfferedTransport {
  readonly ufrag: string;
  readonly password: string;
  readonly fingerprints: readonly Fingerprint[];
  readonly setup: string;
}

export interface Offer {
  readonly sections: readonly OfferedSection[];
  /** Mids of the BUNDLE group in order; empty when there is none. */
  readonly bundle: readonly string[];
  readonly isIceLite: boolean;
}

const invalid = (reason: string): ServiceError => new ServiceError('INVALID_OFFER', `The SDP offer could not be used: ${reason}`);

/** The attributes of the session or of one m-line, each name with its values in order. */
class Attributes {
  readonly #values = new Map<string, string[]>();
  add(line: string): void {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const values = this.#values.get(name) ?? [];
    if (values.length === 0) this.#values.set(name, values);
    values.push(colon < 0 ? '' : line.slice(colon + 1).trim());
  }
  all(name: string): readonly string[] { return this.#values.get(name) ?? []; }
  first(name: string): string | undefined { return this.#values.get(name)?.[0]; }
  has(name: string): boolean { return this.#values.has(name); }
}

/** @throws ServiceError INVALID_OFFER that says what is wrong. */
export function parseOffer(sdp: string): Offer {
  if (typeof sdp !== 'string' || sdp.length === 0) throw invalid('it is empty.');
  if (sdp.length > MAX_OFFER_BYTES) throw invalid(`it is longer than ${MAX_OFFER_BYTES} characters.`);
  const lines = sdp.split(/\r\n|\n|\r/);
  if (lines.length > MAX_LINES) throw invalid(`it has more than ${MAX_LINES} lines.`);
  if (lines[0]?.trimEnd() !== 'v=0') throw invalid('it does not begin with v=0.');
  const session = new Attributes();
  const sections: { readonly line: string; readonly attributes: Attributes }[] = [];
  for (const line of lines) {
    if (line.startsWith('m=')) {
      sections.push({ line: line.slice(2).trim(), attributes: new Attributes() });
      if (sections.length > MAX_SECTIONS) throw invalid(`it has more than ${MAX_SECTIONS} m-lines.`);
    } else if (line.startsWith('a=')) (sections.at(-1)?.attributes ?? session).add(line.slice(2));
  }
  if (sections.length === 0) throw invalid('it has no m-line. Offer an audio and a video section with direction recvonly.');
  const group = session.all('group').find((value) => value.startsWith('BUNDLE')) ?? '';
  const parsed = sections.map(({ line, attributes }, index) => parseSection(line, attributes, session, index));
  if (new Set(parsed.map(({ mid }) => mid)).size !== parsed.length) throw invalid('two m-lines have the same a=mid.');
  return { sections: parsed, bundle: group.split(/\s+/).slice(1), isIceLite: session.has('ice-lite') };
}

function parseSection(line: string, attributes: Attributes, session: Attributes, index: number): OfferedSection {
  const [kind = '', port = '', protocol = '', ...formats] = line.split(/\s+/);
  if (!/^[a-z]+$/.test(kind) || !/^\d{1,5}(\/\d+)?$/.test(port) || !/^[A-Za-z0-9/]+$/.test(protocol) || formats.length === 0) {
    throw invalid(`m-line ${index + 1} is malformed.`);
  }
  if (formats.some((format) => !/^[\w.!#$%&'*+^`{|}~-]+$/.test(format))) throw invalid(`m-line ${index + 1} has a malformed format.`);
  const mid = attributes.first('mid') ?? String(index);
  if (!/^[\w.!#$%&'*+^`{|}~-]+$/.test(mid) || mid.length > 256) throw invalid(`the a=mid of m-line ${index + 1} is malformed.`);
  const directionOf = (from: Attributes): Direction | undefined =>
    (['sendrecv', 'sendonly', 'recvonly', 'inactive'] as const).find((name) => from.has(name));
  const inherited = (name: string): readonly string[] => attributes.has(name) ? attributes.all(name) : session.all(name);
  return {
    index, kind, protocol, formats: formats.join(' '), mid,
    isRefused: port === '0' && !attributes.has('bundle-only'),
    direction: directionOf(attributes) ?? directionOf(session) ?? 'sendrecv',
    codecs: parseCodecs(formats, attributes),
    extensions: parseExtensions([...session.all('extmap'), ...attributes.all('extmap')], mid),
    hasRtcpMux: attributes.has('rtcp-mux'),
    hasReducedSize: attributes.has('rtcp-rsize'),
    dataChannelForm: kind !== 'application' ? null
      : /^(UDP|TCP)\/DTLS\/SCTP$/.test(protocol) && /^\d{1,5}$/.test(attributes.first('sctp-port') ?? '') ? 'rfc8841'
      : protocol === 'DTLS/SCTP' && /^\d{1,5}$/.test(formats[0] ?? '') ? 'sctpmap' : null,
    transport: {
      ufrag: inherited('ice-ufrag')[0] ?? '',
      password: inherited('ice-pwd')[0] ?? '',
      fingerprints: parseFingerprints(inherited('fingerprint')),
      setup: inherited('setup')[0] ?? 'actpass',
    },
  };
}

function parseCodecs(formats: readonly string[], attributes: Attributes): OfferedCodec[] {
  const byType = (name: string): Map<string, string[]> => {
    const found = new Map<string, string[]>();
    for (const value of attributes.all(name)) {
      const space = value.indexOf(' ');
      const type = value.slice(0, Math.max(0, space));
      const values = found.get(type) ?? [];
      if (values.length === 0) found.set(type, values);
      values.push(value.slice(space + 1).trim());
    }
    return found;
  };
  const names = byType('rtpmap');
  const parameters = byType('fmtp');
  const feedback = byType('rtcp-fb');
  const codecs: OfferedCodec[] = [];
  for (const format of formats) {
    const payloadType = Number(format);
    const name = names.get(format)?.[0];
    if (!/^\d{1,3}$/.test(format) || payloadType > 127 || name === undefined) continue;
    // Types 64 to 95 look like RTCP when both share a port (RFC 5761 section 4).
    if (payloadType >= 64 && payloadType <= 95) continue;
    const [encoding = '', rate = ''] = name.toLowerCase().split('/');
    if (rate !== (encoding === 'opus' ? '48000' : '90000')) continue;
    codecs.push({ payloadType, name: encoding, parameters: parameters.get(format)?.[0] ?? '', feedback: new Set([...feedback.get('*') ?? [], ...feedback.get(format) ?? []]) });
  }
  return codecs;
}

function parseExtensions(values: readonly string[], mid: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const value of values) {
    const match = /^(\d{1,3})(?:\/[a-z]+)? (\S+)/.exec(value);
    const id = Number(match?.[1]);
    const uri = match?.[2];
    // Ids above 14 need the two-byte form, which not every client reads.
    if (uri === undefined || !(id >= 1 && id <= 14) || [...found.values()].includes(id)) continue;
    if (uri === EXTENSION_URI.mid && mid.length > MAX_MID_BYTES) continue;
    found.set(uri, id);
  }
  return found;
}

function parseFingerprints(values: readonly string[]): Fingerprint[] {
  return values.slice(0, 8).flatMap((value) => {
    const [name = '', digest = ''] = value.split(/\s+/);
    const hash = name.toLowerCase().replace('-', '');
    return ['sha256', 'sha384', 'sha512'].includes(hash) ? [{ hash, value: digest.toUpperCase() }] : [];
  });
}

export interface ChosenVideoCodec { readonly codec: VideoCodec; readonly offered: OfferedCodec; readonly rtxPayloadType: number | null }

/** The first codec of the client's order that we encode, and the RTX payload type that goes with it. */
export function chooseVideoCodec(section: OfferedSection): ChosenVideoCodec | null {
  for (const offered of section.codecs) {
    const codec = offered.name === 'vp8' ? 'vp8' : offered.name === 'h264' && isConstrainedBaseline(offered.parameters) ? 'h264' : null;
    if (codec === null) continue;
    const rtx = section.codecs.find(({ name, parameters }) => name === 'rtx' && parameterOf(parameters, 'apt') === String(offered.payloadType));
    return { codec, offered, rtxPayloadType: rtx?.payloadType ?? null };
  }
  return null;
}

export function parameterOf(parameters: string, name: string): string | undefined {
  for (const part of parameters.split(';')) {
    const equals = part.indexOf('=');
    if (equals > 0 && part.slice(0, equals).trim().toLowerCase() === name) return part.slice(equals + 1).trim();
  }
  return undefined;
}

/**
 * Whether a decoder with these fmtp parameters reads what we send: constrained baseline in packetization-mode 1 (RFC 6184
 * section 8.2.2). Profile 66 is baseline; constrained or not, its decoders read the constrained form.
 */
function isConstrainedBaseline(parameters: string): boolean {
  if (parameterOf(parameters, 'packetization-mode') !== '1') return false;
  const profile = parameterOf(parameters, 'profile-level-id') ?? '42000a';
  return /^[0-9a-f]{6}$/i.test(profile) && profile.slice(0, 2) === '42';
}

export { invalid as invalidOffer };
