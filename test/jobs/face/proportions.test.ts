// Which faces have the proportions of people.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { UNLIKE_PEOPLE, unlikePeople } from '../../../src/jobs/face/detect/proportions.ts';
import { decodeFaceAsset } from '../../../src/media/face-asset.ts';

const FACES = path.join(import.meta.dirname, '../../../models/build/faces');

test('the default faces have the proportions of people', () => {
  const files = readdirSync(FACES).filter((name) => name.endsWith('.face'));
  assert.ok(files.length > 0);
  for (const file of files) {
    const { landmarks } = decodeFaceAsset(readFileSync(path.join(FACES, file)));
    const unlike = unlikePeople(landmarks, 1);
    assert.ok(unlike < UNLIKE_PEOPLE - 1, `${file}: ${unlike}`);
  }
});
