// One peer from its offer to its end: checks from several addresses, responses to our checks, the
// handshake, media and time. Asserts what may be sent to which address.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { parseOffer } from '../../../src/webrtc/sdp/offer.ts';
import { createCertificate } from '../../../src/webrtc/dtls/certificate.ts';
import type { PeerHost } from '../../../src/webrtc/peer-host.ts';
import { RtcPeer } from '../../../src/webrtc/rtc-peer.ts';
import {
  bindingRequest,
  bindingSuccess,
  newStunView,
  parseStun,
  transactionId,
} from '../../../src/webrtc/ice/stun.ts';
import { chromium } from '../../webrtc/sdp/offers.ts';
import { clientCertificate, DtlsClient } from '../engine/dtls-client.ts';
import { IceRegistry } from '../engine/ice-registry.ts';
import { readScript } from '../engine/script.ts';
import type { FuzzTarget } from '../engine/target.ts';

/** Low half of a step's first byte. The high half selects one of the client's addresses. */
export const OP = {
  request: 0,
  respond: 1,
  misdirect: 2,
  raw: 3,
  wait: 4,
  handshake: 5,
  data: 6,
  frame: 7,
  datagram: 8,
} as const;
/** The client's handshake, one step at a time, as the operations of `dtls`. */
const MESSAGES = [1, 2, 3, 4] as const;
const MAX_ADDRESSES = 16;
/** Time for which a response is valid (RFC 7675). */
const CONSENT_MS = 30_000;
const MAX_AMPLIFICATION = 3;

const certificate = createCertificate(Date.UTC(2026, 0, 1));
const [PASSWORD, UFRAG] = ['n4h2kkjwaG70jN25aVTHMqZn', 'St7l'];
const offer = parseOffer(
  chromium.replaceAll(
    /a=fingerprint:\S+ \S+/g,
    `a=fingerprint:sha-256 ${clientCertificate.fingerprint}`,
  ),
);
const frame = Buffer.alloc(1000, 0x30);
const view = newStunView();

/** The endpoint and the network: counts what each address sent and received. */
class Net extends IceRegistry implements PeerHost {
  readonly certificate = certificate;
  readonly candidates = [{ address: '192.0.2.1', port: 40_000 }];
  readonly wallOffsetMs = 1_700_000_000_000;
  nowMs = 1000;
  isOver = false;
  readonly received = new Map<number, number>();
  readonly sent = new Map<number, number>();
  readonly answeredMs = new Map<number, number>();
  /** Our checks that the client received, with the port that they were sent to. */
  readonly checks: { readonly port: number; readonly data: Buffer }[] = [];
  readonly client = new DtlsClient();
  readonly #buffer = Buffer.alloc(2048);

  nextBuffer(): Buffer {
    return this.#buffer;
  }

  send(datagram: Buffer, length: number, _address: string, port: number): void {
    assert.ok(!this.isOver, 'a datagram was sent after the end');
    const isValidated =
      this.nowMs - (this.answeredMs.get(port) ?? Number.NEGATIVE_INFINITY) <= CONSENT_MS;
    if (!isValidated) {
      const sent = (this.sent.get(port) ?? 0) + length;
      this.sent.set(port, sent);
      assert.ok(
        sent <= MAX_AMPLIFICATION * (this.received.get(port) ?? 0),
        'the amplification limit is exceeded',
      );
      assert.ok((datagram[0] ?? 0) < 128, 'media was sent to an address that is not validated');
    }
    const copy = Buffer.from(datagram.subarray(0, length));
    if ((copy[0] ?? 0) < 4 && copy[1] === 1 && copy[0] === 0) {
      this.checks.push({ port, data: copy });
    } else if ((copy[0] ?? 0) >= 20 && (copy[0] ?? 0) < 64) {
      this.client.hear(copy);
    }
  }

  socketAddress(address: string): string {
    return address;
  }
  renameUfrag(): void {
    /* checks are not routed by name */
  }
  forget(): void {
    /* nothing is kept by name */
  }
  reject(): void {
    /* counted elsewhere */
  }
  now(): number {
    return this.nowMs;
  }
  onPeerError(error: unknown): void {
    throw error;
  }
}

export const target: FuzzTarget = {
  maxBytes: 8 * 1024,
  budget: { leastMs: 30, per64KiBMs: 40 },
  async run(data) {
    const net = new Net();
    let closings = 0;
    const peer = new RtcPeer(
      net,
      { sessionId: 'fuzz', minBitrateKbps: 150, maxBitrateKbps: 1500 },
      {
        onConnected: () => {
          assert.equal(closings, 0);
        },
        onClosed: () => {
          closings++;
          net.isOver = true;
        },
        onKeyFrameRequest: () => {},
        onTargetBitrate: () => {},
        onAudio: () => {},
      },
    );
    const answer = await peer.answer(offer);
    const password = /a=ice-pwd:(\S+)/.exec(answer)?.[1] ?? '';
    const steps = readScript(data);
    let message = 0;
    for (const { op, payload } of steps) {
      const port = 1 + ((op >> 4) % MAX_ADDRESSES);
      const arrive = (datagram: Buffer): void => {
        if (!net.isOver) {
          receive(datagram, port);
        }
      };
      net.nowMs++;
      switch (op & 15) {
        case OP.request:
          arrive(request(payload, password, peer.ufrag));
          break;
        case OP.respond: {
          const check = net.checks.findLast((each) => each.port === port);
          if (check) {
            respond(check.data, port);
          }
          break;
        }
        case OP.misdirect: {
          const check = net.checks.at(-1 - (payload[0] ?? 0));
          if (check) {
            respond(check.data, port);
          }
          break;
        }
        case OP.wait:
          for (let tick = 0; tick < Math.min(40, payload[0] ?? 1) && !net.isOver; tick++) {
            net.nowMs += 250;
            peer.poll(net.nowMs);
          }
          break;
        case OP.handshake:
          for (let count = 1 + ((payload[0] ?? 0) % 6); count > 0; count--) {
            const next = MESSAGES[message];
            message++;
            if (next !== undefined) {
              for (const record of net.client.plain(
                ...net.client.body({ op: next, payload: Buffer.alloc(0) }),
                false,
              )) {
                arrive(record);
              }
            } else if (message === MESSAGES.length + 1) {
              arrive(net.client.finished(Buffer.alloc(0)));
            }
          }
          break;
        case OP.data:
          arrive(net.client.seal(payload[0] ?? 0, payload.subarray(1)));
          break;
        case OP.frame:
          peer.sendVideo(frame, frame.length, true, net.nowMs, net.nowMs);
          break;
        default:
          arrive(Buffer.from(payload));
      }
    }
    await peer.close();
    assert.ok(closings <= 1, 'onClosed was called twice');
    assert.deepEqual(
      [net.claimed.size, net.expected.size],
      [0, 0],
      'a closed peer left routes behind',
    );

    /** Demultiplexes as the endpoint does (RFC 7983). */
    function receive(datagram: Buffer, port: number): void {
      const first = datagram[0] ?? 255;
      const key = `192.0.2.7:${port}`;
      const count = (): void => {
        net.received.set(port, (net.received.get(port) ?? 0) + datagram.length);
      };
      if (first < 4) {
        count();
        if (!parseStun(datagram, view)) {
          return;
        }
        if (view.kind === 'request') {
          peer.onStunRequest(datagram, view, '192.0.2.7', port, net.nowMs);
        } else if (net.expected.has(transactionId(datagram).toString('latin1'))) {
          peer.onStunResponse(datagram, view, '192.0.2.7', port, net.nowMs);
        }
      } else if (net.claimed.has(key)) {
        count();
        if (first >= 20 && first < 64) {
          peer.onDtls(datagram, key, net.nowMs);
        } else if (datagram.length >= 8 && first >= 128 && first < 192) {
          if ((datagram[1] ?? 0) >= 192 && (datagram[1] ?? 0) <= 223) {
            peer.onRtcp(datagram, net.nowMs);
          } else {
            peer.onRtp(datagram, net.nowMs);
          }
        }
      }
    }

    function respond(check: Buffer, port: number): void {
      const response = bindingSuccess(check, '192.0.2.1', 40_000, PASSWORD);
      const id = transactionId(check).toString('latin1');
      const isRight =
        net.expected.has(id) &&
        net.checks.some((each) => each.port === port && each.data === check);
      if (isRight && !net.isOver) {
        net.answeredMs.set(port, net.nowMs);
      }
      if (!net.isOver) {
        receive(response, port);
      }
    }
  },
};

/**
 * A check of the client: the first byte selects its transaction id, bit 0 of the second nominates.
 */
function request(payload: Buffer, password: string, ufrag: string): Buffer {
  const id = Buffer.alloc(12, payload[0] ?? 0);
  const plain = bindingRequest(id, `${ufrag}:${UFRAG}`, password, Buffer.alloc(8));
  return ((payload[1] ?? 0) & 1) === 0 ? plain : nominating(id, `${ufrag}:${UFRAG}`, password);
}

/** Rebuilds the message, as USE-CANDIDATE must come before MESSAGE-INTEGRITY. */
function nominating(id: Buffer, username: string, password: string): Buffer {
  const attributes = bindingRequest(id, username, password, Buffer.alloc(8)).subarray(20, -32);
  const body = Buffer.concat([attributes, Buffer.from([0, 0x25, 0, 0])]);
  const head = Buffer.alloc(20);
  head.writeUInt16BE(1, 0);
  head.writeUInt16BE(body.length + 24, 2);
  head.writeUInt32BE(0x2112a442, 4);
  id.copy(head, 8);
  const covered = Buffer.concat([head, body]);
  const integrity = createHmac('sha1', password).update(covered).digest();
  return Buffer.concat([covered, Buffer.from([0, 8, 0, 20]), integrity]);
}
