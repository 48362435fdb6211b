// Micro bench of drawing a face: idle life, speech, mouth alone, nothing, and many sessions taking
// turns (cold caches).
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ARTICULATION_SIZE, ARTICULATOR_INDEX, POSE_SIZE } from '../../src/media/articulation.ts';
import { i420Bytes, macroblocks } from '../../src/media/picture.ts';
import { createFace } from '../../src/jobs/face/create-face.ts';
import { native } from '../../src/native/addon.ts';
import { RigRenderer } from '../../src/pipeline/render/rig-renderer.ts';
import { SENTENCE_MS, sentenceAt } from '../../src/pipeline/render/visemes.ts';
import { type BenchCase, measure, report } from '../harness.ts';

const PORTRAIT = path.resolve(import.meta.dirname, '../../models/faces/ava.webp');
const SESSIONS = 24;

const { asset: bytes } = await createFace(readFileSync(PORTRAIT), { name: 'bench' });
const asset = new native.FaceAsset(bytes);
const silence = new Float32Array(ARTICULATION_SIZE);
const speech = Array.from({ length: 200 }, (_, i) => {
  const articulation = sentenceAt(((i * 1000) / 30) % SENTENCE_MS);
  articulation[ARTICULATOR_INDEX.speech] = 1;
  return articulation;
});
const said = (frame: number): Float32Array => speech[frame % speech.length]!;

let frame = 0;
const staged = (name: string, sessions: number, isSpeaking: boolean): BenchCase => {
  const stages = Array.from(
    { length: sessions },
    (_, i) => new RigRenderer(asset, { seed: i, emotion: 0, startFrame: 0 }),
  );
  return {
    name,
    run: (round) => {
      frame++;
      stages[round % sessions]!.draw(
        Math.floor(frame / sessions),
        isSpeaking ? said(round) : silence,
        isSpeaking,
      );
    },
  };
};

const fixed = (name: string, articulationOf: (round: number) => Float32Array): BenchCase => {
  const renderer = new native.FaceRenderer(asset);
  const picture = new Uint8Array(i420Bytes(asset.width, asset.height));
  const dirty = new Uint8Array(macroblocks(asset.width, asset.height));
  const pose = new Float32Array(POSE_SIZE);
  return {
    name,
    run: (round) => {
      renderer.render(articulationOf(round), pose, picture, dirty);
    },
  };
};

report(
  'draw one 512x512 frame',
  await measure([
    staged('idle: sway, blinks, gaze', 1, false),
    staged('speaking, head moving', 1, true),
    staged(`speaking, ${SESSIONS} sessions in turn`, SESSIONS, true),
    fixed('speaking, head still', said),
    fixed('nothing changed', () => silence),
  ]),
);
report(
  'load a face',
  await measure([{ name: 'parse and derive', run: () => new native.FaceAsset(bytes) }], {
    budgetMs: 500,
  }),
);
