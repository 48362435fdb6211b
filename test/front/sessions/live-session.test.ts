// One live session without a network and without a worker thread: its messages, its timers, its
// end.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { MessageChannel } from 'node:worker_threads';
import { createLogger } from '../../../src/base/log.ts';
import { monotonicMs, sleep } from '../../../src/base/time.ts';
import { PcmIngress } from '../../../src/front/sessions/pcm-ingress.ts';
import { PeerToPeerLink } from '../../../src/front/sessions/session-link.ts';
import { LiveSession } from '../../../src/front/sessions/live-session.ts';
import { plainText } from '../../../src/front/sessions/server-messages.ts';
import { SocketTally } from '../../../src/front/sessions/session-meter.ts';
import type { SessionStatsReport, ToWorker } from '../../../src/link/messages.ts';
import { chromium } from '../../webrtc/sdp/offers.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';

const OFFER = JSON.stringify({ type: 'offer', sdp: 'v=0' });

const say = (session: LiveSession, text: string): void => {
  session.message(new TextEncoder().encode(text).buffer, false);
};

interface Started {
  readonly session: LiveSession;
  /** To the client. */
  readonly sent: string[];
  /** To the worker. */
  readonly posted: ToWorker[];
  /** Reasons given to `onEnd`. */
  readonly ends: string[];
}

const ANSWER = {
  type: 'answer',
  sessionId: 's',
  sdp: 'v=0',
  offerId: 0,
  audioMid: '0',
  videoMid: '1',
} as const;

/** A session whose client has `leftMs` left for its offer. */
function start(leftMs = 30_000): Started {
  const sent: string[] = [];
  const posted: ToWorker[] = [];
  const ends: string[] = [];
  const worker = {
    index: 0,
    attach: () => {},
    detach: () => {},
    post: (message: ToWorker) => {
      posted.push(message);
    },
  };
  const face = { faceId: 'ava', bytes: new SharedArrayBuffer(64) };
  const session = new LiveSession({
    id: 's',
    worker,
    log: createLogger('silent'),
    openedMs: monotonicMs() - 30_000 + leftMs,
    link: new PeerToPeerLink('d'),
    client: {
      send: (message) => {
        sent.push(plainText(message)!);
      },
      end: () => {},
    },
    conversation: undefined,
    loadFace: () => Promise.resolve(face.bytes),
    ingress: new PcmIngress(),
    tally: new SocketTally(new Metrics()),
    step: () => {},
    onEnd: (_session, reason) => {
      ends.push(reason);
    },
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
  return { session, sent, posted, ends };
}

const stall = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

test('an offer that arrived during a stall is in time; without an offer the session ends', async () => {
  const { port1, port2 } = new MessageChannel();
  await new Promise((resolve) => {
    setImmediate(resolve);
  }); // from here on timers run first, then messages
  const offered = start(50);
  const silent = start(50);
  port2.on('message', () => {
    say(offered.session, OFFER);
  });
  port1.postMessage('');
  stall(200);
  await sleep(50);
  port1.close();
  assert.deepEqual(silent.sent, ['ERROR OFFER_TIMEOUT']);
  assert.doesNotMatch(offered.sent.join(), /OFFER_TIMEOUT/);
  assert.equal(
    silent.posted.some(({ type }) => type === 'close'),
    true,
  );
  offered.session.end('client_closed');
});

test('from offer to media the client is told each step; a further offer is of the same peer', () => {
  const { session, sent, posted, ends } = start();
  say(session, JSON.stringify({ type: 'offer', sdp: chromium }));
  say(session, JSON.stringify({ type: 'offer', sdp: chromium }));
  assert.deepEqual(
    posted.map(({ type }) => type),
    ['open', 'offer', 'offer'],
  );
  assert.deepEqual(
    posted.flatMap((message) => (message.type === 'offer' ? [message.spec.isNewPeer] : [])),
    [true, false],
  );
  assert.equal(session.phase, 'answering');
  session.receive(ANSWER);
  session.receive({ type: 'connected', sessionId: 's', iceMs: monotonicMs(), atMs: monotonicMs() });
  session.receive({ type: 'speak', sessionId: 's' });
  assert.ok(session.isLive && session.isSpeaking);
  session.receive({ type: 'silent', sessionId: 's' });
  assert.ok(!session.isSpeaking);
  assert.deepEqual(
    sent.map((text) => /^\{"\w+"/.exec(text)?.[0] ?? text),
    ['{"sdp"', '{"destination"', '{"video_metadata"', 'START', 'SPEAK', 'SILENT'],
  );
  session.receive({ type: 'ended', sessionId: 's', reason: 'idle_limit' });
  session.receive({ type: 'ended', sessionId: 's', reason: 'done' });
  session.closed();
  say(session, 'ping');
  assert.deepEqual([sent.at(-1), ends], ['STOP idle_limit', ['idle_limit']], 'it ends once');
});

test('an unusable offer and DONE before an offer end the session with their messages', () => {
  const unusable = start();
  say(unusable.session, OFFER);
  assert.match(unusable.sent.join(), /^ERROR INVALID_OFFER ./);
  assert.deepEqual(unusable.ends, ['invalid_offer']);
  const done = start();
  say(done.session, 'DONE');
  assert.deepEqual([done.sent, done.ends], [['STOP'], ['done']]);
});

test('an error of the worker is sent at the end instead of the usual message', () => {
  const { session, sent } = start();
  const error = { code: 'INVALID_OFFER', message: 'No codec in common.' } as const;
  session.receive({ type: 'failed', sessionId: 's', error, reason: 'invalid_offer' });
  session.receive({ type: 'ended', sessionId: 's', reason: 'invalid_offer' });
  assert.deepEqual(sent, ['ERROR INVALID_OFFER No codec in common.']);
});

test('each request for statistics gets its own answer; without an answer there are none', async () => {
  const { session, posted } = start();
  const answered = session.stats();
  const unanswered = session.stats(20);
  const requests = posted.filter((message) => message.type === 'stats');
  assert.equal(new Set(requests.map(({ requestId }) => requestId)).size, 2);
  const stats = { codec: 'vp8' } as unknown as SessionStatsReport;
  const { requestId } = requests[0]!;
  session.receive({ type: 'stats', sessionId: 's', requestId, stats });
  assert.equal(await answered, stats);
  assert.equal(await unanswered, undefined);
  const atTheEnd = session.stats();
  session.end('server_stopped');
  assert.equal(await atTheEnd, undefined);
  assert.equal(await session.stats(), undefined);
});

test('speech beyond the backlog is dropped, and the client is told at most once a second', () => {
  const { session, sent } = start();
  const minute = new ArrayBuffer(60 * 16_000 * 2);
  for (let i = 0; i < 12; i++) {
    session.message(minute, true);
  }
  assert.equal(sent.filter((text) => text === 'ACK').length, 12);
  assert.deepEqual(
    sent.filter((text) => text !== 'ACK'),
    ['RATE audio_backlog_full'],
  );
  session.end('client_closed');
});
