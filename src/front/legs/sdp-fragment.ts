// The bodies of PATCH in WHEP: fragments of SDP with ICE credentials and candidates (RFC 8840
// section 9), and what of them goes into an offer.
import { type RemoteCandidate, parseCandidate } from '../../webrtc/sdp/candidate.ts';

/** Credentials and candidates of one side. */
export interface SdpFragment {
  /** Undefined: the fragment names none. */
  readonly ufrag: string | undefined;
  readonly password: string | undefined;
  readonly candidates: readonly RemoteCandidate[];
}

/** Candidate lines that are read of one fragment. */
const MAX_CANDIDATES = 64;
// RFC 8839 section 5.4: ice-char, of which there are 4 to 256 and 22 to 256.
const UFRAG = /^a=ice-ufrag:([\w+/-]{4,256})$/;
const PASSWORD = /^a=ice-pwd:([\w+/-]{22,256})$/;
const CREDENTIALS = /^a=ice-(?:ufrag|pwd):/;
const CANDIDATE = /^a=(?:candidate:|end-of-candidates)/;

const linesOf = (sdp: string): string[] => sdp.split(/\r\n|\n/);

/** Reads a fragment. Lines that it need not have are skipped. */
export function parseFragment(text: string): SdpFragment {
  let ufrag: string | undefined;
  let password: string | undefined;
  const candidates: RemoteCandidate[] = [];
  for (const line of linesOf(text)) {
    ufrag ??= UFRAG.exec(line)?.[1];
    password ??= PASSWORD.exec(line)?.[1];
    if (line.startsWith('a=candidate:') && candidates.length < MAX_CANDIDATES) {
      const candidate = parseCandidate(line);
      if (candidate !== undefined) {
        candidates.push(candidate);
      }
    }
  }
  return { ufrag, password, candidates };
}

/** The fragment of an SDP answer: credentials, and the candidates of its first section. */
export function fragmentOf(answer: string): string {
  const lines = linesOf(answer);
  const first = lines.findIndex((line) => line.startsWith('m='));
  const next = lines.findIndex((line, index) => index > first && line.startsWith('m='));
  const section = lines.slice(first, next < 0 ? undefined : next);
  const credentials = [...new Set(lines.filter((line) => CREDENTIALS.test(line)))];
  return [
    ...lines.filter((line) => line.startsWith('a=ice-options:')).slice(0, 1),
    ...credentials,
    section[0] ?? '',
    ...section.filter((line) => line.startsWith('a=mid:') || CANDIDATE.test(line)),
    '',
  ].join('\r\n');
}

/** The ufrag of the first section of an offer; undefined: it has none. */
export const ufragOf = (offer: string): string | undefined => parseFragment(offer).ufrag;

/** The offer as it would be after a restart of ICE: with these credentials, without candidates. */
export const withCredentialsOf = (offer: string, ufrag: string, password: string): string =>
  linesOf(offer)
    .filter((line) => !CANDIDATE.test(line))
    .map((line) =>
      line.startsWith('a=ice-ufrag:')
        ? `a=ice-ufrag:${ufrag}`
        : line.startsWith('a=ice-pwd:')
          ? `a=ice-pwd:${password}`
          : line,
    )
    .join('\r\n');
