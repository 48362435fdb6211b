// The audio level of RFC 6464 against signals whose level is known.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { audioLevelByte, NO_SOUND } from '../../src/media/audio-level.ts';

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
