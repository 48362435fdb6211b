// The fuzz target that the audio formats share: opens a file, reads all of its sound, and holds it
// to what it says of itself.
import assert from 'node:assert/strict';
import { openAudio, type AudioInput } from '../../../src/jobs/video/audio/open-audio.ts';
import {
  AudioError,
  MAX_RATE,
  MAX_SECONDS,
  MIN_RATE,
} from '../../../src/jobs/video/audio/pcm-stream.ts';
// Loaded by openAudio when they are needed: here before anything is timed.
import '../../../src/jobs/video/audio/mp3.ts';
import '../../../src/jobs/video/audio/ogg.ts';
import type { FuzzTarget } from './target.ts';

/**
 * Most sound that a piece of any decoder has: 120 ms of Opus, or what one read of Vorbis gives at
 * 16 KiB.
 */
const MAX_PIECE_SAMPLES = 2 * 1024 * 1024;

export function fuzzAudio(format: AudioInput['format']): FuzzTarget {
  return {
    maxBytes: 32 * 1024,
    // Making a decoder takes most of a millisecond; 32 KiB can hold a minute of sound.
    budget: { leastMs: 100, per64KiBMs: 1000 },
    async run(data) {
      try {
        const { rate, channels, pieces } = await openAudio({
          bytes: data,
          format,
          rate: 16_000,
          channels: 1,
        });
        assert.ok(rate >= MIN_RATE && rate <= MAX_RATE && (channels === 1 || channels === 2));
        let samples = 0;
        for await (const piece of pieces) {
          assert.ok(
            piece.length <= MAX_PIECE_SAMPLES && piece.length % channels === 0,
            `a piece of ${piece.length} samples`,
          );
          samples += piece.length / channels;
        }
        assert.ok(samples <= MAX_SECONDS * rate, 'longer than is allowed');
      } catch (error) {
        if (!(error instanceof AudioError)) {
          throw error;
        }
      }
    },
  };
}
