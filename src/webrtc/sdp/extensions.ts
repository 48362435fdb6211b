// RTP header extensions in SDP (RFC 8285).
import type { Attributes } from './attributes.ts';

/** Longest mid that a one-byte header extension can carry (RFC 8285 section 4.2). */
const MAX_MID_BYTES = 16;

/** The header extensions that are used. */
export const EXTENSION_URI = {
  mid: 'urn:ietf:params:rtp-hdrext:sdes:mid',
  absSendTime: 'http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time',
  playoutDelay: 'http://www.webrtc.org/experiments/rtp-hdrext/playout-delay',
  audioLevel: 'urn:ietf:params:rtp-hdrext:ssrc-audio-level',
} as const;
/** Our name of a header extension. */
export type ExtensionName = keyof typeof EXTENSION_URI;

/** An offered header extension; `name`: undefined if it is not used. */
export interface Extension {
  readonly name: ExtensionName | undefined;
  readonly id: number;
}

/** The offered header extensions: each id once, with its first URI, so 14 at most. */
export function parseExtensions(attributes: Attributes): Extension[] {
  const found = new Map<number, Extension>();
  for (const value of attributes.all('extmap')) {
    const match = /^(\d{1,3})(?:\/[a-z]+)? (\S+)/.exec(value);
    const id = Number(match?.[1]);
    // Ids above 14 need the two-byte form, which not every client supports.
    if (match === null || !(id >= 1 && id <= 14) || found.has(id)) {
      continue;
    }
    found.set(id, { id, name: EXTENSION_NAMES.find((name) => EXTENSION_URI[name] === match[2]) });
  }
  return [...found.values()];
}

const EXTENSION_NAMES = Object.keys(EXTENSION_URI) as ExtensionName[];

/** The ids of the extensions that are used. The first use of an id counts. */
export function chooseExtensions(
  offered: readonly Extension[],
  mid: string,
): Record<ExtensionName, number> {
  const chosen = { mid: 0, absSendTime: 0, playoutDelay: 0, audioLevel: 0 };
  const taken = new Set<number>();
  for (const { name, id } of offered) {
    if (taken.has(id)) {
      continue;
    }
    taken.add(id);
    if (name !== undefined && (name !== 'mid' || mid.length <= MAX_MID_BYTES)) {
      chosen[name] = id;
    }
  }
  return chosen;
}
