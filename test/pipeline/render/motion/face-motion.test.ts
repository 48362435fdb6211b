// The motion of a face: repeatable, smooth, bounded, and as strong as that of people in each band of
// frequency. The figures of people were measured in clips of people who speak to a camera: SD, RMS
// below 0.5 Hz, 0.5 to 1, 1 to 2 and 2 to 5 Hz, speed a second (docs/motion.md).
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  type Motion,
  POSE_CHANNELS,
  POSE_INDEX,
  type PoseChannel,
} from '../../../../src/media/articulation.ts';
import type { ConversationState } from '../../../../src/media/conversation-state.ts';
import { FPS } from '../../../../src/media/timeline.ts';
import { FaceMotion } from '../../../../src/pipeline/render/motion/face-motion.ts';
import { Random } from '../../../../src/pipeline/render/motion/random.ts';
import { correlation, spread, type Spread } from '../../../../bench/report/spectrum.ts';

const MINUTE = 60 * FPS;
/** Depth of the nose and distance of the eyes' outer corners in a portrait of 512 pixels. */
const NOSE_DEPTH = 40;
const EYES = 110;
const SEEDS = Array.from({ length: 12 }, (_, i) => i + 1);
const DEGREE = Math.PI / 180;

const silence = (frames: number): number[] => Array.from({ length: frames }, () => 0);

/** Loudness of made-up speech: syllables of .16 to .26 s, each third stressed, pauses between phrases. */
function loudness(frames: number, seed: number): number[] {
  const random = new Random(seed);
  const out: number[] = [];
  while (out.length < frames) {
    for (
      let syllable = 0, count = 8 + Math.floor(random.between(0, 14));
      syllable < count;
      syllable++
    ) {
      const peak = random.next() < 0.35 ? random.between(0.4, 0.62) : random.between(0.1, 0.32);
      const length = Math.round(random.between(0.16, 0.26) * FPS);
      for (let i = 0; i < length; i++) {
        out.push(peak * Math.sin((Math.PI * (i + 0.5)) / length) ** 0.7);
      }
    }
    out.push(...silence(Math.round(random.between(0.25, 0.6) * FPS)));
  }
  return out.slice(0, frames);
}

interface RecordOptions {
  readonly motion?: Motion;
  readonly frames?: number;
  readonly isSilent?: boolean;
}

function record(
  seed: number,
  { motion = 'natural', frames = MINUTE, isSilent = false }: RecordOptions = {},
): { poses: Float32Array[]; nod: number[] } {
  const nod = isSilent ? silence(frames) : loudness(frames, seed);
  const face = new FaceMotion(seed, motion);
  return { poses: nod.map((value, frame) => face.step(frame, !isSilent, value).slice()), nod };
}

const recorded = new Map<string, ReturnType<typeof record>>();
/** The same as `record`, once for each seed and options. */
function recall(seed: number, options: RecordOptions = {}): ReturnType<typeof record> {
  const key = JSON.stringify([seed, options]);
  const found = recorded.get(key) ?? record(seed, options);
  recorded.set(key, found);
  return found;
}

const track = (
  poses: readonly Float32Array[],
  of: (channel: (name: PoseChannel) => number) => number,
) => poses.map((pose) => of((name) => pose[POSE_INDEX[name]]!));

/** What the tracker would see, in degrees and in % of the distance of the eyes. */
const SEEN = {
  yaw: (c) => c('yaw') / DEGREE,
  pitch: (c) => c('pitch') / DEGREE,
  roll: (c) => c('roll') / DEGREE,
  noseX: (c) => ((c('shiftX') + NOSE_DEPTH * c('yaw')) * 100) / EYES,
  noseY: (c) => ((c('shiftY') + NOSE_DEPTH * c('pitch')) * 100) / EYES,
} satisfies Record<string, (channel: (name: PoseChannel) => number) => number>;
type Seen = keyof typeof SEEN;

/** People who speak calmly: mean of three clips. */
const CALM_PEOPLE: Readonly<Record<Seen, { bands: readonly number[]; speed: number }>> = {
  yaw: { bands: [1, 1.3, 0.8, 0.4], speed: 7 },
  pitch: { bands: [0.9, 0.9, 0.7, 0.4], speed: 8 },
  roll: { bands: [0.6, 0.5, 0.3, 0.2], speed: 3.3 },
  noseX: { bands: [3.4, 4, 1.6, 0.7], speed: 14 },
  noseY: { bands: [3.2, 2.7, 1.3, 0.7], speed: 16 },
};

function mean(spreads: readonly Spread[]): Spread {
  const of = (pick: (one: Spread) => number): number =>
    spreads.reduce((sum, one) => sum + pick(one), 0) / spreads.length;
  return {
    sd: of(({ sd }) => sd),
    bands: [0, 1, 2, 3].map((k) => of(({ bands }) => bands[k]!)),
    speed: of(({ speed }) => speed),
  };
}

const measure = (name: Seen, options?: RecordOptions): Spread =>
  mean(SEEDS.map((seed) => spread(track(recall(seed, options).poses, SEEN[name]))));

test('the same seed gives the same motion, another seed another', () => {
  const [a, b, c] = [record(1), record(1), record(2)];
  assert.deepEqual(a.poses, b.poses);
  assert.notDeepEqual(a.poses, c.poses);
});

test('in speech, each band moves about as much as in people who speak calmly', () => {
  for (const name of Object.keys(SEEN) as Seen[]) {
    const { bands, speed } = measure(name);
    const people = CALM_PEOPLE[name];
    for (const [k, band] of bands.entries()) {
      const ratio = band / people.bands[k]!;
      assert.ok(ratio > 0.6 && ratio < 1.9, `${name}, band ${k}: ${ratio.toFixed(2)} of people's`);
    }
    const ratio = speed / people.speed;
    assert.ok(ratio > 0.6 && ratio < 1.5, `${name}: ${ratio.toFixed(2)} of people's speed`);
  }
});

test('in speech the head turns, and the nose travels, as far as in people who speak calmly', () => {
  const [yaw, x, y] = (['yaw', 'noseX', 'noseY'] as const).map((name) => measure(name).sd);
  assert.ok(yaw! > 1.2 && yaw! < 2.4, `yaw: SD of ${yaw!.toFixed(2)} degrees`);
  const nose = Math.hypot(x!, y!);
  assert.ok(nose > 5 && nose < 9, `the nose: SD of ${nose.toFixed(1)} % of the eyes' distance`);
});

/** Mean speed of the head, % of the distance of the eyes and degrees a frame. */
const speedOf = (poses: readonly Float32Array[]): number =>
  (Object.keys(SEEN) as Seen[]).reduce((sum, name) => {
    const values = track(poses, SEEN[name]);
    return (
      sum +
      values.slice(1).reduce((all, value, i) => all + Math.abs(value - values[i]!), 0) /
        (values.length - 1)
    );
  }, 0);

test('the head comes to rest before the face speaks: while it thinks, and until the first word', () => {
  const mean = (of: (seed: number) => number): number => overSeeds(of);
  const silent = mean((seed) => speedOf(recall(seed, { isSilent: true }).poses));
  const before = (isThinking: boolean): number =>
    mean((seed) => {
      const face = new FaceMotion(seed);
      const speeds: number[] = [];
      for (let frame = 0, turn = 0; turn < 40; turn++) {
        const poses = Array.from({ length: 4 * FPS }, (_, at) => {
          const isAbout = at >= 2.5 * FPS;
          face.setConversation(isAbout && isThinking ? 'thinking' : 'listening');
          return face.step(frame++, isAbout && !isThinking, 0).slice();
        });
        speeds.push(speedOf(poses.slice(3.2 * FPS)));
      }
      return speeds.reduce((sum, value) => sum + value, 0) / speeds.length;
    });
  for (const isThinking of [false, true]) {
    const ratio = before(isThinking) / silent;
    assert.ok(ratio < 0.6, `${isThinking ? 'thinking' : 'awaited'}: ${ratio} of silence`);
  }
});

test('"calm" moves half as much, "lively" more, silence a third', () => {
  for (const name of Object.keys(SEEN) as Seen[]) {
    const { sd } = measure(name);
    const calm = measure(name, { motion: 'calm' }).sd / sd;
    const lively = measure(name, { motion: 'lively' }).sd / sd;
    const silent = measure(name, { isSilent: true }).sd / sd;
    assert.ok(calm > 0.4 && calm < 0.6, `${name}: calm ${calm}`);
    assert.ok(lively > 1.4 && lively < 2.2, `${name}: lively ${lively}`);
    assert.ok(silent > 0.15 && silent < 0.6, `${name}: silent ${silent}`);
  }
});

test('the head follows the loudness, in a manner of its own', () => {
  const manners = SEEDS.map((seed) => {
    const { poses, nod } = record(seed);
    const y = track(poses, SEEN.noseY);
    let best = 0;
    for (let lag = 0; lag < FPS / 2; lag++) {
      const r = correlation(nod.slice(0, nod.length - lag), y.slice(lag));
      best = Math.abs(r) > Math.abs(best) ? r : best;
    }
    return best;
  });
  const strength = manners.reduce((sum, r) => sum + Math.abs(r), 0) / manners.length;
  assert.ok(strength > 0.4, `|r| ${strength.toFixed(2)}`);
  assert.ok(
    manners.some((r) => r > 0) && manners.some((r) => r < 0),
    `signs: ${manners.join(' ')}`,
  );
});

test('never jumps', () => {
  const most: Partial<Record<PoseChannel, number>> = {
    yaw: 0.03,
    pitch: 0.03,
    roll: 0.02,
    shiftX: 4,
    shiftY: 4,
    breath: 0.08,
    blinkLeft: 0.8,
    gazeX: 1.4,
    gazeY: 1,
    brow: 0.3,
  };
  const { poses } = record(3, { frames: 5 * MINUTE });
  for (const [name, bound] of Object.entries(most)) {
    const k = POSE_CHANNELS.indexOf(name as PoseChannel);
    let jump = 0;
    for (let i = 1; i < poses.length; i++) {
      jump = Math.max(jump, Math.abs(poses[i]![k]! - poses[i - 1]![k]!));
    }
    assert.ok(jump <= bound, `${name} jumps by ${jump}`);
  }
});

/** First frames and lengths of the blinks. */
function blinks(poses: readonly Float32Array[]): { starts: number[]; lengths: number[] } {
  const starts: number[] = [];
  const lengths: number[] = [];
  let run = 0;
  for (const [frame, pose] of poses.entries()) {
    if (pose[POSE_INDEX.blinkLeft]! > 0.02) {
      run++;
    } else if (run > 0) {
      starts.push(frame - run);
      lengths.push(run);
      run = 0;
    }
  }
  return { starts, lengths };
}

test('blinks as often, as long and as irregularly as people do', () => {
  for (const [isSilent, perMinute] of [
    [false, 26],
    [true, 17],
  ] as const) {
    const all = SEEDS.map((seed) => blinks(record(seed, { frames: 5 * MINUTE, isSilent }).poses));
    const count = all.reduce((sum, { starts }) => sum + starts.length, 0) / SEEDS.length / 5;
    assert.ok(Math.abs(count / perMinute - 1) < 0.15, `${count} blinks a minute`);
    const lengths = all.flatMap((one) => one.lengths);
    const length = lengths.reduce((sum, n) => sum + n, 0) / lengths.length / FPS;
    assert.ok(length > 0.25 && length < 0.3, `${length} s a blink`);
    assert.ok(Math.max(...lengths) < 20, 'no eye stays shut');
    const gaps = all.flatMap(({ starts }) => starts.slice(1).map((start, i) => start - starts[i]!));
    const average = gaps.reduce((sum, n) => sum + n, 0) / gaps.length;
    const deviation = Math.sqrt(gaps.reduce((sum, n) => sum + (n - average) ** 2, 0) / gaps.length);
    assert.ok(deviation / average > 0.6, `CV ${deviation / average}`);
  }
});

test('skipped frames do not leave the eyes shut, nor move the head away', () => {
  const motion = new FaceMotion(5);
  let shut = 0;
  for (let frame = 0; frame < 20_000; frame += 1 + ((frame * 7919) % 23)) {
    const pose = motion.step(frame, false, 0);
    shut += pose[POSE_INDEX.blinkLeft]! > 0.5 ? 1 : 0;
    assert.ok(pose.every((value) => Math.abs(value) < 20));
  }
  assert.ok(shut < 250, `${shut} frames shut`);
});

test('looks at the viewer most of the time, wanders, and comes back', () => {
  for (const isSilent of [false, true]) {
    const { poses } = record(7, { frames: 5 * MINUTE, isSilent });
    const aside = poses.map(
      (pose) => Math.hypot(pose[POSE_INDEX.gazeX]!, pose[POSE_INDEX.gazeY]!) > 0.35,
    );
    const share = aside.filter(Boolean).length / aside.length;
    assert.ok(share > 0.06 && share < 0.35, `${share} of the time aside`);
    const glances = aside.filter((is, i) => is && !aside[i - 1]).length / 5;
    assert.ok(glances > 4 && glances < 30, `${glances} glances a minute`);
  }
});

/** A silent face for so many turns of 6 s of the same state, with 2 s of `listening` between them. */
function turns(seed: number, state: ConversationState, count = 40): Float32Array[] {
  const face = new FaceMotion(seed);
  return Array.from({ length: count * 8 * FPS }, (_, frame) => {
    const atS = (frame / FPS) % 8;
    face.setConversation(atS < 2 ? 'listening' : state);
    return face.step(frame, false, 0).slice();
  }).filter((_, frame) => (frame / FPS) % 8 >= 2);
}
const isAside = (pose: Float32Array): boolean =>
  Math.hypot(pose[POSE_INDEX.gazeX]!, pose[POSE_INDEX.gazeY]!) > 0.35;
const share = (poses: readonly Float32Array[]): number =>
  poses.filter(isAside).length / poses.length;
/** Nods a minute: the head goes down by more than half a degree, and comes back. */
function nods(poses: readonly Float32Array[]): number {
  const pitch = track(poses, SEEN.pitch);
  let count = 0;
  for (let i = 6; i < pitch.length - 8; i++) {
    const [before, after] = [pitch[i - 6]!, pitch[i + 7]!];
    const isPeak = pitch[i]! >= pitch[i - 1]! && pitch[i]! > pitch[i + 1]!;
    count += isPeak && pitch[i]! - Math.max(before, after) > 0.5 ? 1 : 0;
  }
  return (count * MINUTE) / poses.length;
}
const overSeeds = (of: (seed: number) => number): number =>
  SEEDS.reduce((sum, seed) => sum + of(seed), 0) / SEEDS.length;

test('a face that listens to a person looks at them, and nods and blinks a little more', () => {
  const heard = overSeeds((seed) => share(turns(seed, 'hearing')));
  const idle = overSeeds((seed) => share(turns(seed, 'listening')));
  assert.ok(heard < 0.07 && idle > 2 * heard, `aside: ${heard}, in silence ${idle}`);
  const nodsHearing = overSeeds((seed) => nods(turns(seed, 'hearing')));
  const nodsIdle = overSeeds((seed) => nods(turns(seed, 'listening')));
  assert.ok(nodsHearing > 8 && nodsHearing < 35, `${nodsHearing} nods a minute`);
  assert.ok(nodsHearing > 3 * nodsIdle, `${nodsHearing}, in silence ${nodsIdle}`);
  const perMinute = (state: ConversationState): number =>
    overSeeds((seed) => {
      const poses = turns(seed, state);
      return (blinks(poses).starts.length * MINUTE) / poses.length;
    });
  const [blinksHearing, blinksIdle] = [perMinute('hearing'), perMinute('listening')];
  const ratio = blinksHearing / blinksIdle;
  assert.ok(ratio > 1.05 && ratio < 1.7, `${blinksHearing} blinks a minute, idle ${blinksIdle}`);
  const sd = (state: ConversationState): number =>
    overSeeds((seed) => spread(track(turns(seed, state), SEEN.pitch)).sd);
  assert.ok(sd('hearing') < 1, `small: ${sd('hearing')} degrees of pitch`);
});

test('a face that begins to think looks aside for a moment, and comes back', () => {
  const starts = SEEDS.flatMap((seed) => {
    const poses = turns(seed, 'thinking');
    return Array.from({ length: poses.length / (6 * FPS) }, (_, turn) =>
      poses.slice(turn * 6 * FPS, (turn + 1) * 6 * FPS),
    );
  });
  const at = (seconds: number): number =>
    starts.filter((poses) => isAside(poses[Math.round(seconds * FPS)]!)).length / starts.length;
  assert.ok(at(0.3) > 0.85, `${at(0.3)} look aside after 0.3 s`);
  assert.ok(at(1.8) < 0.4, `${at(1.8)} after 1.8 s`);
  const up = starts.filter((poses) => poses[Math.round(0.3 * FPS)]![POSE_INDEX.gazeY]! < 0.05);
  assert.ok(up.length / starts.length > 0.6, 'mostly upwards');
});

test('a change of state moves the head no faster than silence does', () => {
  const face = new FaceMotion(3);
  let [before, jump] = [0, 0];
  for (let frame = 0; frame < 2 * MINUTE; frame++) {
    face.setConversation(frame % 90 < 45 ? 'hearing' : 'thinking');
    const pitch = face.step(frame, false, 0)[POSE_INDEX.pitch]!;
    jump = Math.max(jump, Math.abs(pitch - before));
    before = pitch;
  }
  assert.ok(jump < 0.012, `${jump} radians in a frame`);
});
