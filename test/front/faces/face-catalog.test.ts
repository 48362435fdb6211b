// The cache of face assets: what it keeps, what it drops, and that a deleted face takes no room.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { FaceCatalog } from '../../../src/front/faces/face-catalog.ts';
import type { Faces } from '../../../src/front/faces/faces.ts';

const MIB = 1024 * 1024;

/** Faces of 1 MiB each, whose files are read when the test says so. */
class FakeFaces {
  readonly opened: string[] = [];
  openFiles = 0;
  /** Waited for before each read. */
  gate: Promise<void> = Promise.resolve();
  /** Bytes that a file is short of. */
  missing = 0;
  #deleted: (faceId: string) => void = () => {};

  readonly require = (_ownerId: string, id: string) => Promise.resolve({ id, status: 'completed' });
  readonly onDelete = (listener: (faceId: string) => void): void => {
    this.#deleted = listener;
  };
  delete(faceId: string): void {
    this.#deleted(faceId);
  }
  readonly openAsset = (_ownerId: string, faceId: string) => {
    this.opened.push(faceId);
    this.openFiles++;
    return Promise.resolve({
      sizeBytes: MIB,
      read: async (into: Uint8Array) => {
        await this.gate;
        return Math.max(0, into.length - this.missing);
      },
      close: () => {
        this.openFiles--;
        return Promise.resolve();
      },
    });
  };
}

const catalogOf = (faces: FakeFaces, megabytes: number): FaceCatalog =>
  new FaceCatalog(faces as unknown as Faces, megabytes);

test('an asset is read once for all, and the least recently used is dropped first', async () => {
  const faces = new FakeFaces();
  const catalog = catalogOf(faces, 2);
  const [first, second] = await Promise.all([catalog.load('o', 'a'), catalog.load('o', 'a')]);
  assert.equal(first, second);
  await catalog.load('o', 'b');
  await catalog.load('o', 'a');
  await catalog.load('o', 'c'); // drops b
  await catalog.load('o', 'a');
  await catalog.load('o', 'b');
  assert.deepEqual(faces.opened, ['a', 'b', 'c', 'b']);
});

test('a face that is deleted while it is read leaves nothing in the account of the cache', async () => {
  const faces = new FakeFaces();
  const catalog = catalogOf(faces, 2);
  for (let round = 0; round < 5; round++) {
    const gate = Promise.withResolvers<void>();
    faces.gate = gate.promise;
    const loading = catalog.load('o', `deleted ${round}`);
    await new Promise(setImmediate);
    faces.delete(`deleted ${round}`);
    gate.resolve();
    await loading;
  }
  faces.opened.length = 0;
  await catalog.load('o', 'a');
  await catalog.load('o', 'b');
  await catalog.load('o', 'a');
  assert.deepEqual(faces.opened, ['a', 'b'], 'two faces of 1 MiB fit into 2 MiB');
});

test('a file that cannot be read is closed, and read again at the next request', async () => {
  const faces = new FakeFaces();
  const catalog = catalogOf(faces, 2);
  faces.missing = MIB;
  await assert.rejects(catalog.load('o', 'a'), /truncated/);
  faces.missing = 0;
  await catalog.load('o', 'a');
  assert.deepEqual([faces.opened, faces.openFiles], [['a', 'a'], 0]);
});
