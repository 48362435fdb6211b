// Local copies of remote blobs: within their bytes, gone when the blob is gone, of use while the
// remote store is away.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type TestContext, test, vi } from 'vitest';
import { FileBlobs } from '../../../src/front/store/blobs.ts';
import { CachedBlobs, type CacheOutcome } from '../../../src/front/store/cached-blobs.ts';
import * as time from '../../../src/base/time.ts';

/** A folder that stands for the remote store. */
class Remote extends FileBlobs {
  isAway = false;
  opened: string[] = [];
  override open(key: string) {
    this.opened.push(key);
    return this.isAway ? Promise.reject(new Error('away')) : super.open(key);
  }
  override stat(key: string) {
    return this.isAway ? Promise.reject(new Error('away')) : super.stat(key);
  }
}

async function setUp(t: TestContext, maxBytes = 100) {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-cache-'));
  t.onTestFinished(async () => {
    vi.restoreAllMocks();
    await rm(directory, { recursive: true, force: true });
  });
  const remote = new Remote(path.join(directory, 'remote'));
  const copies = path.join(directory, 'copies');
  const outcomes: CacheOutcome[] = [];
  const open = (): Promise<CachedBlobs> =>
    CachedBlobs.open(remote, {
      directory: copies,
      maxBytes,
      isKept: (key) => !key.endsWith('.m3u8'),
      observe: (outcome) => outcomes.push(outcome),
    });
  return { remote, blobs: await open(), outcomes, copies, open };
}

async function read(blobs: CachedBlobs, key: string): Promise<string | undefined> {
  const reader = await blobs.open(key);
  if (reader === undefined) {
    return undefined;
  }
  const into = new Uint8Array(reader.sizeBytes);
  assert.equal(await reader.read(into, 0), reader.sizeBytes);
  await reader.close();
  return Buffer.from(into).toString();
}

/** Copies are older than the time for which they are used unasked. */
const later = (): void => {
  const nowMs = time.monotonicMs();
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs + 3_600_000);
};

test('a blob is fetched once, by any number at once; the least recently used makes room', async (t) => {
  const { remote, blobs, outcomes, copies } = await setUp(t);
  for (const key of ['a', 'b', 'c']) {
    await blobs.put(key, Buffer.from(key.repeat(40)));
  }
  const both = await Promise.all([read(blobs, 'a'), read(blobs, 'a')]);
  assert.deepEqual(both, ['a'.repeat(40), 'a'.repeat(40)]);
  await read(blobs, 'b');
  await read(blobs, 'a');
  await read(blobs, 'c'); // b makes room
  assert.equal(blobs.bytes, 80);
  await read(blobs, 'a');
  assert.deepEqual(remote.opened, ['a', 'b', 'c']);
  assert.equal((await readdir(copies)).length, 2);
  await read(blobs, 'b');
  assert.deepEqual(remote.opened, ['a', 'b', 'c', 'b']);
  assert.deepEqual(outcomes, ['miss', 'miss', 'miss', 'hit', 'miss', 'hit', 'miss']);
});

test('what changes, and what is too large, is not kept', async (t) => {
  const { remote, blobs, outcomes } = await setUp(t);
  await blobs.put('list.m3u8', Buffer.from('1'));
  assert.equal(await read(blobs, 'list.m3u8'), '1');
  await remote.put('list.m3u8', Buffer.from('2'));
  assert.equal(await read(blobs, 'list.m3u8'), '2');
  await blobs.put('large', Buffer.alloc(101, 'x'));
  assert.equal((await read(blobs, 'large'))?.length, 101);
  assert.equal(await blobs.open('none'), undefined);
  assert.equal(blobs.bytes, 0);
  assert.ok(outcomes.every((outcome) => outcome === 'bypass'));
});

test('a copy goes with its blob: deleted here or elsewhere, or seen when asked for', async (t) => {
  const { remote, blobs, copies } = await setUp(t);
  for (const key of ['f/1', 'f/2', 'g/1', 'h/1']) {
    await blobs.put(key, Buffer.from(key));
    await read(blobs, key);
  }
  await blobs.delete('f');
  assert.equal(await read(blobs, 'f/1'), undefined);
  await remote.delete('g');
  await blobs.evict('g');
  assert.equal(await read(blobs, 'g/1'), undefined);
  await remote.delete('h');
  later();
  assert.equal(await read(blobs, 'h/1'), undefined);
  assert.deepEqual(await readdir(copies), []);
  assert.equal(blobs.bytes, 0);
});

test('a copy is used while the remote store is away, however old, and no more after a start', async (t) => {
  const { remote, blobs, outcomes, open } = await setUp(t);
  await blobs.put('face', Buffer.from('here'));
  await read(blobs, 'face');
  remote.isAway = true;
  assert.equal(await read(blobs, 'face'), 'here');
  later();
  assert.equal(await read(blobs, 'face'), 'here');
  assert.deepEqual(outcomes, ['miss', 'hit', 'stale']);
  await assert.rejects(blobs.open('other'), /away/);
  await assert.rejects((await open()).open('face'), /away/);
});

test('a disk that takes no copy is not in the way', async (t) => {
  const { blobs, copies } = await setUp(t);
  await blobs.put('face', Buffer.from('here'));
  await rm(copies, { recursive: true });
  await writeFile(copies, 'no folder');
  assert.equal(await read(blobs, 'face'), 'here');
  assert.equal(await read(blobs, 'face'), 'here');
});
