// What commands and limits do, as a real browser sees it: interrupt, replace, finish, silence,
// gaps, limits, and the microphone.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { startBrowser, type TestBrowser } from '../harness/browser.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { envelope, findMouth, lastMotion, locate, motion } from '../harness/lipsync.ts';
import { patience } from '../harness/machine.ts';
import { type ConnectOptions, framesBetween, Probe, type Recording } from '../harness/probe.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { until } from '../harness/until.ts';
import { concat, OUT, silence, synthesize, toWav, trim } from '../harness/speech.ts';
import { sleep } from '../../src/base/time.ts';

const LONG =
  'This is a rather long sentence about nothing in particular, which goes on and on, so ' +
  'that somebody may interrupt it in the middle, or replace it by another.';
const SHORT = 'Now something else entirely.';

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

async function withSession(
  options: ConnectOptions,
  body: (probe: Probe) => Promise<void>,
): Promise<void> {
  const probe = await Probe.open(browser, server);
  try {
    await probe.connect(options);
    await body(probe);
  } finally {
    await probe.page.close();
  }
}

/** When sound above hearing begins, first and last, in milliseconds. */
function soundsBetween(sound: Int16Array): { first: number; last: number } {
  const loud = envelope(sound);
  const isHeard = (value: number): boolean => value > Math.sqrt(150);
  return { first: 5 * loud.findIndex(isHeard), last: 5 * loud.findLastIndex(isHeard) };
}

/** When the last sound above hearing began, on the page's clock. */
const lastSoundMs = ({ sound, soundStartMs }: Recording): number =>
  soundStartMs + soundsBetween(sound).last;

/** From the first sound above hearing to the last. */
function soundMs(sound: Int16Array): number {
  const { first, last } = soundsBetween(sound);
  return last - first;
}

const middle = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1]!;

const rounded = (values: readonly number[]): string =>
  values.map((value) => value.toFixed(0)).join(', ');

const countOf = (recording: Recording, name: string): number =>
  recording.events.filter((event) => event.name === name).length;

test('SKIP stops lips and sound within 100 ms, and forgets what was not yet said', async () => {
  const { pcm } = await synthesize(LONG);
  await withSession({}, async (probe) => {
    const cuts: { sentMs: number; skipMs: number; silentMs: number; recording: Recording }[] = [];
    for (let round = 0; round < 3; round++) {
      await sleep(1500);
      const sentMs = await probe.send(pcm);
      await probe.waitFor('speak', sentMs);
      await sleep(1700 + 270 * round);
      const skipMs = await probe.command('skip');
      const { atMs: silentMs } = await probe.waitFor('silent', skipMs, 1000);
      await sleep(1200);
      cuts.push({ sentMs, skipMs, silentMs, recording: await probe.take() });
    }
    const still = cuts.map(({ sentMs, skipMs, recording }) => {
      const speech = { fromMs: sentMs + 300, toMs: skipMs };
      return (
        lastMotion(
          recording,
          findMouth(recording, speech, { fromMs: sentMs - 1200, toMs: sentMs }),
          speech,
        ) - skipMs
      );
    });
    const quiet = cuts.map(({ skipMs, recording }) => lastSoundMs(recording) - skipMs);
    console.info(
      `after SKIP: mouth still ${rounded(still)} ms, quiet ${rounded(quiet)} ms, ` +
        `SILENT ${rounded(cuts.map(({ skipMs, silentMs }) => silentMs - skipMs))} ms`,
    );
    // The middle of three: a browser may show any one frame late.
    assert.ok(middle(still) <= 100 * patience(), `the mouth moved for ${rounded(still)} ms`);
    assert.ok(middle(quiet) <= 100 * patience(), `there was sound for ${rounded(quiet)} ms`);
    assert.ok(Math.max(...still, ...quiet) < 200 * patience());
    assert.equal(countOf(cuts[2]!.recording, 'silent'), 3);
  });
});

test('PLAY_IMMEDIATE replaces what is being said, and what waits behind it', async () => {
  const [long, short] = [await synthesize(LONG), await synthesize(SHORT)];
  await withSession({}, async (probe) => {
    await until(
      async () => (await probe.level()) === 0,
      15_000,
      'packets say that they are silent',
    );
    await probe.send(long.pcm);
    await probe.waitFor('speak');
    await until(async () => (await probe.level())! > 0.02, 15_000, 'packets tell their level');
    await sleep(1500);
    const replaced = await probe.send(short.pcm, 'playImmediate');
    await sleep(short.durationMs + 1500);
    const recording = await probe.take();
    const { sample, likeness } = locate(recording.sound, short.pcm);
    const delayMs = recording.soundStartMs + sample / 16 - replaced;
    console.info(
      `replacement heard after ${delayMs.toFixed(0)} ms (likeness ${likeness.toFixed(2)})`,
    );
    // A busy browser stretches sound: .85 was seen. The sentence before has .57.
    assert.ok(likeness > 0.8, `the replacement was not heard (likeness ${likeness.toFixed(2)})`);
    assert.ok(delayMs < 200 * patience(), `it took ${delayMs.toFixed(0)} ms`);
    const endMs = recording.soundStartMs + sample / 16 + short.durationMs;
    assert.ok(
      lastSoundMs(recording) < endMs + 100,
      'something of the old speech came after the new',
    );
  });
});

test('DONE plays out to the end, then says STOP', async () => {
  const { pcm, durationMs } = await synthesize(SHORT);
  await withSession({}, async (probe) => {
    await sleep(1000); // the browser's jitter buffer settles
    const sent = await probe.send(pcm);
    await probe.command('done');
    const { atMs, detail } = await probe.waitFor('end', sent);
    assert.deepEqual(detail, { reason: 'stop', code: null });
    const { sound } = await probe.take();
    // A busy browser makes up for packets that it got late: it shortens and stretches sound, by a
    // fifth of a second in sum. So the end is compared alone: .96 was seen; without its last
    // 200 ms it has .81.
    const { likeness } = locate(sound, trim(pcm).subarray(-16 * 400));
    assert.ok(
      likeness > Math.max(0.85, 1 - 0.07 * patience()),
      `the speech was not played to its end (likeness ${likeness.toFixed(2)})`,
    );
    const lostMs = soundMs(pcm) - soundMs(sound);
    assert.ok(Math.abs(lostMs) < 300, `${lostMs} ms of the speech were not heard`);
    assert.ok(atMs - sent > durationMs - 400, 'STOP came before the end of the speech');
    assert.ok(
      atMs - sent < durationMs + 1500 * patience(),
      `STOP came ${(atMs - sent - durationMs).toFixed(0)} ms after the end of the speech`,
    );
  });
});

test('limits end a session with STOP: idle, and length even while speaking', async () => {
  const { pcm } = await synthesize(LONG);
  // One after the other: a browser shows frames of one page at a time.
  await withSession({ tokenOptions: { maxIdleTime: 2 } }, async (probe) => {
    const from = await probe.now();
    const { detail, atMs } = await probe.waitFor('end', 0, 8000);
    assert.deepEqual(detail, { reason: 'idle_limit', code: null });
    assert.ok(
      atMs - from > 1000 && atMs - from < 2000 + 2000 * patience(),
      `after ${(atMs - from).toFixed(0)} ms`,
    );
  });
  await withSession({ tokenOptions: { maxSessionLength: 4 } }, async (probe) => {
    const sent = await probe.send(pcm);
    const { detail, atMs } = await probe.waitFor('end', 0, 8000);
    assert.deepEqual(detail, { reason: 'length_limit', code: null });
    assert.ok(
      atMs - sent > 2500 && atMs - sent < 4000 + 2000 * patience(),
      `after ${(atMs - sent).toFixed(0)} ms`,
    );
  });
});

test('a pause of 250 ms does not split an utterance, one of two seconds does', async () => {
  const word = trim((await synthesize('Maybe tomorrow')).pcm);
  await withSession({}, async (probe) => {
    const sent = await probe.send(concat(word, silence(250), word, silence(2000), word));
    const first = await probe.waitFor('silent', sent);
    const again = await probe.waitFor('speak', first.atMs);
    await probe.waitFor('silent', again.atMs);
    await sleep(500);
    const { events } = await probe.take();
    assert.deepEqual(
      events.map(({ name }) => name).filter((name) => name === 'speak' || name === 'silent'),
      ['speak', 'silent', 'speak', 'silent'],
    );
    const wordMs = word.length / 16;
    assert.ok(
      Math.abs(again.atMs - sent - (2 * wordMs + 2250)) < 400 * patience(),
      `the second utterance began ${(again.atMs - sent).toFixed(0)} ms after sending`,
    );
  });
});

test(
  'handleSilence false: the picture freezes when the audio runs out, and goes on when more ' +
    'comes',
  async () => {
    const { pcm } = await synthesize(SHORT);
    const liveliest = (recording: Recording, fromMs: number, toMs: number): number => {
      const frames = framesBetween(recording, fromMs, toMs);
      return Math.max(0, ...motion(frames, { pixels: [...Array(recording.size ** 2).keys()] }));
    };
    await withSession({ tokenOptions: { handleSilence: false } }, async (probe) => {
      const sent = await probe.send(pcm);
      const silent = await probe.waitFor('silent', sent);
      await sleep(2500);
      const again = await probe.send(pcm);
      const more = await probe.waitFor('silent', again);
      const recording = await probe.take();
      const [spoken, frozen, resumed] = [
        liveliest(recording, sent, silent.atMs),
        liveliest(recording, silent.atMs + 500, again),
        liveliest(recording, again, more.atMs),
      ];
      assert.ok(
        spoken > 0.25 && resumed > 0.25,
        `motion in speech ${spoken.toFixed(2)}, in the second speech ${resumed.toFixed(2)}`,
      );
      assert.ok(
        frozen < 0.1,
        `the picture still moved by ${frozen.toFixed(2)} grey levels a frame`,
      );
    });
  },
);

test('the microphone of the peer connection speaks through the face', async () => {
  const { pcm } = await synthesize(SHORT, 'rms');
  const file = path.join(OUT, 'speech', 'microphone.wav');
  // Chromium plays the file from the moment the microphone is opened, before there is a connection.
  // 48 kHz is what it captures at. Three times: a connection that takes long on a busy machine
  // misses the beginning of the first.
  const once = [silence(3000), pcm, silence(3000)];
  await writeFile(file, toWav(concat(...once, ...once, ...once)));
  // A Chromium of its own: its microphone is a file, which only a command line flag can name.
  const withMicrophone = await startBrowser({ microphoneWav: file });
  try {
    const probe = await Probe.open(withMicrophone, server);
    await probe.connect({ withMicrophone: true });
    const least = 1 - 0.07 * patience();
    let likeness = 0;
    let sinceMs = 0;
    for (let round = 0; round < 3 && likeness <= least; round++) {
      const speak = await probe.waitFor('speak', sinceMs, 15_000);
      const silent = await probe.waitFor('silent', speak.atMs, 15_000);
      sinceMs = silent.atMs;
      await sleep(500);
      const recording = await probe.take();
      likeness = locate(recording.sound, trim(pcm)).likeness;
      console.info(`heard again with a likeness of ${likeness.toFixed(2)}`);
      if (likeness > least) {
        const frames = framesBetween(recording, speak.atMs, silent.atMs);
        assert.ok(frames.length > 20);
        findMouth(
          recording,
          { fromMs: speak.atMs, toMs: silent.atMs },
          { fromMs: speak.atMs - 1200, toMs: speak.atMs - 200 },
        );
      }
    }
    assert.ok(
      likeness > least,
      `what was said is not what is heard (likeness ${likeness.toFixed(2)})`,
    );
    assert.deepEqual(withMicrophone.problems, []);
  } finally {
    await withMicrophone.close();
  }
});

test('no page complained', () => {
  assert.deepEqual(browser.problems, []);
});
