// The audio level of RFC 6464 against signals whose level is known.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { audioLevelByte, isAudible, NO_SOUND } from '../../src/media/audio-level.ts';

const packet = (sample: (index: number) => number): Int16Array =>
  Int16Array.from({ length: 320 }, (_, index) => Math.round(sample(index)));
const tone = (peak: number): Int16Array =>
  packet((index) => peak * Math.sin((index * 2 * Math.PI) / 16));

test('the level is that of the root mean square, below the overload point', () => {
  const cases: readonly [Int16Array, number][] = [
    [packet(() => -32_768), 0],
    [tone(32_767), 3],
    [tone(3_277), 23],
    [tone(328), 43],
    [packet((index) => (index === 0 ? 1 : 0)), 115],
    [packet(() => 0), NO_SOUND],
  ];
  for (const [pcm, level] of cases) {
    assert.equal(audioLevelByte(pcm, false), level);
  }
});

test('speech is marked, but digital silence is not speech', () => {
  assert.equal(audioLevelByte(tone(3_277), true), 0x80 | 23);
  assert.equal(
    audioLevelByte(
      packet(() => 0),
      true,
    ),
    NO_SOUND,
  );
});

test('a quiet voice is audible from its first 10 ms; the noise of a room and an offset are not', () => {
  const noise = (deviation: number): Int16Array => {
    let seed = 1;
    const uniform = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647 - 0.5;
    return packet(() => deviation * Math.sqrt(12) * uniform());
  };
  const audible = (pcm: Int16Array): boolean => isAudible(pcm, pcm.length);
  assert.equal(audible(tone(465)), true, '-40 dBFS');
  assert.equal(audible(packet((i) => (i < 240 ? 0 : 465 * Math.sin(i)))), true, 'its first 5 ms');
  assert.equal(audible(noise(33)), false, '-60 dBFS, with peaks of 57');
  assert.equal(audible(noise(60)), false, '-55 dBFS, with peaks of 104');
  assert.equal(audible(packet(() => -300)), false, 'an offset');
  assert.equal(audible(packet((i) => 300 + 465 * Math.sin(i))), true, 'a voice over an offset');
  assert.equal(audible(packet(() => 3000)), true, 'no converter has such an offset');
  assert.equal(
    isAudible(
      packet((i) => (i < 160 ? 0 : 465 * Math.sin(i))),
      160,
    ),
    false,
  );
});
