// Sound against lips on the sender's own clock, from the packets of a second WebRTC stack: no
// player, no jitter buffer in between.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { closestLips, findMouth, locate } from '../harness/lipsync.ts';
import { patience } from '../harness/machine.ts';
import { toRecording } from '../harness/received-media.ts';
import { createToken, startServer, type TestServer } from '../harness/server.ts';
import { concat, silence, synthesize } from '../harness/speech.ts';
import { WeriftPeer } from '../harness/werift-peer.ts';
import { sleep } from '../../src/base/time.ts';

const MAX_SOUND_AHEAD_MS = 15;
const MAX_SOUND_BEHIND_MS = 45;
/** Between utterances, however they came in. */
const MAX_WANDER_MS = 20;

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ env: { MOTION: 'none' } });
});
afterAll(async () => {
  await server?.stop();
});

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
          const padded = concat(speech.pcm, silence(500)); // as a microphone goes on after the words
          const startMs = performance.now();
          for (let at = 0; at < padded.length; at += 640) {
            peer.socket.send(
              new Uint8Array(padded.buffer, at * 2, Math.min(1280, padded.byteLength - at * 2)),
            );
            await sleep(Math.max(0, startMs + (at + 640) / 16 - performance.now()));
          }
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
