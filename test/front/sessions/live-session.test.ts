// One session in the front, without a network: what it makes of time.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { MessageChannel } from 'node:worker_threads';
import { createLogger } from '../../../src/base/log.ts';
import { monotonicMs, sleep } from '../../../src/base/time.ts';
import { PcmIngress } from '../../../src/front/sessions/pcm-ingress.ts';
import { LiveSession } from '../../../src/front/sessions/live-session.ts';
import { SocketTally } from '../../../src/front/sessions/session-meter.ts';
import type { ToWorker } from '../../../src/link/messages.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';

const OFFER = JSON.stringify({ type: 'offer', sdp: 'v=0' });

/** A session whose client has `leftMs` left for its offer. */
function start(leftMs: number): {
  session: LiveSession;
  sent: string[];
  posted: ToWorker['type'][];
} {
  const sent: string[] = [];
  const posted: ToWorker['type'][] = [];
  const worker = {
    attach: () => {},
    detach: () => {},
    post: ({ type }: ToWorker) => {
      posted.push(type);
    },
  };
  const face = { faceId: 'ava', bytes: new SharedArrayBuffer(1) };
  const session = new LiveSession({
    id: 's',
    worker,
    log: createLogger('silent'),
    openedMs: monotonicMs() - 30_000 + leftMs,
    destination: 'd',
    socket: {
      send: (text) => {
        sent.push(text);
        return true;
      },
      end: () => {},
    },
    ingress: new PcmIngress(),
    tally: new SocketTally(new Metrics()),
    step: () => {},
    onEnd: () => {},
    spec: {
      face,
      emotion: 0,
      renderer: 'rig',
      handleSilence: true,
      startFrame: 0,
      maxIdleMs: 1000,
      maxLengthMs: 1000,
    },
  });
  return { session, sent, posted };
}

const stall = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

test('an offer that came in while this thread stood still is in time; without one the session ends', async () => {
  const { port1, port2 } = new MessageChannel();
  await new Promise((resolve) => {
    setImmediate(resolve);
  }); // from here timers are next, then what came in
  const offered = start(50);
  const silent = start(50);
  port2.on('message', () => {
    offered.session.message(new TextEncoder().encode(OFFER).buffer, false);
  });
  port1.postMessage('');
  stall(200);
  await sleep(50);
  port1.close();
  assert.deepEqual(silent.sent, ['ERROR OFFER_TIMEOUT']);
  assert.doesNotMatch(offered.sent.join(), /OFFER_TIMEOUT/);
  assert.equal(silent.posted.includes('close'), true);
  offered.session.end('client_closed');
});
