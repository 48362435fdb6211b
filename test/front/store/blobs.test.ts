// Files as blobs when the disk fails: nothing of a failed write stays open or on disk.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test, vi } from 'vitest';
import { FileBlobs } from '../../../src/front/store/blobs.ts';

/** Files below `directory` that this process has open. */
const openFiles = (directory: string): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${fd}`);
      return file.startsWith(directory) ? [file] : [];
    } catch {
      return [];
    }
  });

test('a write that fails when it is flushed leaves no open file and no part behind', async (t) => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-blobs-'));
  t.onTestFinished(() => {
    vi.restoreAllMocks();
    rmSync(directory, { recursive: true, force: true });
  });
  const blobs = new FileBlobs(directory);
  await blobs.put('good', Buffer.from('1'));
  const probe = await open(path.join(directory, 'good'));
  const prototype = Object.getPrototypeOf(probe) as FileHandle;
  await probe.close();
  // As a disk quota or a network file system does: the write is taken, the flush fails.
  vi.spyOn(prototype, 'sync').mockRejectedValue(new Error('EDQUOT'));
  for (let round = 0; round < 3; round++) {
    await assert.rejects(blobs.put('folder/file', Buffer.from('2')), /EDQUOT/);
  }
  assert.deepEqual(openFiles(directory), []);
  assert.deepEqual(readdirSync(path.join(directory, 'folder')), []);
  vi.restoreAllMocks();
  // And where a folder is in the way of the rename.
  await mkdir(path.join(directory, 'folder/file/sub'), { recursive: true });
  await assert.rejects(blobs.put('folder/file', Buffer.from('2')));
  assert.deepEqual(openFiles(directory), []);
  assert.deepEqual(readdirSync(path.join(directory, 'folder')), ['file']);
});
