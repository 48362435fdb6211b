// Sound against lips, and against the events that tell visemes and words, on the sender's own clock:
// from the packets of a second WebRTC stack, no player and no jitter buffer in between.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { closestLips, findMouth, locate } from '../harness/lipsync.ts';
import { patience } from '../harness/machine.ts';
import { toRecording } from '../harness/received-media.ts';
import { call, createToken, firstFace, startServer, type TestServer } from '../harness/server.ts';
import { closures, concat, silence, synthesize } from '../harness/speech.ts';
import { until } from '../harness/until.ts';
import { senderMs, WeriftPeer } from '../harness/werift-peer.ts';
import { WsClient } from '../harness/ws-client.ts';
import { sleep } from '../../src/base/time.ts';
import { FRAME_MS, VIDEO_CLOCK } from '../../src/media/timeline.ts';

const MAX_SOUND_AHEAD_MS = 15;
const MAX_SOUND_BEHIND_MS = 45;
/** Between utterances, however they came in. */
const MAX_WANDER_MS = 20;
/** The Unix epoch on the clock of sender reports, which begins in 1900 (RFC 5905). */
const UNIX_EPOCH_NTP_MS = 2_208_988_800_000;

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ env: { MOTION: 'none' } });
});
afterAll(async () => {
  await server?.stop();
});

/** Sound that is sent before it is due: on a busy machine this process pauses for less. */
const AHEAD_MS = 400;

/** With half a second of silence, as a microphone goes on after the words. */
async function speakInRealTime(socket: WsClient, pcm: Int16Array): Promise<void> {
  const padded = concat(pcm, silence(500));
  const startMs = performance.now();
  for (let at = 0; at < padded.length; at += 640) {
    socket.send(new Uint8Array(padded.buffer, at * 2, Math.min(1280, padded.byteLength - at * 2)));
    await sleep(Math.max(0, startMs + (at + 640) / 16 - AHEAD_MS - performance.now()));
  }
}

for (const codec of ['vp8', 'h264'] as const) {
  test(`${codec}: lips and sound are stamped alike, in a burst and in real time`, async () => {
    const speech = await synthesize('Papa, pop a puppy up. Pepper, puppet, happy papa.');
    const peer = await WeriftPeer.connect(server, await createToken(server), codec);
    try {
      await sleep(2000);
      for (const pace of ['burst', 'real time'] as const) {
        const from = peer.socket.messages.length;
        if (pace === 'burst') {
          peer.socket.speak(speech.pcm);
        } else {
          await speakInRealTime(peer.socket, speech.pcm);
        }
        await peer.socket.waitFor('SILENT', { from, limitMs: 20_000 });
        await sleep(600);
      }
      const recording = toRecording(peer, codec);
      const lags = [
        recording.sound.subarray(0),
        recording.sound.subarray(recording.sound.length / 2),
      ].map((sound, n) => {
        // The two utterances are the same words: the first lies in the first half, the second in
        // the other.
        const part = n === 0 ? sound.subarray(0, sound.length * 0.55) : sound;
        const { sample, likeness } = locate(part, speech.pcm);
        assert.ok(
          likeness > 1 - 0.05 * patience(),
          `utterance ${n + 1} is not what was sent (likeness ${likeness.toFixed(2)})`,
        );
        const heardMs =
          recording.soundStartMs +
          (part.byteOffset - recording.sound.byteOffset) / 32 +
          sample / 16;
        const mouth = findMouth(
          recording,
          { fromMs: heardMs, toMs: heardMs + speech.durationMs },
          { fromMs: heardMs - 900, toMs: heardMs - 100 },
        );
        return closestLips(recording, mouth, speech, heardMs);
      });
      const figures = lags.map(
        ({ lagMs, correlation }) => `${lagMs.toFixed(1)} ms (r ${correlation.toFixed(2)})`,
      );
      console.info(`sound behind lips: ${figures.join(' in a burst, ')} in real time`);
      for (const { lagMs, correlation } of lags) {
        assert.ok(
          correlation > 0.5,
          `the lips do not do what was said (r ${correlation.toFixed(2)})`,
        );
        assert.ok(
          lagMs >= -MAX_SOUND_AHEAD_MS * patience() && lagMs <= MAX_SOUND_BEHIND_MS * patience(),
          `the sound is ${lagMs.toFixed(1)} ms behind the lips`,
        );
      }
      assert.ok(
        Math.abs(lags[0]!.lagMs - lags[1]!.lagMs) < MAX_WANDER_MS * patience(),
        'the offset depends on how the audio came in',
      );
    } finally {
      await peer.close();
    }
  });
}

/** Milliseconds; of the middle and of nine tenths. */
function quantiles(values: readonly number[]): { median: number; p90: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
  return { median: at(0.5), p90: at(0.9) };
}

test('visemes and words of the events come when their sounds do', async () => {
  const spoken = ['Bob and Pam made a map of the big moon.', 'My papa may bring purple bubbles.'];
  const [first, second] = await Promise.all(spoken.map((text) => synthesize(text)));
  const speech = concat(first!.pcm, second!.pcm);
  const phones = [
    ...closures(first!),
    ...closures(second!).map(({ phone, startMs, endMs }) => ({
      phone,
      startMs: startMs + first!.durationMs,
      endMs: endMs + first!.durationMs,
    })),
  ];
  assert.equal(phones.map(({ phone }) => phone).join(''), 'bbpmmmpbmmppmbppbb');
  /** Words that begin with a closure, by its number. */
  const wordStarts = { Bob: 0, Pam: 2, made: 4, map: 5, big: 7, moon: 8, may: 12, purple: 14 };
  const words = Object.entries(wordStarts).map(([text, closure]) => ({
    text,
    startMs: phones[closure]!.startMs,
  }));
  const faceId = await firstFace(server);
  const { body } = await call(server, '/sessions', { faceId, motion: 'visemes' });
  const agent = await WsClient.open(server, body.tokens.agent, '/sessions/agent');
  const viewer = await WeriftPeer.connect(server, body.tokens.viewer);
  try {
    await agent.waitFor('{"type":"viewer","connected":true');
    await sleep(500);
    agent.send(JSON.stringify({ type: 'words', words }));
    await speakInRealTime(agent, speech);
    await agent.waitFor('{"type":"silent"', { limitMs: 20_000 });
    await until(() => viewer.audio.clock.length * viewer.video.clock.length > 0, 10_000, 'reports');
    const { sound, soundStartMs } = toRecording(viewer, 'vp8');
    const { sample, likeness } = locate(sound, speech);
    assert.ok(likeness > 1 - 0.05 * patience(), `likeness ${likeness.toFixed(2)}`);
    const heardMs = soundStartMs + sample / 16;
    const events = agent.messages.map(({ text }) => JSON.parse(text));
    const visemes = events
      .filter(({ type }) => type === 'viseme')
      .map(({ rtp, viseme }) => ({
        viseme,
        startMs: senderMs(viewer.video, rtp, VIDEO_CLOCK) - heardMs,
      }));
    const closed = visemes
      .map(({ viseme, startMs }, n) => ({
        viseme,
        startMs,
        endMs: visemes[n + 1]?.startMs ?? Infinity,
      }))
      .filter(({ viseme }) => viseme === 'PP');
    const middle = ({ startMs, endMs }: { startMs: number; endMs: number }) =>
      (startMs + endMs) / 2;
    // What lies between two closures may be too short for the mouth to open: they are one.
    const shown = closed.flatMap((lips) => {
      const within = phones.filter(
        (phone) => middle(phone) >= lips.startMs && middle(phone) < lips.endMs,
      );
      const whole = { startMs: within[0]?.startMs ?? 0, endMs: within.at(-1)?.endMs ?? 0 };
      return within.length === 0
        ? []
        : [{ count: within.length, lateMs: middle(lips) - middle(whole) }];
    });
    const count = shown.reduce((sum, lips) => sum + lips.count, 0);
    const { median } = quantiles(shown.map(({ lateMs }) => lateMs));
    const { p90 } = quantiles(shown.map(({ lateMs }) => Math.abs(lateMs)));
    const told = events.filter(({ type }) => type === 'word');
    assert.deepEqual(
      told.map(({ text }) => text),
      Object.keys(wordStarts),
    );
    const lateWords = told.map(({ at, startMs }) => at + UNIX_EPOCH_NTP_MS - heardMs - startMs);
    const word = {
      median: quantiles(lateWords).median,
      p90: quantiles(lateWords.map(Math.abs)).p90,
    };
    const figures =
      `${count} of ${phones.length} closures shown, ${median.toFixed(0)} ms late, 90 % within ` +
      `${p90.toFixed(0)} ms; words ${word.median.toFixed(0)} ms late, 90 % within ` +
      `${word.p90.toFixed(0)} ms`;
    console.info(figures);
    assert.ok(count >= phones.length - 2, figures);
    assert.ok(Math.abs(median) < FRAME_MS && p90 < 2 * FRAME_MS * patience(), figures);
    assert.ok(Math.abs(word.median) < 60 * patience() && word.p90 < 100 * patience(), figures);
  } finally {
    await agent.close();
    await viewer.close();
  }
});
