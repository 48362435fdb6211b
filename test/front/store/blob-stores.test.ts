// One behaviour of all blob stores: a folder, and a bucket on an S3 server from npm that checks
// signatures, and on versitygw where that is at hand.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, test, vi } from 'vitest';
import { type BlobReader, type BlobStore, FileBlobs } from '../../../src/front/store/blobs.ts';
import { S3Blobs } from '../../../src/front/store/s3-blobs.ts';
import {
  S3_BUCKET,
  S3_CREDENTIALS,
  S3TestServer,
  startVersitygw,
  VERSITYGW_PROGRAM,
} from '../../harness/s3-server.ts';

let s3: S3TestServer;
let versitygw: Awaited<ReturnType<typeof startVersitygw>> | undefined;
let directory: string;
beforeAll(async () => {
  for (const [name, value] of Object.entries(S3_CREDENTIALS)) {
    vi.stubEnv(name, value);
  }
  s3 = await S3TestServer.start();
  versitygw = VERSITYGW_PROGRAM === undefined ? undefined : await startVersitygw();
  directory = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-blob-stores-'));
});
afterAll(async () => {
  await Promise.all([s3.stop(), versitygw?.stop()]);
  await rm(directory, { recursive: true, force: true });
  vi.unstubAllEnvs();
});

const STORES: Record<string, () => Promise<BlobStore>> = {
  folder: () => Promise.resolve(new FileBlobs(path.join(directory, 'folder'))),
  S3: () => bucketOf(s3.url),
  versitygw: () => bucketOf(versitygw!.url),
};

const bucketOf = (endpoint: string): Promise<BlobStore> =>
  S3Blobs.open({
    bucket: S3_BUCKET,
    endpoint,
    region: 'us-east-1',
    isPathStyle: true,
    prefix: 'some/prefix/',
    links: { endpoint: undefined, isLinked: (key) => key.endsWith('.mp4') },
    draftDir: path.join(directory, 'drafts'),
  });

async function readAll(reader: BlobReader, start = 0, step = 65_536): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let at = start; ;) {
    const into = new Uint8Array(step);
    const got = await reader.read(into, at);
    if (got === 0) {
      return Buffer.concat(parts);
    }
    parts.push(Buffer.from(into.subarray(0, got)));
    at += got;
  }
}
const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** The behaviour of one store. */
function behavesAs(name: string): void {
  let blobs: BlobStore;
  beforeAll(async () => {
    blobs = await STORES[name]!();
  });

  test('what was put can be had, whole and in parts, until it is deleted', async () => {
    await blobs.put('faces/a/asset.face', Buffer.from('first'));
    await blobs.put('faces/a/asset.face', Buffer.from('0123456789'));
    assert.equal((await blobs.get('faces/a/asset.face'))?.toString(), '0123456789');
    const known = (await blobs.stat('faces/a/asset.face'))!;
    assert.equal(known.sizeBytes, 10);
    assert.match(known.etag, /^"[^"]+"$/);
    assert.ok(Math.abs(known.modifiedMs - Date.now()) < 60_000);

    const reader = (await blobs.open('faces/a/asset.face'))!;
    assert.deepEqual([reader.sizeBytes, reader.etag], [10, known.etag]);
    assert.equal((await readAll(reader, 0, 4)).toString(), '0123456789');
    assert.equal((await readAll(reader, 7)).toString(), '789');
    assert.equal(await reader.read(new Uint8Array(4), 10), 0);
    await reader.close();

    await blobs.delete('faces/a/asset.face');
    assert.equal(await blobs.get('faces/a/asset.face'), undefined);
    assert.equal(await blobs.open('faces/a/asset.face'), undefined);
    assert.equal(await blobs.stat('faces/a/asset.face'), undefined);
    await blobs.delete('faces/a/asset.face');
  });

  test('names are listed by folder; a folder is deleted with what is below it', async () => {
    await Promise.all(
      [
        'static/v1/hls/a.m4s',
        'static/v1/hls/b.m4s',
        'static/v1/output.mp4',
        'static/v10/upload',
      ].map((key) => blobs.put(key, Buffer.from(key))),
    );
    assert.deepEqual((await blobs.list('static')).sort(), ['v1', 'v10']);
    assert.deepEqual((await blobs.list('static/v1')).sort(), ['hls', 'output.mp4']);
    assert.deepEqual((await blobs.list('static/v1/hls')).sort(), ['a.m4s', 'b.m4s']);
    assert.deepEqual(await blobs.list('nothing'), []);
    await blobs.delete('static/v1');
    assert.deepEqual(await blobs.list('static'), ['v10']);
    assert.equal((await blobs.get('static/v10/upload'))?.toString(), 'static/v10/upload');
  });

  test('a large file is adopted from its draft and read in pieces', async () => {
    const bytes = randomBytes(9 << 20);
    const draft = await blobs.draft('static/v2/output.mp4');
    await writeFile(draft, bytes);
    await blobs.adopt('static/v2/output.mp4', draft);
    const reader = (await blobs.open('static/v2/output.mp4'))!;
    assert.equal(digest(await readAll(reader)), digest(bytes));
    assert.equal(digest(await readAll(reader, 5_000_000)), digest(bytes.subarray(5_000_000)));
    await reader.close();
    assert.ok(!(await readdir(path.dirname(draft))).includes(path.basename(draft)));
  });

  test('a key is a path of plain names', async () => {
    for (const key of ['../a', 'a//b', '/a', 'a/', '.a', 'a b', 'x'.repeat(301)]) {
      await assert.rejects(() => blobs.get(key), RangeError, key);
    }
  });
}

describe.each(['folder', 'S3'])('%s', behavesAs);
describe.skipIf(VERSITYGW_PROGRAM === undefined)('versitygw', () => {
  behavesAs('versitygw');
});

test.for(VERSITYGW_PROGRAM === undefined ? ['S3'] : ['S3', 'versitygw'])(
  'a signed URL of %s gives anybody one blob, with ranges',
  async (name) => {
    const blobs = await STORES[name]!();
    await blobs.put('static/v3/output.mp4', Buffer.from('0123456789'));
    await blobs.put('static/v3/upload', Buffer.from('secret'));
    assert.equal((await blobs.open('static/v3/upload'))!.link, undefined);
    const url = await (await blobs.open('static/v3/output.mp4'))!.link!();
    const part = await fetch(url, { headers: { range: 'bytes=2-3' } });
    assert.deepEqual([part.status, await part.text()], [206, '23']);
    assert.equal(part.headers.get('content-type'), 'video/mp4');
    assert.equal(part.headers.get('cache-control'), 'public, max-age=3600, immutable');
    assert.equal((await fetch(url.replace('output.mp4', 'upload'))).status, 403);
  },
);

test('a bucket that does not exist, and wrong credentials, are not taken for missing blobs', async () => {
  const options = {
    bucket: 'another',
    endpoint: s3.url,
    region: 'us-east-1',
    isPathStyle: true,
    prefix: '',
    links: undefined,
    draftDir: path.join(directory, 'other'),
  };
  const other = await S3Blobs.open(options);
  await assert.rejects(other.get('a'), { name: 'NoSuchBucket' });
  await assert.rejects(other.put('a', Buffer.from('b')), { name: 'NoSuchBucket' });
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'wrong');
  const stranger = await S3Blobs.open({ ...options, bucket: S3_BUCKET });
  await assert.rejects(stranger.put('a', Buffer.from('b')), { name: 'SignatureDoesNotMatch' });
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', S3_CREDENTIALS.AWS_SECRET_ACCESS_KEY);
});
