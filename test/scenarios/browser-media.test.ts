// What a real browser sees and hears of a session: idle life before any speech, a mouth that moves
// to speech and only then, in time.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { TestBrowser } from '../harness/browser.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import {
  type Correlation,
  closestLips,
  findMouth,
  firstMotion,
  locate,
  type MouthRegion,
  meanMotion,
  region,
  soundBehindLips,
} from '../harness/lipsync.ts';
import { patience } from '../harness/machine.ts';
import { Probe, type Recording, framesBetween, isSoundSteady } from '../harness/probe.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { type Speech, synthesize } from '../harness/speech.ts';
import { sleep } from '../../src/base/time.ts';

// What viewers do not notice: EBU R37 (40 ms ahead, 60 behind) and ITU-R BT.1359, tightened.
const MAX_SOUND_AHEAD_MS = 20;
const MAX_SOUND_BEHIND_MS = 25;

// Voiceless lip closures and open vowels in turn, so that loudness and mouth opening go together.
const SENTENCE = 'Papa, pop a puppy up. Pepper, puppet, popper, paper, happy papa.';

/**
 * How late lips seem in the picture depends on the face, by up to 15 ms for the same movement: of
 * three measured it is least biased where mouth and loudness still go together well.
 */
const FACE = 'priya';

/**
 * Recordings until the browser leaves the sound alone and plays it in time. Chromium settles on
 * another playout delay in each session: of twenty, the sound was 3 to 23 ms ahead, as its own
 * estimate of the two playout times told. So the middle of three decides where the first is out of
 * bounds. That our own clocks agree is shown without a browser in media-clock.test.ts.
 */
const MAX_ATTEMPTS = 3;

/** How late the sound is behind the lips in one recording, measured in two ways. */
interface Sync {
  readonly byLoudness: Correlation;
  readonly byWords: Correlation;
  /** The browser's own estimate, in milliseconds. */
  readonly estimateMs: number;
  readonly steady: boolean;
}

const isTogether = ({ byLoudness, byWords }: Sync): boolean =>
  [byLoudness, byWords].every(
    ({ lagMs }) =>
      lagMs >= -MAX_SOUND_AHEAD_MS * patience() && lagMs <= MAX_SOUND_BEHIND_MS * patience(),
  );

/** The steady recordings, or all where the browser never left the sound alone, earliest sound first. */
function inOrder(all: readonly Sync[]): Sync[] {
  const steady = all.filter((one) => one.steady);
  return (steady.length > 0 ? steady : [...all]).sort(
    (a, b) => a.byLoudness.lagMs - b.byLoudness.lagMs,
  );
}

const middleOf = (sorted: readonly Sync[]): Sync => sorted[Math.floor((sorted.length - 1) / 2)]!;

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

for (const codec of ['vp8', 'h264'] as const) {
  describe(`a session in ${codec.toUpperCase()}`, () => {
    let speech: Speech;
    let probe: Probe;
    let recording: Recording;
    let stats: any;
    const syncs: Sync[] = [];
    let connectMs = 0;
    let mouth: MouthRegion;
    /** On the page's clock: everything flows, speech was sent, it is over, the recording ends. */
    const at = { flowing: 0, sent: 0, speak: 0, silent: 0, end: 0 };

    beforeAll(async () => {
      speech = await synthesize(SENTENCE);
      for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
        const steady = await record();
        mouth = findMouth(
          recording,
          { fromMs: at.speak, toMs: at.silent },
          { fromMs: at.flowing, toMs: at.sent },
        );
        syncs.push(measureSync(steady));
        const sorted = inOrder(syncs);
        // Of two there is no middle.
        if (steady && sorted.length % 2 === 1 && isTogether(middleOf(sorted))) {
          break;
        }
      }
    });

    function measureSync(steady: boolean): Sync {
      const heardMs = recording.soundStartMs + locate(recording.sound, speech.pcm).sample / 16;
      return {
        byLoudness: soundBehindLips(recording, mouth, at.sent, at.silent),
        byWords: closestLips(recording, mouth, speech, heardMs),
        estimateMs: stats.video.estimatedPlayoutTimestamp - stats.audio.estimatedPlayoutTimestamp,
        steady,
      };
    }

    /** @returns whether the browser left the sound as it was sent */
    async function record(): Promise<boolean> {
      probe = await Probe.open(browser, server);
      ({ connectMs } = await probe.connect({ codec, tokenOptions: { faceId: FACE } }));
      await sleep(700); // the first second's picture is still being refined by the encoder
      at.flowing = await probe.now();
      await sleep(2500);
      const before = await probe.stats();
      at.sent = await probe.send(speech.pcm);
      at.speak = (await probe.waitFor('speak', at.sent)).atMs;
      at.silent = (await probe.waitFor('silent', at.sent)).atMs;
      const steady = isSoundSteady(before, await probe.stats());
      await sleep(2500);
      stats = await probe.stats();
      recording = await probe.take();
      at.end = recording.nowMs;
      await probe.command('close');
      await probe.page.close();
      return steady;
    }

    test('uses the codec that was asked for, at 512x512', () => {
      assert.ok(
        stats.codecs.includes(`video/${codec.toUpperCase()}`),
        `negotiated: ${stats.codecs}`,
      );
      assert.deepEqual([stats.video.frameWidth, stats.video.frameHeight], [512, 512]);
    });

    test('shows its first frame soon after asking for a token', () => {
      assert.ok(
        connectMs < 1000 * patience(),
        `token → first rendered frame took ${connectMs.toFixed(0)} ms`,
      ); // 500 ms is the target on a quiet machine: the bench holds it
    });

    test('sends idle video and audio before it was sent anything', () => {
      const idle = framesBetween(recording, at.flowing, at.sent);
      assert.ok(
        idle.length >= (28 * (at.sent - at.flowing)) / 1000,
        `${idle.length} frames in ${(at.sent - at.flowing).toFixed(0)} ms`,
      );
      const heard = recording.sound.subarray(
        (at.flowing - recording.soundStartMs) * 16,
        (at.sent - recording.soundStartMs) * 16,
      );
      assert.ok(heard.length > 16 * (at.sent - at.flowing) * 0.95, 'the sound does not flow');
      assert.ok(
        heard.every((sample) => Math.abs(sample) < 300),
        'there is sound before there is speech',
      );
    });

    test('lives while idle: the picture is not frozen', () => {
      const idle = framesBetween(recording, at.flowing, at.sent);
      const first = idle[0]!.luma;
      const change = Math.max(
        ...idle.map(
          ({ luma }) =>
            luma.reduce((sum, value, i) => sum + Math.abs(value - first[i]!), 0) / luma.length,
        ),
      );
      assert.ok(change > 0.15, `the picture changes by ${change.toFixed(2)} grey levels at most`);
    });

    test('decodes at least 28 frames a second over ten seconds, without a freeze', () => {
      const all = framesBetween(recording, at.flowing, at.end);
      const seconds = (all.at(-1)!.shownMs - all[0]!.shownMs) / 1000;
      assert.ok(seconds > 9.5, `only ${seconds.toFixed(1)} s were recorded`);
      // Frames that the compositor showed but a busy test machine did not hand out count as
      // decoded.
      const fps = (all.at(-1)!.presented - all[0]!.presented) / seconds;
      assert.ok(fps >= 28 && fps <= 31, `${fps.toFixed(1)} frames a second`);
      assert.equal(stats.video.freezeCount, 0, 'the browser counted a freeze');
    });

    test('moves the mouth to speech, and only then', () => {
      const speaking = meanMotion(recording, mouth, at.speak, at.silent);
      const before = meanMotion(recording, mouth, at.flowing, at.sent);
      const afterwards = meanMotion(recording, mouth, at.silent + 500, at.end);
      assert.ok(
        speaking > 4 * before,
        `mouth motion ${speaking.toFixed(2)} in speech, ${before.toFixed(2)} before it`,
      );
      assert.ok(
        speaking > 4 * afterwards,
        `mouth motion ${speaking.toFixed(2)} in speech, ${afterwards.toFixed(2)} after it`,
      );
    });

    test('leaves the background alone', () => {
      const background = region(
        recording.size,
        (x, y) => y < 0.12 || (y < 0.5 && (x < 0.1 || x > 0.9)),
      );
      const moved = meanMotion(recording, background, at.speak, at.silent);
      assert.ok(moved < 1, `the background moves by ${moved.toFixed(2)} grey levels a frame`);
      assert.ok(moved < 0.25 * meanMotion(recording, mouth, at.speak, at.silent));
    });

    test('plays the very speech that was sent', () => {
      const { likeness } = locate(recording.sound, speech.pcm);
      assert.ok(
        likeness > 1 - 0.05 * patience(),
        `what is heard is like what was sent by ${likeness.toFixed(3)}`,
      );
    });

    test('says SPEAK and SILENT once for one utterance', () => {
      const words = recording.events
        .map(({ name }) => name)
        .filter((name) => name === 'speak' || name === 'silent');
      assert.deepEqual(words, ['speak', 'silent']);
    });

    test('keeps sound and lips together', () => {
      for (const { byLoudness, byWords, estimateMs, steady } of syncs) {
        console.info(
          `sound behind lips, by loudness: ${byLoudness.lagMs.toFixed(1)} ms ` +
            `(r ${byLoudness.correlation.toFixed(2)}); by what was ` +
            `said: ${byWords.lagMs.toFixed(1)} ms (r ${byWords.correlation.toFixed(2)}); the ` +
            `browser's own estimate ${estimateMs.toFixed(0)} ms${steady ? '' : ' (not steady)'}`,
        );
      }
      const { byLoudness, byWords } = middleOf(inOrder(syncs));
      for (const { lagMs, correlation } of [byLoudness, byWords]) {
        assert.ok(
          correlation > 0.5,
          `mouth and sound hardly go together (r ${correlation.toFixed(2)})`,
        );
        assert.ok(
          lagMs >= -MAX_SOUND_AHEAD_MS * patience(),
          `the sound is ${(-lagMs).toFixed(1)} ms ahead of the lips`,
        );
        assert.ok(
          lagMs <= MAX_SOUND_BEHIND_MS * patience(),
          `the sound is ${lagMs.toFixed(1)} ms behind the lips`,
        );
      }
    });

    test('moves the lips, and is heard, soon after audio was sent', () => {
      const leadMs = speech.segments[0]!.phone === 'pau' ? speech.segments[0]!.endMs : 0;
      const lipsMs = firstMotion(recording, mouth, at.sent) - at.sent - leadMs;
      const heardMs =
        recording.soundStartMs + locate(recording.sound, speech.pcm).sample / 16 - at.sent;
      console.info(
        `sent → lips ${lipsMs.toFixed(0)} ms, sent → heard ${heardMs.toFixed(0)} ms; token ` +
          `→ first frame ${connectMs.toFixed(0)} ms`,
      );
      // A browser adds its jitter buffers to both; the bench measures without them.
      assert.ok(lipsMs < 150 * patience(), `it took ${lipsMs.toFixed(0)} ms until the lips moved`);
      assert.ok(
        heardMs < 200 * patience(),
        `it took ${heardMs.toFixed(0)} ms until the speech was heard`,
      );
    });
  });
}

test('no page complained', () => {
  assert.deepEqual(browser.problems, []);
});
