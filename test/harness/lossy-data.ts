// Loses a share of the datagrams that carry data channels, on both ways, once media is connected.
import type { Endpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer } from '../../src/webrtc/peer.ts';
import type { PeerHost, RoutedPeer } from '../../src/webrtc/peer-host.ts';

/** First byte of a DTLS record with application data. */
const APPLICATION_DATA = 23;

/** Numbers from 0 to 1, the same in each run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** @returns how many datagrams were lost so far */
export function loseData(endpoint: Endpoint, peer: Peer, share: number): () => number {
  const host = endpoint as unknown as Pick<PeerHost, 'send'>;
  const routed = peer as unknown as Pick<RoutedPeer, 'onDtls'>;
  const send = host.send.bind(host);
  const onDtls = routed.onDtls.bind(routed);
  const random = randomFrom(11);
  let lost = 0;
  const isLost = (datagram: Buffer): boolean => {
    const loses = datagram[0] === APPLICATION_DATA && random() < share;
    lost += loses ? 1 : 0;
    return loses;
  };
  host.send = (datagram, length, address, port) => {
    if (!isLost(datagram)) {
      send(datagram, length, address, port);
    }
  };
  routed.onDtls = (data, key, nowMs) => {
    if (!isLost(data)) {
      onDtls(data, key, nowMs);
    }
  };
  return () => lost;
}
