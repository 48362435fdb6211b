// When utterances begin, and how the margin follows the pieces of speech that come late.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { FRAME_MS, SPEECH_RATE } from '../../../src/media/timeline.ts';
import { UtteranceStart } from '../../../src/pipeline/speech/utterance-start.ts';

const LOOKAHEAD_MS = 60;
const PIECE_MS = 20;
const samples = (ms: number): number => (ms * SPEECH_RATE) / 1000;

/**
 * One utterance in pieces of 20 ms of which each fifth is late.
 * @returns when its first sample is played, and how often a frame lacked speech
 */
function utterance(start: UtteranceStart, lateMs: number): { firstMs: number; gaps: number } {
  const arrivedAt = (ms: number): number => {
    let pieces = 0;
    while (pieces * PIECE_MS + (pieces % 5 === 3 ? lateMs : 0) <= ms) {
      pieces++;
    }
    return samples(pieces * PIECE_MS);
  };
  let taken = 0;
  const source = { available: 0, isDone: false, arrivalMs: 0, read: () => 0 };
  for (let ms = 0; ms < 200; ms++) {
    source.available = arrivedAt(ms);
    const leadInMs = start.leadInMs(source, ms, ms);
    if (leadInMs === undefined) {
      continue;
    }
    start.begun();
    const firstMs = ms + leadInMs;
    let gaps = 0;
    for (let frameMs = ms; frameMs < 1000; frameMs += FRAME_MS) {
      const wanted = Math.round(samples(frameMs + FRAME_MS / 2 + LOOKAHEAD_MS - firstMs)) - taken;
      const left = arrivedAt(frameMs) - taken - wanted;
      taken += Math.min(wanted, wanted + left);
      start.taken(Math.min(wanted, wanted + left), Math.max(0, left));
      gaps += left < 0 ? 1 : 0;
    }
    return { firstMs, gaps };
  }
  throw new Error('the utterance did not begin');
}

test('pieces that are never late make the margin small, and it stays large enough', () => {
  const start = new UtteranceStart(LOOKAHEAD_MS);
  const all = Array.from({ length: 40 }, () => utterance(start, 0));
  assert.ok(all.every(({ gaps }) => gaps === 0));
  const needMs = FRAME_MS / 2 + LOOKAHEAD_MS;
  assert.ok(Math.abs(all[0]!.firstMs - needMs - 20) < 0.1, `first ${all[0]!.firstMs} ms`);
  const lastMs = all.at(-1)!.firstMs - needMs;
  assert.ok(lastMs >= 5.9 && lastMs < 9, `a margin of ${lastMs} ms at the end`);
});

test('pieces that are late make the margin as large as they are late', () => {
  for (const lateMs of [15, 25, 40]) {
    const start = new UtteranceStart(LOOKAHEAD_MS);
    const all = Array.from({ length: 40 }, () => utterance(start, lateMs));
    const settled = all.slice(8);
    assert.ok(
      settled.every(({ gaps }) => gaps === 0),
      `${lateMs} ms: ${all.map(({ gaps }) => gaps).join(' ')}`,
    );
    const marginMs = settled.at(-1)!.firstMs - FRAME_MS / 2 - LOOKAHEAD_MS;
    assert.ok(marginMs < lateMs + 12, `late by ${lateMs} ms: a margin of ${marginMs} ms`);
  }
});

test('a burst begins at once and does not change the margin', () => {
  const start = new UtteranceStart(LOOKAHEAD_MS);
  const firstMs = utterance(start, 0).firstMs;
  const source = { available: samples(2000), isDone: false, arrivalMs: 5000, read: () => 0 };
  for (let i = 0; i < 20; i++) {
    assert.equal(start.leadInMs(source, 5010, 5001), 0);
    assert.equal(start.isBurst(source, 5001), true);
    start.begun();
    for (let left = 1900; left > 0; left -= FRAME_MS) {
      start.taken(samples(FRAME_MS), samples(left));
    }
  }
  const again = utterance(start, 0).firstMs;
  assert.ok(Math.abs(again - firstMs) <= 3, `${firstMs}, then ${again} ms`);
});
