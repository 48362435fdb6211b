// Micro bench of the transport: one second of a peer's media from coded frame to socket, its parts,
// and what a join costs the server.
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createCertificate, fingerprintOf } from '../../src/webrtc/dtls/certificate.ts';
import { DtlsServer } from '../../src/webrtc/dtls/dtls-server.ts';
import { MediaSender } from '../../src/webrtc/rtp/media-sender.ts';
import { newMediaStats } from '../../src/webrtc/rtp/media-stats.ts';
import { planAnswer } from '../../src/webrtc/sdp/answer.ts';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { saltBytes, SrtpSender, type SrtpProfile } from '../../src/webrtc/srtp/srtp.ts';
import { LyingClient } from '../../test/harness/dtls-client.ts';
import * as offers from '../../test/webrtc/sdp/offers.ts';
import { measure, quantile, report } from '../harness.ts';

const PEERS = 20,
  FRAMES = 30,
  FRAME_BYTES = 2_500,
  OPUS_PACKETS = 50,
  OPUS_BYTES = 80; // 600 kbit/s video, 32 kbit/s sound
const frame = randomBytes(FRAME_BYTES),
  opus = randomBytes(OPUS_BYTES);

const listen = async (): Promise<ReturnType<typeof createSocket>> => {
  const socket = createSocket({
    type: 'udp4',
    lookup: (host, _options, callback) => {
      callback(null, host, 4);
    },
  });
  await new Promise<void>((resolve) => {
    socket.bind(0, '127.0.0.1', resolve);
  });
  return socket;
};
const sender = await listen();
// Never read: the kernel drops what does not fit, so that receiving is not measured.
const sink = await listen();
const { port } = sink.address();
const buffers = Array.from({ length: 64 }, () => Buffer.alloc(2_048));
let turn = 0;
const nextBuffer = (): Buffer => buffers[(turn = (turn + 1) % buffers.length)]!;
const toSocket = (datagram: Buffer, length: number): void => {
  sender.send(datagram, 0, length, port, '127.0.0.1');
};
const plan = planAnswer(parseOffer(offers.chromium));

/**
 * Peers that send a second of media a call, turn by turn, so that caches are as cold as with many
 * sessions.
 */
function mediaCase(
  name: string,
  profile: SrtpProfile,
  sendDatagram: (datagram: Buffer, length: number) => void,
  crypto = true,
): { name: string; run: (round: number) => Promise<void> } {
  const peers = Array.from({ length: PEERS }, () => {
    const peer = new MediaSender(
      plan,
      { minBitrateKbps: 150, maxBitrateKbps: 1_500, wallOffsetMs: 0, cname: 'bench' },
      { onKeyFrameRequest() {}, onTargetBitrate() {} },
      newMediaStats(),
      nextBuffer,
      sendDatagram,
    );
    const srtp = new SrtpSender(profile, randomBytes(16), randomBytes(saltBytes(profile)));
    if (!crypto) {
      srtp.protectRtp = (plain) => plain.length;
    }
    peer.start(srtp, 0);
    return peer;
  });
  return {
    name,
    run: async (round) => {
      const peer = peers[round % PEERS]!;
      const startMs = Math.floor(round / PEERS) * 1_000;
      for (let index = 0; index < FRAMES; index++) {
        peer.sendVideo(
          frame,
          FRAME_BYTES,
          index === 0,
          startMs + (index * 1_000) / FRAMES,
          startMs + (index * 1_000) / FRAMES,
        );
      }
      for (let index = 0; index < OPUS_PACKETS; index++) {
        peer.sendAudio(opus, OPUS_BYTES, startMs + index * 20, startMs + index * 20, false);
      }
      peer.poll(startMs + 1_000);
      await new Promise(setImmediate); // let the socket finish its sends, which is work of this thread too
    },
  };
}

report(
  `one peer, one second (${FRAMES * Math.ceil(FRAME_BYTES / 1_160) + OPUS_PACKETS} packets)`,
  await measure(
    [
      mediaCase('packets, AES-GCM, socket', 7, toSocket),
      mediaCase('packets, AES-CM + HMAC-SHA1, socket', 1, toSocket),
      mediaCase('packets, AES-GCM', 7, () => {}),
      mediaCase('packets alone', 7, () => {}, false),
    ],
    { budgetMs: 4_000 },
  ),
);

// The client's own cryptography must not count, so a join is timed around the server's part alone.
const own = createCertificate(Date.now()),
  client = createCertificate(Date.now());
const fingerprints = [{ hash: 'sha256', value: fingerprintOf(client.der, 'sha256') }];
const joins: number[] = [];
for (let round = 0; round < 300; round++) {
  const sent: Buffer[] = [];
  let spentMs = 0;
  let isConnected = false;
  const timed = (run: () => void): void => {
    const startMs = performance.now();
    run();
    spentMs += performance.now() - startMs;
  };
  timed(() => {
    planAnswer(parseOffer(offers.chromium));
  });
  const server = new DtlsServer(own, fingerprints, {
    send: (datagram) => {
      sent.push(datagram);
    },
    onConnected: () => {
      isConnected = true;
    },
    onClosed: () => {},
    onData: () => {},
  });
  const dtls = new LyingClient(client);
  for (const datagram of dtls.hello()) {
    timed(() => {
      server.receive(datagram, 0);
    });
  }
  for (const datagram of dtls.respond(sent)) {
    timed(() => {
      server.receive(datagram, 0);
    });
  }
  if (!isConnected) {
    throw new Error('the handshake failed');
  }
  joins.push(spentMs);
}
const medianMs = quantile(joins, 0.5);
report("join: offer and DTLS handshake, server's side", [
  {
    name: 'join',
    medianMs,
    p10Ms: quantile(joins, 0.1),
    p90Ms: quantile(joins, 0.9),
    ratio: 1,
    operations: joins.length,
  },
]);
sender.close();
sink.close();
