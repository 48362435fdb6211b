// A real browser behind a network that loses and delays: no long freeze, sound almost whole and
// near the lips; and once the network is clean nothing is sent twice any more.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { PERFECT } from '../../bench/peers/impaired-relay.ts';
import type { TestBrowser } from '../harness/browser.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { closestLips, findMouth, locate } from '../harness/lipsync.ts';
import { patience } from '../harness/machine.ts';
import { Probe } from '../harness/probe.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { type Speech, synthesize } from '../harness/speech.ts';
import { sleep } from '../../src/base/time.ts';

const BAD = { ...PERFECT, lossPercent: 5, delayMs: 10, jitterMs: 50 };
const MAX_FREEZE_MS = 300;
/** Of the sound; without copies it is the 5 % that are lost. */
const MAX_CONCEALED = 0.025;
/**
 * Over a whole sentence. Measured -64 to +91 ms in 34 sentences: it is the difference of the
 * browser's two jitter buffers, which it evens out only from 30 ms on, and the sound's, grown at
 * the first jitter, shrinks by and by. Further off, our clocks would be wrong, or its reports of
 * them missing: 200 ms in one of them show as 149. On a machine with more to do than its cores can
 * the browser's buffer of sound grows further: 129 and 176 ms were seen.
 */
const MAX_SOUND_AHEAD_MS = 100;
const MAX_SOUND_BEHIND_MS = 120;
/** Nothing comes twice for STILL_MS, at most so long after the loss has ended. */
const FORGET_MS = 16_000;
const STILL_MS = 2000;
const NARROW_KBPS = 250;
const NARROW_MS = 11_000;
/**
 * Measured 0 to 1.4 s in 24 sentences, most without a freeze; up to 6 s while every packet was sent
 * twice into the queue that overflowed.
 */
const MAX_FROZEN_MS = 3_000;
const LOOK_MS = 6_000;
/**
 * Until so many packets came again. Chance decides how soon the loss is seen: nine in ten times
 * within 4 s, 99 in 100 within 7.
 */
const COPIES = 40;
const MOST_MS = 25_000;
/** Of mouth and what is said. Measured .77 to .79. */
const MIN_CORRELATION = 0.5;
/**
 * A browser that waits for a core puts pictures off, or stretches the sound, for a sentence. A
 * fault of ours is in each of them.
 */
const MAX_SENTENCES = 3;

interface Measured {
  /** How long the sound comes after the lips. */
  readonly lagMs: number;
  readonly correlation: number;
  readonly longestFreezeMs: number;
  /** The part of the sound that the browser made up. */
  readonly concealed: number;
  /** Packets that came again. */
  readonly copies: number;
}

let server: TestServer;
let browser: TestBrowser;
beforeAll(async () => {
  [server, browser] = await Promise.all([
    // The lips are measured in the picture, so the head stays still.
    startServer({ env: { MOTION: 'none' } }),
    openBrowser(),
  ]);
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

/** What a counter of the browser's report grew by. */
const grown = (from: any, to: any, of: (report: any) => number): number => of(to) - of(from);
const copies = ({ video }: any): number => video.retransmittedPacketsReceived ?? 0;

/** One sentence through a network that is bad already. */
async function speakOnBadNetwork(probe: Probe, speech: Speech): Promise<Measured> {
  const reports = [await probe.stats()];
  const sentMs = await probe.send(speech.pcm);
  const startMs = performance.now();
  const isSeen = (): boolean =>
    performance.now() - startMs > LOOK_MS && grown(reports[0], reports.at(-1), copies) > COPIES;
  for (; !isSeen() && performance.now() - startMs < MOST_MS; await sleep(100)) {
    reports.push(await probe.stats());
  }
  const [first, last] = [reports[0], reports.at(-1)];
  const silentMs = (await probe.waitFor('silent', sentMs)).atMs;
  await sleep(1000); // what is on its way is still to be shown
  const recording = await probe.take();
  const mouth = findMouth(
    recording,
    { fromMs: sentMs, toMs: silentMs },
    { fromMs: sentMs - 2000, toMs: sentMs },
  );
  const heardMs = recording.soundStartMs + locate(recording.sound, speech.pcm).sample / 16;
  const measured = {
    ...closestLips(recording, mouth, speech, heardMs),
    // The browser sums freezes up: looked at often enough, each is seen alone.
    longestFreezeMs: Math.max(
      ...reports
        .slice(1)
        .map(
          (report, n) =>
            1000 * grown(reports[n], report, ({ video }) => video.totalFreezesDuration),
        ),
    ),
    concealed:
      grown(first, last, ({ audio }) => audio.concealedSamples) /
      grown(first, last, ({ audio }) => audio.totalSamplesReceived),
    copies: grown(first, last, copies),
  };
  console.info(
    `sound behind lips ${measured.lagMs.toFixed(0)} ms (r ${measured.correlation.toFixed(2)}); ` +
      `longest freeze ${measured.longestFreezeMs.toFixed(0)} ms; ` +
      `${(100 * measured.concealed).toFixed(1)} % of the sound concealed; ${measured.copies} ` +
      `copies beside ${grown(first, last, ({ video }) => video.packetsReceived)} packets; ` +
      `${grown(first, last, ({ video }) => video.nackCount)} NACKs`,
  );
  return measured;
}

/** @throws AssertionError that names the first limit that was not held. */
function checkSentence(sentence: Measured): void {
  const { lagMs, correlation, longestFreezeMs, concealed } = sentence;
  assert.ok(
    longestFreezeMs <= MAX_FREEZE_MS * patience(),
    `the picture froze for ${longestFreezeMs.toFixed(0)} ms`,
  );
  assert.ok(
    concealed <= MAX_CONCEALED * patience(),
    `${(100 * concealed).toFixed(1)} % of the sound was made up`,
  );
  assert.ok(
    correlation > MIN_CORRELATION,
    `mouth and sound hardly go together (r ${correlation.toFixed(2)})`,
  );
  assert.ok(
    lagMs >= -MAX_SOUND_AHEAD_MS && lagMs <= MAX_SOUND_BEHIND_MS * Math.min(2, patience()),
    `the sound is ${lagMs.toFixed(0)} ms behind the lips`,
  );
  assert.ok(sentence.copies > COPIES, 'next to nothing was sent twice');
}

test(
  '5 % loss and 50 ms jitter: no freeze over 300 ms, little of the sound made up, near the ' +
    'lips; then it is forgotten',
  async (t) => {
    const speech = await synthesize(
      'Papa, pop a puppy up. Pepper, puppet, popper, paper, happy papa.',
    );
    const probe = await Probe.open(browser, server);
    const relay = await probe.throughRelay(PERFECT);
    await probe.connect();
    t.onTestFinished(() => {
      relay().close();
    });
    await sleep(1500);
    const clean = await probe.stats();
    assert.equal(copies(clean), 0, 'on a clean network nothing is sent twice');
    relay().impairment = BAD;
    await sleep(3000);
    for (let sentence = 1; ; sentence++) {
      const measured = await speakOnBadNetwork(probe, speech);
      try {
        checkSentence(measured);
        break;
      } catch (error) {
        if (sentence === MAX_SENTENCES) {
          throw error;
        }
        console.info(`again: ${(error as Error).message}`);
      }
    }
    relay().impairment = PERFECT;
    const deadline = performance.now() + FORGET_MS * patience();
    let again = Number.POSITIVE_INFINITY;
    while (again > 0 && performance.now() < deadline) {
      const before = await probe.stats();
      await sleep(STILL_MS);
      again = grown(before, await probe.stats(), copies);
    }
    assert.equal(again, 0, 'still sent twice on a network that is clean again');
    await probe.command('close');
    await probe.page.close();
  },
);

test('a link that narrows to 250 kbit/s amid a sentence: the picture is back soon, and flows', async (t) => {
  const speech = await synthesize(
    'Papa, pop a puppy up. Pepper, puppet, popper, paper, happy papa. Everybody knows ' +
      'that a paper puppet pops up, and so on, until the sentence has become long enough.',
  );
  const probe = await Probe.open(browser, server);
  const relay = await probe.throughRelay(PERFECT);
  await probe.connect();
  t.onTestFinished(() => {
    relay().close();
  });
  await sleep(1500);
  await probe.send(speech.pcm);
  await sleep(2000);
  const [wide, narrow] = [await probe.stats(), { ...PERFECT, rateKbps: NARROW_KBPS }];
  relay().impairment = narrow;
  await sleep(NARROW_MS - 3000);
  const settled = await probe.stats();
  await sleep(3000);
  const last = await probe.stats();
  const frozenMs = 1000 * grown(wide, last, ({ video }) => video.totalFreezesDuration);
  const kbps = (grown(settled, last, ({ video }) => video.bytesReceived) * 8) / 3000;
  const frames = grown(settled, last, ({ video }) => video.framesDecoded) / 3;
  console.info(
    `frozen for ${frozenMs.toFixed(0)} ms; then ${kbps.toFixed(0)} ` +
      `kbit/s, ${frames.toFixed(0)} frames a second`,
  );
  assert.ok(
    frozenMs <= MAX_FROZEN_MS * patience(),
    `the picture froze for ${frozenMs.toFixed(0)} ms`,
  );
  assert.ok(
    kbps < NARROW_KBPS && frames > 25 / patience(),
    `${kbps.toFixed(0)} kbit/s, ${frames.toFixed(0)} frames a second`,
  );
  await probe.command('close');
  await probe.page.close();
});
