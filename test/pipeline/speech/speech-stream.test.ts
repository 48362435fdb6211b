import assert from 'node:assert/strict';
import { test } from 'vitest';
import { AUDIO_PACKET_MS, FRAME_MS, SPEECH_PACKET_SAMPLES } from '../../../src/media/timeline.ts';
import type { SpeechSource } from '../../../src/pipeline/speech/speech-source.ts';
import { SpeechStream } from '../../../src/pipeline/speech/speech-stream.ts';

const LOOKAHEAD_MS = 60;

/** Speech whose samples count up from 1000: the value of a sample is its place. */
class CountingSource implements SpeechSource {
  available = 0;
  isDone = false;
  arrivalMs = 0;
  next = 1000;
  arrive(samples: number, nowMs: number): void {
    if (this.available === 0) {
      this.arrivalMs = nowMs;
    }
    this.available += samples;
  }
  read(out: Int16Array, offset: number, count: number): number {
    const take = Math.min(count, this.available);
    for (let i = 0; i < take; i++) {
      out[offset + i] = this.next;
      this.next++;
    }
    this.available -= take;
    return take;
  }
}

/** Runs frames and packets on a clock of 1 ms; leaves out the frames for which `isLate` is true. */
function play(
  stream: SpeechStream,
  options: {
    fromMs: number;
    toMs: number;
    at?: (ms: number) => void;
    isLate?: (frame: number) => boolean;
  },
) {
  const heard: { ms: number; samples: Int16Array }[] = [];
  const fed: { ms: number; steps: number; lastSample: number; aheadOfNextPacketMs: number }[] = [];
  let frame = Math.ceil(options.fromMs / FRAME_MS);
  let packet = Math.ceil(options.fromMs / AUDIO_PACKET_MS);
  for (let ms = options.fromMs; ms < options.toMs; ms++) {
    options.at?.(ms);
    while (packet * AUDIO_PACKET_MS <= ms && !stream.isBehind) {
      const out = new Int16Array(SPEECH_PACKET_SAMPLES);
      stream.takePacket(out);
      heard.push({ ms: packet * AUDIO_PACKET_MS, samples: out });
      packet++;
    }
    while (frame * FRAME_MS <= ms) {
      if (!(options.isLate?.(frame) ?? false)) {
        const steps = stream.prepareFrame(frame * FRAME_MS, packet * AUDIO_PACKET_MS, ms);
        if (steps > 0) {
          fed.push({
            ms: frame * FRAME_MS,
            steps,
            lastSample: stream.stepPcm[steps - 1]![stream.stepSamples[steps - 1]! - 1]!,
            aheadOfNextPacketMs: packet * AUDIO_PACKET_MS - frame * FRAME_MS,
          });
        }
      }
      frame++;
    }
  }
  return { heard, fed };
}

/** The speech played, without silence, and the media time of its first sample. */
function speechIn(heard: readonly { ms: number; samples: Int16Array }[]): {
  values: number[];
  firstMs: number;
} {
  const values: number[] = [];
  let firstMs = -1;
  for (const { ms, samples } of heard) {
    samples.forEach((value, i) => {
      if (value !== 0) {
        if (firstMs < 0) {
          firstMs = ms + i / 16;
        }
        values.push(value);
      }
    });
  }
  return { values, firstMs };
}

/** The samples from `first` on as they are heard: the last 5 ms fade out. */
const counting = (first: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.round((first + i) * Math.min(1, (count - i) / 81)));

test('every sample is played once, in order; a burst begins in the next packet', () => {
  const source = new CountingSource();
  const stream = new SpeechStream(source, LOOKAHEAD_MS);
  for (const arrivalMs of [100, 107, 113, 119, 126, 133]) {
    source.next = 1000;
    const { heard } = play(stream, {
      fromMs: 0,
      toMs: 1800,
      at: (ms) => {
        if (ms === arrivalMs) {
          source.available = 16_000;
        }
      },
    });
    const { values, firstMs } = speechIn(heard);
    assert.deepEqual(values, counting(1000, 16_000));
    assert.ok(
      firstMs - arrivalMs <= FRAME_MS + AUDIO_PACKET_MS,
      `first sample ${firstMs - arrivalMs} ms after arrival`,
    );
  }
});

test('the model gets exactly the look-ahead beyond each frame, after late frames too', () => {
  const source = new CountingSource();
  const stream = new SpeechStream(source, LOOKAHEAD_MS);
  source.available = 28_000;
  const { heard, fed } = play(stream, {
    fromMs: 0,
    toMs: 1500,
    isLate: (frame) => [7, 20, 22, 30].includes(frame),
  });
  const { firstMs } = speechIn(heard);
  for (const { ms, lastSample } of fed) {
    const modelEndMs = (lastSample + 1 - 1000) / 16;
    const shownMs = ms + FRAME_MS / 2 - firstMs;
    assert.ok(
      Math.abs(modelEndMs - shownMs - LOOKAHEAD_MS) <= FRAME_MS / 2 + 0.1,
      `at ${ms}: ahead by ${modelEndMs - shownMs}`,
    );
  }
  const exact = fed
    .filter(({ ms }) => ms < 200)
    .map(({ ms, lastSample }) => (lastSample + 1 - 1000) / 16 - (ms + FRAME_MS / 2 - firstMs));
  for (const ahead of exact) {
    assert.ok(Math.abs(ahead - LOOKAHEAD_MS) < 0.2, `before any frame was late: ${ahead}`);
  }
});

test('frames that are late tear no word apart: packets wait for them, but not after a cut', () => {
  for (const lateFrames of [2, 4, 7]) {
    const source = new CountingSource();
    const stream = new SpeechStream(source, LOOKAHEAD_MS);
    source.available = 28_000;
    const isLate = (frame: number): boolean => frame > 10 && frame <= 10 + lateFrames;
    const { heard } = play(stream, { fromMs: 0, toMs: 1500, isLate });
    const samples = heard.flatMap((packet) => [...packet.samples]);
    const first = samples.indexOf(1000);
    assert.ok(first >= 0);
    assert.ok(
      samples.slice(first).every((value, i) => value === 1000 + i),
      `${lateFrames} late frames: silence in the speech`,
    );
    const { ms } = heard.at(-1)!;
    assert.equal(ms, 1480, 'no packet is left out, and the last ones are on time');
    stream.flush();
    play(stream, { fromMs: 1500, toMs: 1560, isLate: () => true });
    assert.equal(stream.isBehind, false);
  }
});

for (const [lookaheadMs, limitMs] of [
  [LOOKAHEAD_MS, 120],
  [212, 285],
] as const) {
  test(`paced audio is played whole within ${limitMs} ms; look-ahead ${lookaheadMs} ms`, () => {
    const source = new CountingSource();
    const stream = new SpeechStream(source, lookaheadMs);
    const { heard } = play(stream, {
      fromMs: 0,
      toMs: 2500,
      at: (ms) => {
        if (ms >= 100 && ms < 1100 && ms % 20 === 0) {
          source.arrive(320, ms);
        }
      },
    });
    const { values, firstMs } = speechIn(heard);
    assert.deepEqual(values, counting(1000, 16_000));
    const lastMs =
      Math.max(
        ...heard.filter(({ samples }) => samples.some((value) => value !== 0)).map(({ ms }) => ms),
      ) + AUDIO_PACKET_MS;
    assert.ok(firstMs - 100 <= limitMs, `${firstMs - 100} ms`);
    assert.ok(
      lastMs - firstMs <= 1000 + 2 * AUDIO_PACKET_MS,
      `a second of speech takes ${lastMs - firstMs} ms`,
    );
    assert.equal(stream.underruns, 0);
  });
}

test('late audio is an underrun: all of it is played, and the margin grows', () => {
  const source = new CountingSource();
  const stream = new SpeechStream(source, LOOKAHEAD_MS);
  const { heard } = play(stream, {
    fromMs: 0,
    toMs: 3000,
    at: (ms) => {
      const paused = ms >= 500 && ms < 650;
      if (ms >= 100 && ms < 1250 && ms % 20 === 0 && !paused) {
        source.arrive(320, ms);
      }
    },
  });
  const { values } = speechIn(heard);
  const gaps = values.flatMap((value, i) => (value < 0.02 * (1000 + i) ? [i] : []));
  assert.equal(gaps.length, 2 * stream.underruns + 1, 'the edges of each gap, and the end');
  const isNear = (i: number): boolean => gaps.some((gap) => Math.abs(gap - i) < 80);
  assert.ok(
    values.every((value, i) => value === 1000 + i || (isNear(i) && value < 1000 + i)),
    'all else is as it came',
  );
  for (const { samples } of heard) {
    const steps = samples.map((value, i) => (i === 0 ? 0 : Math.abs(value - samples[i - 1]!)));
    assert.ok(Math.max(...steps.slice(1)) < 0.02 * 20_000, 'no click at the edge of a gap');
  }
  assert.ok(stream.underruns >= 1 && stream.underruns <= 3, `${stream.underruns} underruns`);
});

test('a flush ends the old speech within two packets, and new speech starts at once', () => {
  const source = new CountingSource();
  const stream = new SpeechStream(source, LOOKAHEAD_MS);
  source.available = 16_000;
  const { heard } = play(stream, {
    fromMs: 0,
    toMs: 1200,
    at: (ms) => {
      if (ms === 300) {
        source.available = 0;
        stream.flush();
      }
      if (ms === 301) {
        source.available = 4000;
        source.next = 20_000;
      }
    },
  });
  const { values, firstMs } = speechIn(heard.filter(({ ms }) => ms >= 340));
  assert.deepEqual(values, counting(20_000, 4000));
  assert.ok(firstMs <= 301 + FRAME_MS + AUDIO_PACKET_MS, `${firstMs}`);
});

test('new speech right after a cut: the old fades out, and then the new begins', () => {
  for (let cutMs = 300; cutMs < 400; cutMs += 7) {
    const source = new CountingSource();
    const stream = new SpeechStream(source, LOOKAHEAD_MS);
    source.available = 16_000;
    const { heard } = play(stream, {
      fromMs: 0,
      toMs: 700,
      at: (ms) => {
        if (ms === cutMs) {
          stream.flush();
          source.available = 4000;
          source.next = 20_000;
        }
      },
    });
    const played = heard.flatMap(({ samples }) => [...samples]);
    const first = played.indexOf(20_000);
    const end = played.slice(0, first).findLastIndex((value) => value !== 0) + 1;
    const fade = played.slice(end - 80, end);
    assert.ok(
      fade.every((value, i) => i === 0 || value < fade[i - 1]!),
      `falls from sample to sample: ${fade.join()}`,
    );
    assert.ok(fade[0]! > 1000 && fade.at(-1)! < fade[0]! / 40);
    assert.deepEqual(played.slice(first, first + 4000), counting(20_000, 4000));
  }
});

test('paced speech begins within a packet, when its first piece is old enough', () => {
  for (let arrivalMs = 200; arrivalMs < 300; arrivalMs += 3) {
    const source = new CountingSource();
    const stream = new SpeechStream(source, LOOKAHEAD_MS);
    const { heard } = play(stream, {
      fromMs: 0,
      toMs: 700,
      at: (ms) => {
        if (ms >= arrivalMs && ms < arrivalMs + 200 && (ms - arrivalMs) % 20 === 0) {
          source.arrive(320, ms);
        }
      },
    });
    const { values, firstMs } = speechIn(heard);
    assert.deepEqual(values, counting(1000, 3200));
    // Half a frame, the look-ahead and the margin; a frame later if none was due in time.
    const afterMs = firstMs - arrivalMs;
    assert.ok(afterMs >= 96 && afterMs <= 97 + FRAME_MS, `${afterMs} ms after its arrival`);
    assert.equal(stream.underruns, 0);
  }
});

test('a gap shorter than a step is an underrun too', () => {
  const source = new CountingSource();
  const stream = new SpeechStream(source, LOOKAHEAD_MS);
  let arrived = 0;
  const { heard } = play(stream, {
    fromMs: 0,
    toMs: 900,
    at: (ms) => {
      // The second piece arrives when a step has taken what was left of the first.
      if (ms >= 200 && source.available === 0 && arrived < 6400) {
        source.arrive(3200, ms);
        arrived += 3200;
      }
    },
  });
  const { values } = speechIn(heard);
  assert.equal(values.length, 6400);
  assert.equal(stream.underruns, 1);
});

test('done: the last samples are played though they fill no frame; then the stream is finished', () => {
  const source = new CountingSource();
  const stream = new SpeechStream(source, LOOKAHEAD_MS);
  source.available = 100;
  source.isDone = true;
  assert.equal(stream.isFinished, false);
  const { heard } = play(stream, { fromMs: 0, toMs: 800 });
  assert.equal(speechIn(heard).values.length, 100);
  assert.equal(stream.isFinished, true);
  assert.equal(stream.isActive, false);
});

test('speech faster than real time is a burst, whatever the size of its pieces', () => {
  const utterance = (
    pieceMs: number,
    everyMs: number,
    lengthMs: number,
    stallMs = 0,
  ): { isBurst: boolean; latencyMs: number } => {
    const source = new CountingSource();
    const stream = new SpeechStream(source, LOOKAHEAD_MS);
    let sentMs = 0;
    let started: { isBurst: boolean; latencyMs: number } | undefined;
    play(stream, {
      fromMs: 1000,
      toMs: 1600,
      at(ms) {
        if (stream.isActive && started === undefined) {
          started = { isBurst: stream.isBurst, latencyMs: ms - 1010 };
        }
        if (ms < 1010 || (ms - 1010) % everyMs !== 0 || sentMs >= lengthMs) {
          return;
        }
        source.arrive(pieceMs * 16, ms);
        sentMs += pieceMs;
      },
      isLate: (frame) => frame * FRAME_MS > 1010 && frame * FRAME_MS < 1010 + stallMs,
    });
    assert.ok(started !== undefined);
    return started;
  };
  assert.equal(utterance(2000, 1, 2000).isBurst, true, 'a whole utterance at once');
  assert.equal(utterance(20, 1, 2000).isBurst, true, 'twenty times faster than real time');
  for (const pieceMs of [10, 20, 40, 60]) {
    assert.equal(
      utterance(pieceMs, pieceMs, 2000).isBurst,
      false,
      `paced in pieces of ${pieceMs} ms`,
    );
  }
  assert.equal(utterance(20, 20, 2000, 200).isBurst, false, 'paced, and read after a stall');
  const { isBurst, latencyMs } = utterance(20, 20, 40);
  assert.equal(isBurst, false, 'a short one that waits for START_PATIENCE_MS');
  assert.ok(latencyMs > 100);
});
