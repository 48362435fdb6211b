// A stream that is resampled piece by piece.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { StreamResampler, mixToMono } from '../../src/native/stream-resampler.ts';

/** A tone, in pieces of odd lengths. */
function streamed(inputRate: number, outputRate: number, channels: 1 | 2): Int16Array {
  const resampler = new StreamResampler({ inputRate, outputRate, channels, quality: 'medium' });
  const tone = Int16Array.from({ length: inputRate * channels }, (_, i) =>
    Math.round(8000 * Math.sin((2 * Math.PI * 440 * Math.floor(i / channels)) / inputRate)),
  );
  const out: number[] = [];
  for (let at = 0, piece = 1; at < tone.length; at += piece * channels, piece = (piece * 7) % 997) {
    out.push(...resampler.push(tone.subarray(at, at + piece * channels)));
  }
  out.push(...resampler.flush());
  resampler.close();
  return Int16Array.from(out);
}

test('a stream has the same length at every rate, and its end is not cut off', () => {
  for (const [inputRate, outputRate, channels] of [
    [44_100, 16_000, 1],
    [48_000, 16_000, 2],
    [8000, 48_000, 2],
    [16_000, 16_000, 1],
  ] as const) {
    const what = `${inputRate} to ${outputRate} Hz, ${channels} channels`;
    const out = streamed(inputRate, outputRate, channels);
    assert.equal(out.length, outputRate * channels, what);
    const end = out.subarray(-outputRate * channels * 0.02);
    assert.ok(
      end.some((sample) => Math.abs(sample) > 6000),
      what,
    );
  }
});

test('stereo is mixed to its mean; mono is passed on', () => {
  const samples = Int16Array.of(1000, 3000, -32_768, -32_768);
  assert.deepEqual([...mixToMono(samples, 2)], [2000, -32_768]);
  assert.equal(mixToMono(samples, 1), samples);
});

test('channels in antiphase are not silent in mono', () => {
  const wave = (i: number): number => Math.round(8000 * Math.sin(i / 9));
  const stereo = (right: (i: number) => number): Int16Array =>
    Int16Array.from({ length: 640 }, (_, i) => (i % 2 === 0 ? wave : right)(i >> 1));
  const left = Int16Array.from({ length: 320 }, (_, i) => wave(i));
  assert.deepEqual(
    mixToMono(
      stereo((i) => -wave(i)),
      2,
    ),
    left,
  );
  assert.deepEqual(
    mixToMono(
      stereo((i) => Math.round(-0.9 * wave(i))),
      2,
    ),
    left,
  );
  assert.deepEqual(mixToMono(stereo(wave), 2), left);
  const apart = mixToMono(
    stereo((i) => wave(i + 14)),
    2,
  );
  assert.equal(apart[100], (wave(100) + wave(114)) >> 1, 'other stereo is mixed');
  assert.ok(mixToMono(new Int16Array(640), 2).every((value) => value === 0));
});
