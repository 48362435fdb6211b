// Parses an SDP offer (RFC 8866, RFC 9429) into a small plain object. The main thread does this, so
// that no text of a stranger delays the frames of a worker.
import { ServiceError } from '../../base/errors.ts';
import { Attributes, DIRECTIONS, type Direction } from './attributes.ts';
import { parseCandidate, type RemoteCandidate } from './candidate.ts';
import {
  chooseExtensions,
  parseExtensions,
  type Extension,
  type ExtensionName,
} from './extensions.ts';

/** Longest offer. Those of browsers have 3 to 10 kB. */
export const MAX_OFFER_CHARS = 64 * 1024;
const MAX_LINES = 2000;
const MAX_LINE_CHARS = 2048;
const MAX_SECTIONS = 32;
/** Formats of an m-line: payload types, of which there are 128. */
const MAX_FORMATS = 64;
const MAX_FINGERPRINTS = 8;
/** Candidate lines that are read. Browsers have about ten for each section. */
const MAX_CANDIDATE_LINES = 64;
/** If there is no a=max-message-size (RFC 8841 section 6.1). */
const DEFAULT_MESSAGE_BYTES = 65_536;
/** The RTCP feedback messages that are used, in SDP notation. */
export const FEEDBACK = ['nack', 'nack pli', 'ccm fir', 'goog-remb'] as const;
/** An RTCP feedback message in SDP notation. */
export type Feedback = (typeof FEEDBACK)[number];

const CODECS = ['opus', 'vp8', 'h264', 'rtx'] as const;
/** A codec that is used, in lower case. */
export type CodecName = (typeof CODECS)[number];

/** A codec of a section. `parameters`: the text of `a=fmtp`. */
export interface OfferedCodec {
  readonly payloadType: number;
  readonly name: CodecName;
  readonly parameters: string;
  readonly feedback: readonly Feedback[];
}

/** A section: an m-line with its attributes, and those it inherits from the session. */
export interface OfferedSection {
  readonly index: number;
  readonly kind: string;
  readonly protocol: string;
  /**
   * The formats of the m-line without repetitions: the answer repeats them if it refuses the
   * section.
   */
  readonly formats: string;
  readonly mid: string;
  readonly isRefused: boolean;
  readonly direction: Direction;
  /** The codecs that could be used, in the client's order of preference. */
  readonly codecs: readonly OfferedCodec[];
  /** Ids of the header extensions; 0: not offered. */
  readonly extensions: Readonly<Record<ExtensionName, number>>;
  readonly hasRtcpMux: boolean;
  readonly hasReducedSize: boolean;
  /**
   * The syntax of the data channel: that of RFC 8841, or that of earlier drafts (`a=sctpmap`),
   * which aiortc still uses.
   */
  readonly dataChannelForm: 'rfc8841' | 'sctpmap' | undefined;
  /** Longest message on a data channel that the other side takes (RFC 8841 section 6). */
  readonly maxMessageBytes: number;
  readonly transport: OfferedTransport;
}

/** The digest of the client's certificate. */
export interface OfferedFingerprint {
  /** As Node names it: sha256, sha384 or sha512. */
  readonly hash: string;
  /** Upper-case hexadecimal, colons between the bytes. */
  readonly value: string;
}

/** ICE credentials, certificate and DTLS role of a section. */
export interface OfferedTransport {
  readonly ufrag: string;
  readonly password: string;
  readonly fingerprints: readonly OfferedFingerprint[];
  readonly setup: string;
}

/** Plain data, for structured clone. Not much larger than the text. */
export interface Offer {
  readonly sections: readonly OfferedSection[];
  /** Mids of the BUNDLE group in order; empty if there is none. */
  readonly bundle: readonly string[];
  readonly isIceLite: boolean;
  /** The usable ICE candidates of all sections. */
  readonly candidates: readonly RemoteCandidate[];
}

/** An answer has the same parts. */
export type Answer = Offer;

/** The error for an offer that cannot be answered. */
export const invalidOffer = (reason: string): ServiceError =>
  new ServiceError('INVALID_OFFER', `The SDP offer could not be used: ${reason}`);

/** The error for an offer above MAX_OFFER_CHARS. */
export const offerTooLong = (): ServiceError => invalidOffer(TOO_LONG);
const TOO_LONG = `it is longer than ${MAX_OFFER_CHARS} characters.`;

/** A section before parsing: the m-line without `m=`, and its attributes. */
interface Section {
  readonly line: string;
  readonly attributes: Attributes;
}
/** What sections inherit from the session. */
interface Session {
  readonly attributes: Attributes;
  readonly extensions: readonly Extension[];
  readonly transport: OfferedTransport;
}

/** The error for an answer that cannot be used. */
export const invalidAnswer = (reason: string): ServiceError =>
  new ServiceError('INVALID_OFFER', `The SDP answer could not be used: ${reason}`);

/**
 * Parses an offer. Takes linear time: less than 5 ms for the longest one (measured in
 * test/webrtc/sdp/offer.test.ts).
 * @throws ServiceError INVALID_OFFER that says what is wrong
 */
export const parseOffer = (sdp: string): Offer => parse(sdp, invalidOffer);

/**
 * Parses an answer to an offer of ours.
 * @throws ServiceError INVALID_OFFER that says what is wrong
 */
export const parseAnswer = (sdp: string): Answer => parse(sdp, invalidAnswer);

type Refusal = (reason: string) => ServiceError;

function parse(sdp: string, refusal: Refusal): Offer {
  if (typeof sdp !== 'string' || sdp.length === 0) {
    throw refusal('it is empty.');
  }
  if (sdp.length > MAX_OFFER_CHARS) {
    throw refusal(TOO_LONG);
  }
  const lines = sdp.split(/\r\n|\n|\r/, MAX_LINES + 1);
  if (lines.length > MAX_LINES) {
    throw refusal(`it has more than ${MAX_LINES} lines.`);
  }
  if (lines[0]?.trimEnd() !== 'v=0') {
    throw refusal('it does not begin with v=0.');
  }
  const { attributes, sections } = divide(lines, refusal);
  if (sections.length === 0) {
    throw refusal('it has no m-line. Offer an audio and a video section with direction recvonly.');
  }
  const session: Session = {
    attributes,
    extensions: parseExtensions(attributes),
    transport: parseTransport(attributes, undefined),
  };
  const parsed = sections.map((section, index) => parseSection(section, session, index, refusal));
  if (new Set(parsed.map(({ mid }) => mid)).size !== parsed.length) {
    throw refusal('two m-lines have the same a=mid.');
  }
  const group = attributes.all('group').find((value) => value.startsWith('BUNDLE')) ?? '';
  const bundle = [...new Set(group.split(/\s+/).slice(1))].slice(0, MAX_SECTIONS);
  const candidates = sections
    .flatMap((section) => section.attributes.all('candidate'))
    .slice(0, MAX_CANDIDATE_LINES)
    .flatMap((line) => parseCandidate(line) ?? []);
  return {
    sections: withUniqueIds(parsed),
    bundle,
    isIceLite: attributes.has('ice-lite'),
    candidates,
  };
}

/**
 * Within a bundle an id must mean one extension (RFC 8843 section 9). aiortc offers id 2 for the
 * audio level and for the send time of video, and its DTLS transport dies of the first audio packet
 * that carries it. Of such two the audio level is left out.
 */
function withUniqueIds(sections: readonly OfferedSection[]): OfferedSection[] {
  const others = new Set(
    sections.flatMap(({ extensions: { mid, absSendTime, playoutDelay } }) => [
      mid,
      absSendTime,
      playoutDelay,
    ]),
  );
  return sections.map((section) =>
    others.has(section.extensions.audioLevel)
      ? { ...section, extensions: { ...section.extensions, audioLevel: 0 } }
      : section,
  );
}

/** Splits the lines into the attributes of the session and the sections. */
function divide(
  lines: readonly string[],
  refusal: Refusal,
): {
  readonly attributes: Attributes;
  readonly sections: readonly Section[];
} {
  const attributes = new Attributes();
  const sections: Section[] = [];
  for (const [index, line] of lines.entries()) {
    if (line.length > MAX_LINE_CHARS) {
      throw refusal(`its line ${index + 1} is longer than ${MAX_LINE_CHARS} characters.`);
    }
    if (line.startsWith('m=')) {
      sections.push({ line: line.slice(2).trim(), attributes: new Attributes() });
      if (sections.length > MAX_SECTIONS) {
        throw refusal(`it has more than ${MAX_SECTIONS} m-lines.`);
      }
    } else if (line.startsWith('a=')) {
      (sections.at(-1)?.attributes ?? attributes).add(line.slice(2));
    }
  }
  return { attributes, sections };
}

/** RFC 8866 section 9. */
const TOKEN = /^[\w.!#$%&'*+^`{|}~-]+$/;

function parseSection(
  { line, attributes }: Section,
  session: Session,
  index: number,
  refusal: Refusal,
): OfferedSection {
  const place = `m-line ${index + 1}`;
  const [kind = '', port = '', protocol = '', ...listed] = line.split(/\s+/);
  const isWellFormed =
    /^[a-z]+$/.test(kind) && /^\d{1,5}(\/\d+)?$/.test(port) && /^[A-Za-z0-9/]+$/.test(protocol);
  if (!isWellFormed || listed.length === 0) {
    throw refusal(`${place} is malformed.`);
  }
  const formats = [...new Set(listed)];
  if (formats.length > MAX_FORMATS) {
    throw refusal(`${place} has more than ${MAX_FORMATS} formats.`);
  }
  if (formats.some((format) => !TOKEN.test(format))) {
    throw refusal(`${place} has a malformed format.`);
  }
  const mid = attributes.first('mid') ?? String(index);
  if (mid.length > 256 || !TOKEN.test(mid)) {
    throw refusal(`the a=mid of ${place} is malformed.`);
  }
  return {
    index,
    kind,
    protocol,
    formats: formats.join(' '),
    mid,
    isRefused: port === '0' && !attributes.has('bundle-only'),
    direction: directionOf(attributes) ?? directionOf(session.attributes) ?? 'sendrecv',
    codecs: parseCodecs(formats, attributes),
    extensions: chooseExtensions([...session.extensions, ...parseExtensions(attributes)], mid),
    hasRtcpMux: attributes.has('rtcp-mux'),
    hasReducedSize: attributes.has('rtcp-rsize'),
    dataChannelForm:
      kind === 'application' ? dataChannelForm(protocol, formats[0] ?? '', attributes) : undefined,
    maxMessageBytes: maxMessageBytes(attributes),
    transport: parseTransport(attributes, session.transport),
  };
}

/** 0 means any length (RFC 8841 section 6). */
function maxMessageBytes(attributes: Attributes): number {
  const value = attributes.first('max-message-size') ?? '';
  const bytes = /^\d{1,15}$/.test(value) ? Number(value) : DEFAULT_MESSAGE_BYTES;
  return bytes === 0 ? Number.MAX_SAFE_INTEGER : bytes;
}

const directionOf = (attributes: Attributes): Direction | undefined =>
  DIRECTIONS.find((name) => attributes.has(name));

function dataChannelForm(
  protocol: string,
  format: string,
  attributes: Attributes,
): OfferedSection['dataChannelForm'] {
  const isPort = (text: string): boolean => /^\d{1,5}$/.test(text);
  if (/^(UDP|TCP)\/DTLS\/SCTP$/.test(protocol) && isPort(attributes.first('sctp-port') ?? '')) {
    return 'rfc8841';
  }
  return protocol === 'DTLS/SCTP' && isPort(format) ? 'sctpmap' : undefined;
}

/**
 * The values of an attribute that begin with a payload type or `*`: payload type -> rests of the
 * values.
 */
function byFormat(attributes: Attributes, name: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const value of attributes.all(name)) {
    const space = value.indexOf(' ');
    // A payload type has at most three digits.
    if (space < 1 || space > 3) {
      continue;
    }
    const type = value.slice(0, space);
    const values = found.get(type);
    if (values === undefined) {
      found.set(type, [value.slice(space + 1).trim()]);
    } else {
      values.push(value.slice(space + 1).trim());
    }
  }
  return found;
}

function parseCodecs(formats: readonly string[], attributes: Attributes): OfferedCodec[] {
  const names = byFormat(attributes, 'rtpmap');
  const parameters = byFormat(attributes, 'fmtp');
  const feedback = byFormat(attributes, 'rtcp-fb');
  const forAll = new Set(feedback.get('*'));
  const codecs: OfferedCodec[] = [];
  for (const format of formats) {
    const payloadType = Number(format);
    const rtpmap = names.get(format)?.[0];
    if (!/^\d{1,3}$/.test(format) || payloadType > 127 || rtpmap === undefined) {
      continue;
    }
    // RFC 5761 section 4: with rtcp-mux, types 64 to 95 cannot be told from RTCP.
    if (payloadType >= 64 && payloadType <= 95) {
      continue;
    }
    // The same type may be written as 8 and as 008.
    if (codecs.some((codec) => codec.payloadType === payloadType)) {
      continue;
    }
    const [encoding = '', rate = ''] = rtpmap.toLowerCase().split('/', 2);
    const name = CODECS.find((known) => known === encoding);
    if (name === undefined || rate !== (name === 'opus' ? '48000' : '90000')) {
      continue;
    }
    const own = new Set(feedback.get(format));
    codecs.push({
      payloadType,
      name,
      parameters: parameters.get(format)?.[0] ?? '',
      feedback: FEEDBACK.filter((message) => forAll.has(message) || own.has(message)),
    });
  }
  return codecs;
}

function parseTransport(
  attributes: Attributes,
  inherited: OfferedTransport | undefined,
): OfferedTransport {
  return {
    ufrag: attributes.first('ice-ufrag') ?? inherited?.ufrag ?? '',
    password: attributes.first('ice-pwd') ?? inherited?.password ?? '',
    fingerprints: attributes.has('fingerprint')
      ? parseFingerprints(attributes)
      : (inherited?.fingerprints ?? []),
    setup: attributes.first('setup') ?? inherited?.setup ?? 'actpass',
  };
}

function parseFingerprints(attributes: Attributes): OfferedFingerprint[] {
  return attributes
    .all('fingerprint')
    .slice(0, MAX_FINGERPRINTS)
    .flatMap((value) => {
      const [name = '', digest = ''] = value.split(/\s+/, 2);
      const hash = name.toLowerCase().replace('-', '');
      return ['sha256', 'sha384', 'sha512'].includes(hash)
        ? [{ hash, value: digest.toUpperCase() }]
        : [];
    });
}
