// DTLS: a client that follows the protocol unless the input makes it deviate, so that all states
// are reached.
import assert from 'node:assert/strict';
import { createCertificate, fingerprintOf } from '../../../src/webrtc/dtls/certificate.ts';
import { DtlsServer } from '../../../src/webrtc/dtls/dtls-server.ts';
import { clientCertificate, DtlsClient, OP } from '../engine/dtls-client.ts';
import { readScript } from '../engine/script.ts';
import type { FuzzTarget } from '../engine/target.ts';

const FRAGMENTED = 16;

const server = createCertificate(Date.UTC(2026, 0, 1));
/** Longest answer to one datagram: a flight, or an alert. */
const MAX_ANSWER_BYTES = 2_000;

export const target: FuzzTarget = {
  maxBytes: 16 * 1024,
  // Both sides generate, exchange and verify keys.
  budget: { leastMs: 15, per64KiBMs: 20 },
  run(data) {
    const steps = readScript(data);
    // The offer has the fingerprint of whatever certificate the client sends.
    const certificate =
      steps.find(({ op, payload }) => (op & 15) === OP.certificate && payload.length > 0)
        ?.payload ?? clientCertificate.der;
    const other = new DtlsClient();
    let sentBytes = 0;
    let closings = 0;
    let connections = 0;
    const dtls = new DtlsServer(
      server,
      [{ hash: 'sha256', value: fingerprintOf(certificate, 'sha256') }],
      {
        send: (datagram) => {
          sentBytes += datagram.length;
          other.hear(datagram);
        },
        onConnected: () => {
          connections++;
        },
        onClosed: () => {
          closings++;
        },
        onData: () => {
          assert.ok(dtls.isConnected, 'data before the handshake was done');
        },
      },
    );
    let nowMs = 0;
    let last: Buffer[] = [];
    for (const step of steps) {
      const { op, payload } = step;
      const kind = op & 15;
      if (kind === OP.poll) {
        dtls.poll((nowMs += 100 * (payload[0] ?? 1)));
        sentBytes = 0;
        continue;
      }
      if (kind === OP.raw) {
        last = [Buffer.from(payload)];
      } else if (kind === OP.fragments) {
        last = [other.fragments(payload)];
      } else if (kind === OP.sealed) {
        last = [other.seal(payload[0] ?? 0, payload.subarray(1))];
      } else if (kind === OP.finished) {
        last = [other.finished(payload)];
      } else if (kind === OP.sealedMessage) {
        last = [other.sealedMessage(payload[0] ?? 0, payload.subarray(1))];
      } else if (kind !== OP.again) {
        last = other.plain(...other.body(step), (op & FRAGMENTED) !== 0);
      }
      for (const datagram of last) {
        sentBytes = 0;
        dtls.receive(datagram, nowMs++);
        assert.ok(sentBytes <= MAX_ANSWER_BYTES, `${sentBytes} bytes in answer to one datagram`);
      }
    }
    assert.ok(closings <= 1 && connections <= 1, 'onConnected or onClosed was called twice');
  },
};
