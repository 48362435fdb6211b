// What a face does when it is told: nods, shakes, looks, smiles and emotions, on top of its own
// motion.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  ARTICULATION_SIZE,
  ARTICULATOR_INDEX,
  EMOTIONS,
  type Motion,
  POSE_INDEX,
} from '../../../src/media/articulation.ts';
import type { LookCommand } from '../../../src/pipeline/render/renderer.ts';
import { native } from '../../../src/native/addon.ts';
import { RigRenderer } from '../../../src/pipeline/render/rig-renderer.ts';
import { Canvas, chroma, INSIDE, SIZE, syntheticAsset } from './synthetic-face.ts';

const asset = new native.FaceAsset(syntheticAsset());
const rest = new Float32Array(ARTICULATION_SIZE);

/** The poses and the last picture of a face that is told something before its tenth frame. */
function poses(command: LookCommand | undefined, count = 60) {
  const look = { seed: 9, emotion: 0, motion: 'none', startFrame: 0 } as const;
  const face = new RigRenderer(asset, look);
  const all: Float32Array[] = [];
  for (let frame = 0; frame < count; frame++) {
    if (frame === 10 && command !== undefined) {
      face.obey(command);
    }
    face.draw(frame, rest, false);
    all.push(face.pose.slice());
  }
  const of = (channel: keyof typeof POSE_INDEX): number[] =>
    all.map((pose) => pose[POSE_INDEX[channel]]!);
  return { of, picture: face.picture };
}
const turns = (values: readonly number[]): number =>
  values.filter((value, i) => {
    const [before = value, after = value] = [values[i - 1], values[i + 1]];
    return value > 0.01 && value > before && value >= after;
  }).length;

test('a nod goes down twice and ends; the eyes stay on the viewer', () => {
  const pitch = poses({ type: 'gesture', gesture: 'nod' }).of('pitch');
  assert.equal(turns(pitch), 2);
  assert.ok(Math.min(...pitch) >= 0 && Math.max(...pitch) < 0.1, String(Math.max(...pitch)));
  assert.ok(pitch.slice(0, 10).every((value) => value === 0));
  assert.ok(pitch.slice(40).every((value) => value === 0));
});

test('a shake goes to both sides and ends', () => {
  const yaw = poses({ type: 'gesture', gesture: 'shake' }).of('yaw');
  assert.ok(Math.max(...yaw) > 0.03 && Math.min(...yaw) < -0.03);
  assert.ok(yaw.slice(50).every((value) => value === 0));
});

test('the eyes look where they are told, for as long, and go on by themselves', () => {
  const told = poses({ type: 'gaze', x: 0.8, y: -0.4, seconds: 1 });
  const own = poses(undefined);
  const [x, y] = [told.of('gazeX'), told.of('gazeY')];
  assert.ok(Math.abs(x[14]! - 0.8) < 0.05 && Math.abs(y[14]! + 0.4) < 0.05, `${x[14]} ${y[14]}`);
  assert.ok(Math.abs(x[38]! - 0.8) < 0.01);
  assert.deepEqual(x.slice(45), own.of('gazeX').slice(45));
});

test('a smile passes; an emotion stays', () => {
  /** Mean difference of a picture to one of a face that was told nothing. */
  const difference = (command: LookCommand, count: number): number => {
    const own = poses(undefined, count).picture;
    const told = poses(command, count).picture;
    return own.reduce((sum, value, i) => sum + Math.abs(value - told[i]!), 0) / own.length;
  };
  const smile = { type: 'gesture', gesture: 'smile' } as const;
  const [smiling, after] = [difference(smile, 50), difference(smile, 150)];
  const happy = difference({ type: 'emotion', emotion: 'happy', strength: 1 }, 150);
  // What has moved is drawn again where it moved by more than can be seen: hence the small rest.
  assert.ok(after < smiling / 3, `${smiling} while it smiles, ${after} afterwards`);
  assert.ok(happy > 2 * after, `${happy} when it is happy`);
});

test('each emotion is borne and shown in its own way; a head that is to be still is', () => {
  const faces = EMOTIONS.map((_, emotion) => {
    const at = (motion: Motion, channel: keyof typeof POSE_INDEX): number => {
      const face = new RigRenderer(asset, { seed: 9, emotion, motion, startFrame: 0 });
      let sum = 0;
      for (let frame = 0; frame < 300; frame++) {
        face.draw(frame, rest, false);
        sum += face.pose[POSE_INDEX[channel]]! / 300;
      }
      picture = face.picture;
      return sum;
    };
    let picture: Uint8Array = new Uint8Array();
    const still = at('none', 'pitch');
    return { picture, still, pitch: at('natural', 'pitch'), gazeY: at('natural', 'gazeY') };
  });
  for (const [i, { picture, still }] of faces.entries()) {
    assert.equal(still, 0);
    for (const other of faces.slice(0, i)) {
      const sum = picture.reduce((all, y, at) => all + Math.abs(y - other.picture[at]!), 0);
      assert.ok(sum / picture.length > 0.05, `${EMOTIONS[i]!} is like another emotion`);
    }
  }
  const [neutral, , sad, surprised] = faces;
  assert.ok(sad!.pitch > neutral!.pitch + 0.02, 'a sad head is bowed');
  assert.ok(sad!.gazeY > neutral!.gazeY + 0.1, 'and looks down');
  assert.ok(surprised!.pitch < neutral!.pitch - 0.02, 'a surprised one is raised');
});

test('the mouth of a surprised face is open and not spread; as it speaks, only speech drops the jaw', () => {
  const speaking = new Float32Array(ARTICULATION_SIZE);
  speaking[ARTICULATOR_INDEX.speech] = 1;
  /** Width and height of what is inside the lips. */
  const opening = (emotion: number, articulation: Float32Array): [number, number] => {
    const canvas = new Canvas(asset);
    canvas.renderer.setEmotion(emotion, 1);
    for (let frame = 0; frame < 60; frame++) {
      canvas.draw(articulation);
    }
    const [columns, rows] = [new Set<number>(), new Set<number>()];
    for (let y = 280; y < 400; y += 2) {
      for (let x = 0; x < SIZE; x += 2) {
        if (canvas.picture[chroma(x, y)]! > 0.7 * INSIDE) {
          columns.add(x);
          rows.add(y);
        }
      }
    }
    return [2 * columns.size, 2 * rows.size];
  };
  const surprised = EMOTIONS.indexOf('surprised');
  const [width, height] = opening(surprised, rest);
  const [wide, high] = opening(surprised, speaking);
  assert.ok(height > 16 && height > 0.25 * width, `${width} x ${height}`);
  assert.ok(width < wide && high < 0.9 * height, `${wide} x ${high} in speech`);
  assert.equal(opening(EMOTIONS.indexOf('sad'), rest)[1], 0);
});
