// ICE candidates in SDP and in trickled messages (RFC 8839 section 5.1).
import { isIP, SocketAddress } from 'node:net';

/** A candidate of the other side that can be checked: UDP, with an IP address. */
export interface RemoteCandidate {
  /** In the form in which Node reports it. */
  readonly address: string;
  readonly port: number;
  readonly priority: number;
}

/** Longest candidate that is read. Browsers write about 150 characters. */
const MAX_CANDIDATE_CHARS = 512;
/** The fields of a candidate: foundation, component, transport, priority, address, port, type. */
const CANDIDATE =
  /^(?:a=)?(?:candidate:)?[\w+/-]{1,64} 1 udp (\d{1,10}) ([\da-f.:]{2,45}) (\d{1,5}) typ (?:host|srflx|prflx|relay)(?: |$)/i;

/**
 * Parses `candidate:…`, with or without `a=`.
 * @returns undefined if it cannot be used: malformed, TCP, another component than RTP, a host name
 * (mDNS), or an address that no single host has
 */
export function parseCandidate(line: string): RemoteCandidate | undefined {
  if (line.length > MAX_CANDIDATE_CHARS) {
    return undefined;
  }
  const [, priority = '', address = '', port = ''] = CANDIDATE.exec(line.trim()) ?? [];
  const family = isIP(address);
  if (family === 0 || !isUnicast(address)) {
    return undefined;
  }
  const candidate = {
    address: family === 4 ? address : new SocketAddress({ address, family: 'ipv6' }).address,
    port: Number(port),
    priority: Number(priority),
  };
  const isValid =
    candidate.port > 0 &&
    candidate.port < 65_536 &&
    candidate.priority > 0 &&
    candidate.priority < 2 ** 32;
  return isValid ? candidate : undefined;
}

/** Not unspecified, multicast or broadcast; not link-local in IPv6, which needs a zone. */
function isUnicast(address: string): boolean {
  if (address.includes(':')) {
    return !/^(?:[0:]+$|ff|fe[89ab])/i.test(address);
  }
  const first = Number(address.split('.', 1)[0]);
  return first > 0 && first < 224;
}
