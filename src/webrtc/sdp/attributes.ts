// The attributes of an SDP that are used: of the session or of one section.

/** The directions of a section. */
export const DIRECTIONS = ['sendrecv', 'sendonly', 'recvonly', 'inactive'] as const;
/** Direction of a section, from the writer's point of view (RFC 8866 section 6.7). */
export type Direction = (typeof DIRECTIONS)[number];

/** The attributes that are used. Others are not stored. */
const USED_ATTRIBUTES = new Set<string>([
  ...DIRECTIONS,
  'bundle-only',
  'candidate',
  'extmap',
  'fingerprint',
  'fmtp',
  'group',
  'ice-lite',
  'ice-pwd',
  'ice-ufrag',
  'max-message-size',
  'mid',
  'rtcp-fb',
  'rtcp-mux',
  'rtcp-rsize',
  'rtpmap',
  'sctp-port',
  'setup',
]);

/** The attributes of the session or of one section: name -> values, in order. */
export class Attributes {
  readonly #values = new Map<string, string[]>();

  add(line: string): void {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    if (!USED_ATTRIBUTES.has(name)) {
      return;
    }
    const value = colon < 0 ? '' : line.slice(colon + 1).trim();
    const values = this.#values.get(name);
    if (values === undefined) {
      this.#values.set(name, [value]);
    } else {
      values.push(value);
    }
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }
  first(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }
  has(name: string): boolean {
    return this.#values.has(name);
  }
}
