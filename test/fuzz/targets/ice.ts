// Full ICE, as towards an SFU: candidates, checks from several addresses, answers to ours, restarts,
// time. Asserts what is sent, what is kept, and where media goes.
import assert from 'node:assert/strict';
import { IceAgent } from '../../../src/webrtc/ice/ice-agent.ts';
import type { IceHost } from '../../../src/webrtc/ice/ice.ts';
import {
  bindingRequest,
  bindingSuccess,
  newStunView,
  parseStun,
  roleConflict,
} from '../../../src/webrtc/ice/stun.ts';
import { parseCandidate } from '../../../src/webrtc/sdp/candidate.ts';
import { IceRegistry } from '../engine/ice-registry.ts';
import { readScript } from '../engine/script.ts';
import type { FuzzTarget } from '../engine/target.ts';

/** Low bits of a step's first byte. The others select an address. */
export const OP = {
  request: 0,
  answer: 1,
  conflict: 2,
  raw: 3,
  candidate: 4,
  wait: 5,
  restart: 6,
  media: 7,
} as const;
const MAX_PAIRS = 32;
const MAX_OPEN_CHECKS = 4;
const POLL_MS = 20;
const CONSENT_MS = 30_000;
/** A step is answered by a response and a check; a wait of one poll by one check. */
const MAX_SENDINGS = 4;

const view = newStunView();

/** The network, and what the other side knows. */
class Net extends IceRegistry implements IceHost {
  nowMs = 1_000;
  /** Checks of the agent, with their destination, the oldest first. */
  readonly checks: { readonly data: Buffer; readonly key: string }[] = [];
  readonly answeredMs = new Map<string, number>();
  sendings = 0;

  send(datagram: Buffer, length: number, address: string, port: number): void {
    const key = `${address}:${port}`;
    if ((datagram[0] ?? 0) >= 128) {
      const answeredMs = this.answeredMs.get(key) ?? Number.NEGATIVE_INFINITY;
      assert.ok(answeredMs > 0, 'media goes to an address that has never answered');
      return;
    }
    this.sendings++;
    const data = Buffer.from(datagram.subarray(0, length));
    assert.ok(parseStun(data, newStunView()), 'a malformed message was sent');
    if (data.readUInt16BE(0) === 1) {
      this.checks.push({ data, key });
    }
  }
}

const addressOf = (op: number): readonly [address: string, port: number] => [
  `192.0.2.${op >> 3}`,
  5_000,
];

export const target: FuzzTarget = {
  maxBytes: 8 * 1024,
  // Each step costs up to three HMACs, however short it is.
  budget: { leastMs: 20, per64KiBMs: 100 },
  run(data) {
    const net = new Net();
    let remote = { ufrag: 'them', password: 'a-password-of-enough-letters' };
    let restarts = 0;
    let id = 0;
    const agent = new IceAgent(net, () => {});
    agent.setRemote(remote);
    const receive = (message: Buffer, address: string, port: number): void => {
      if (!parseStun(message, view)) {
        return;
      }
      if (view.kind === 'request') {
        agent.onRequest(message, view, address, port, net.nowMs);
      } else if (view.kind !== 'indication') {
        agent.onResponse(message, view, address, port, net.nowMs);
      }
    };
    const answer = (op: number, first: number): void => {
      const check = net.checks.shift();
      if (check === undefined) {
        return;
      }
      const [address = '', port = ''] = check.key.split(/:(?=\d+$)/);
      const from = (first & 1) === 1 ? addressOf(op) : ([address, Number(port)] as const);
      // It counts if it comes from the address of the check, which the step may name too, and if
      // the check is still waited for: a restart forgets it.
      const isTrue =
        (op & 7) === OP.answer &&
        `${from[0]}:${from[1]}` === check.key &&
        net.expected.has(check.data.toString('latin1', 8, 20));
      const response =
        (op & 7) === OP.conflict
          ? roleConflict(check.data, remote.password)
          : bindingSuccess(check.data, address, Number(port), remote.password);
      if (isTrue) {
        net.answeredMs.set(check.key, net.nowMs);
      }
      receive(response, ...from);
    };
    const steps: Record<number, (op: number, payload: Buffer) => void> = {
      [OP.request]: (op, payload) => {
        const [first = 0, tie = 0] = payload;
        const own = Buffer.alloc(12);
        own.writeUInt32BE((first & 4) === 0 ? ++id : id, 0);
        const { ufrag, password } = agent.local;
        const role = (first & 1) === 0 ? 'controlling' : 'controlled';
        const check = { role, nominates: (first & 2) !== 0 } as const;
        const username = `${ufrag}:${remote.ufrag}`;
        receive(
          bindingRequest(own, username, password, Buffer.alloc(8, tie), check),
          ...addressOf(op),
        );
      },
      [OP.answer]: (op, payload) => {
        answer(op, payload[0] ?? 0);
      },
      [OP.conflict]: (op, payload) => {
        answer(op, payload[0] ?? 0);
      },
      [OP.raw]: (op, payload) => {
        receive(Buffer.from(payload), ...addressOf(op));
      },
      [OP.candidate]: (_op, payload) => {
        const candidate = parseCandidate(payload.toString('latin1'));
        const [third = 0, fourth = 0, priority = 0] = payload;
        const made = { address: `10.0.${third}.${fourth}`, port: 1, priority: priority + 1 };
        agent.addCandidate(candidate ?? made, net.nowMs);
      },
      [OP.wait]: (_op, payload) => {
        for (let polls = payload[0] ?? 0; polls >= 0; polls--) {
          net.sendings = 0;
          agent.poll((net.nowMs += POLL_MS));
          assert.ok(net.sendings <= 2, `${net.sendings} checks in one poll`);
        }
        net.nowMs += (payload[1] ?? 0) * 100;
      },
      [OP.restart]: () => {
        agent.restart();
        remote = { ...remote, ufrag: `them${++restarts}` };
        agent.setRemote(remote);
      },
      [OP.media]: () => {
        agent.sendMedia(Buffer.alloc(20, 0x80), 20);
        agent.checkSelected(net.nowMs);
        assert.ok(
          agent.hasConsent(net.nowMs) ||
            net.nowMs - (net.answeredMs.get(agent.selectedKey ?? '') ?? 0) > CONSENT_MS,
        );
      },
    };
    for (const { op, payload } of readScript(data)) {
      net.sendings = 0;
      steps[op & 7]?.(op, Buffer.from(payload));
      assert.ok(net.sendings <= MAX_SENDINGS, `${net.sendings} messages in one step`);
      assert.ok(net.expected.size <= (MAX_PAIRS + 1) * MAX_OPEN_CHECKS, 'too many open checks');
      assert.ok(net.claimed.size <= MAX_PAIRS + 1, 'too many addresses');
    }
    agent.close();
    assert.equal(net.expected.size, 0, 'checks are expected after the end');
    assert.equal(net.claimed.size, 0, 'addresses are claimed after the end');
  },
};
