// Faces of a user over real HTTP on a real Redis: made, used, listed, refused and deleted.
import assert from 'node:assert/strict';
import { readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { FaceRecords } from '../../../src/front/faces/face-records.ts';
import { DEFAULT_LOOK } from '../../../src/media/face-look.ts';
import { sleep } from '../../../src/base/time.ts';
import { patience } from '../../harness/machine.ts';
import { jsonOf, startFrontOfTwo, type TestFront } from '../harness.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
let server: TestFront;
let otherKey: string;

beforeAll(async () => {
  ({ front: server, otherKey } = await startFrontOfTwo());
});
afterAll(() => server.close());

async function upload(bytes: Uint8Array, target = '/faces/legacy?face_name=Me'): Promise<Response> {
  const form = new FormData();
  form.set('image', new File([Buffer.from(bytes)], 'me.webp'));
  return await server.call(target, { method: 'POST', body: form });
}

async function untilDone(faceId: string): Promise<Record<string, unknown>> {
  const deadline = performance.now() + 45_000 * patience();
  while (performance.now() < deadline) {
    const status = await jsonOf(
      await server.call(`/faces/legacy/generation_status?face_id=${faceId}`),
    );
    if (status['status'] === 'completed' || status['status'] === 'failed') {
      return status;
    }
    await sleep(50);
  }
  return assert.fail('the face was never done');
}

test('a face is created, used while pending, visible only to its owner, and deleted', async () => {
  const reply = await upload(await readFile(path.join(ROOT, 'models/faces/ava.webp')));
  assert.equal(reply.status, 200);
  assert.ok(reply.headers.get('deprecation'));
  const created = await jsonOf(reply);
  assert.equal(created['face_id'], created['character_uid']);
  assert.deepEqual(created['warnings'], []);
  const id = String(created['face_id']);
  assert.equal(
    (await server.call('/compose/token', { json: { faceId: id } })).status,
    200,
    'it can be named while pending',
  );
  assert.equal((await untilDone(id))['status'], 'completed');

  const listed = (await (await server.call('/faces')).json()) as {
    id: string;
    name: string;
    owner_id: string | undefined;
  }[];
  assert.deepEqual(
    listed.map(({ id: one, name, owner_id: owner }) => [one, name, owner]),
    [
      [id, 'Me', 'owner-1'],
      ['ava', 'Ava', null],
    ],
  );
  const others = (await (await server.call('/faces', { key: otherKey })).json()) as {
    id: string;
  }[];
  assert.deepEqual(
    others.map(({ id: one }) => one),
    ['ava'],
  );
  assert.equal(
    (await server.call('/compose/token', { json: { faceId: id }, key: otherKey })).status,
    400,
  );
  assert.equal(
    (
      await jsonOf(
        await server.call(`/faces/legacy/generation_status?face_id=${id}`, { key: otherKey }),
      )
    )['status'],
    'not_found',
  );
  assert.equal(
    (await server.call(`/faces/legacy/${id}`, { method: 'DELETE', key: otherKey })).status,
    404,
  );

  const file = path.join(server.dataDir, 'faces', id, 'asset.face');
  await rename(file, `${file}.aside`);
  const gone = await untilDone(id);
  assert.equal(gone['status'], 'failed', 'its files are gone from the disk');
  assert.match(String(gone['error']), /not in the storage.*Upload the picture again/);
  await rename(`${file}.aside`, file);
  assert.equal((await untilDone(id))['status'], 'completed');

  const preview = Buffer.from(await (await server.call(`/faces/${id}/preview`)).arrayBuffer());
  assert.equal(preview.subarray(0, 3).toString('latin1'), '\xff\xd8\xff');
  const asset = await server.services.faceCatalog.load('owner-1', id);
  assert.equal(Buffer.from(asset, 0, 6).toString(), 'MPFACE');
  assert.equal(
    await server.services.faceCatalog.load('owner-1', id),
    asset,
    'loaded once, shared by all sessions',
  );
  await assert.rejects(server.services.faceCatalog.load('owner-2', id), {
    code: 'INVALID_FACE_ID',
  });

  assert.equal((await server.call(`/faces/legacy/${id}`, { method: 'DELETE' })).status, 204);
  assert.equal((await server.call(`/faces/legacy/${id}`, { method: 'DELETE' })).status, 404);
  assert.equal((await server.call('/compose/token', { json: { faceId: id } })).status, 400);
  await assert.rejects(server.services.faceCatalog.load('owner-1', id), {
    code: 'INVALID_FACE_ID',
  });
  assert.equal(asset.byteLength > 0, true, 'a running session keeps what it has');
  assert.equal(
    (await server.call('/faces/legacy/ava', { method: 'DELETE' })).status,
    404,
    "a default face is nobody's to delete",
  );
});

test('an unusable portrait fails at once by its first bytes, or later in its status', async () => {
  const svg = await upload(
    Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'),
  );
  assert.equal(svg.status, 422);
  assert.deepEqual(((await jsonOf(svg))['detail'] as { loc: string[] }[])[0]?.loc, [
    'body',
    'image',
  ]);
  const portrait = await readFile(path.join(ROOT, 'models/faces/ava.webp'));
  const { face_id: cut } = await jsonOf(await upload(portrait.subarray(0, portrait.length / 2)));
  const failed = await untilDone(String(cut));
  assert.equal(failed['status'], 'failed');
  assert.match(String(failed['error']), /damaged|incomplete/);
  for (const [target, more] of [
    ['/compose/token', {}],
    ['/sessions', {}],
    ['/static/audio', { audioBase64: 'AAAA' }],
    ['/auto/start/configurable', { ttsProvider: 'local' }],
  ] as const) {
    const refused = await server.call(target, { json: { faceId: String(cut), ...more } });
    const { code, error } = await jsonOf(refused);
    assert.deepEqual([target, refused.status, code], [target, 400, 'INVALID_FACE_ID']);
    assert.equal(error, `The making of this face failed: ${String(failed['error'])}`);
  }
  await assert.rejects(server.services.faceCatalog.load('owner-1', String(cut)), {
    code: 'INVALID_FACE_ID',
  });
  assert.equal((await server.call(`/faces/${String(cut)}/preview`)).status, 404);
});

test('the queue of faces is bounded; its refusals carry Retry-After', async () => {
  const portrait = await readFile(path.join(ROOT, 'models/faces/noah.webp'));
  const replies = await Promise.all(Array.from({ length: 12 }, () => upload(portrait)));
  const refused = replies.filter(({ status }) => status === 429);
  assert.ok(refused.length > 0 && refused.length < 12, `${refused.length} of 12 refused`);
  assert.equal((await jsonOf(refused[0] as Response))['code'], 'QUEUE_FULL');
  assert.ok(refused[0]?.headers.get('retry-after'));
  const accepted = await Promise.all(replies.filter(({ status }) => status === 200).map(jsonOf));
  const positions = await Promise.all(
    accepted.map(
      async ({ face_id: id }) =>
        (await jsonOf(await server.call(`/faces/legacy/generation_status?face_id=${String(id)}`)))[
          'queue_position'
        ],
    ),
  );
  assert.ok(
    positions.some((position) => Number(position) >= 1),
    'those that wait know their place',
  );
  for (const { face_id: id } of accepted) {
    assert.equal(
      (await server.call(`/faces/legacy/${String(id)}`, { method: 'DELETE' })).status,
      204,
    );
  }
});

test('a face as a resource: made, read, renamed and deleted, by its owner alone', async () => {
  const form = new FormData();
  const portrait = await readFile(path.join(ROOT, 'models/faces/ava.webp'));
  form.set('image', new File([Buffer.from(portrait)], 'me.webp'));
  form.set('name', 'First name');
  form.set('size', '720x720');
  form.set('background', '#203040');
  const made = await server.call('/faces', { method: 'POST', body: form });
  assert.equal(made.status, 202);
  assert.equal(made.headers.get('deprecation'), null);
  const address = made.headers.get('location')!;
  const { id, name, status } = await jsonOf(made);
  assert.deepEqual([address, name], [`/faces/${String(id)}`, 'First name']);
  assert.match(String(status), /^(?:pending|processing)$/);
  assert.equal((await untilDone(String(id)))['status'], 'completed');

  const read = await jsonOf(await server.call(address));
  assert.deepEqual([read['status'], read['warnings']], ['completed', []]);
  const { size, framing, background } = read;
  assert.deepEqual([size, framing, background], ['720x720', 'head', '#203040']);
  form.set('background', 'pink');
  assert.equal((await server.call('/faces', { method: 'POST', body: form })).status, 422);
  const renamed = await server.call(address, { method: 'PATCH', json: { name: ' Second name ' } });
  assert.deepEqual([renamed.status, (await jsonOf(renamed))['name']], [200, 'Second name']);
  const wrong = await server.call(address, { method: 'PATCH', json: { name: '' } });
  assert.equal(wrong.status, 422);
  for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
    const json = method === 'PATCH' ? { json: { name: 'theirs' } } : {};
    assert.equal((await server.call(address, { method, key: otherKey, ...json })).status, 404);
  }
  const fixed = await server.call('/faces/ava', { method: 'PATCH', json: { name: 'mine' } });
  assert.equal(fixed.status, 404, 'default faces belong to the server');
  assert.equal((await jsonOf(await server.call('/faces/ava')))['status'], 'completed');

  assert.equal((await server.call(address, { method: 'DELETE' })).status, 204);
  assert.equal((await server.call(address)).status, 404);
});

test('at the limit of faces the oldest that failed makes room, and no other', async () => {
  const { store } = server.store;
  const records = new FaceRecords(store);
  const ownerId = 'owner-1';
  const failed: string[] = [];
  for (let n = await records.count(ownerId); n < 1000; n++) {
    const { id } = await records.create(ownerId, `face ${n}`, DEFAULT_LOOK);
    const hasFailed = n === 990 || n === 995;
    await records.update(id, { status: hasFailed ? 'failed' : 'completed' });
    if (hasFailed) {
      failed.push(id);
    }
  }
  const portrait = await readFile(path.join(ROOT, 'models/faces/ava.webp'));
  for (const id of [...failed, undefined]) {
    // Those that failed in other tests go first.
    while (id !== undefined && (await server.call(`/faces/${id}`)).status === 200) {
      assert.equal((await upload(portrait)).status, 200);
    }
  }
  assert.equal(await records.count(ownerId), 1000);
  const refused = await upload(portrait);
  assert.deepEqual([refused.status, (await jsonOf(refused))['code']], [409, 'CONFLICT']);
  for (const { id } of await records.list(ownerId)) {
    await server.call(`/faces/${id}`, { method: 'DELETE' });
  }
});

test('a form with two portraits is refused, as one with any part twice', async () => {
  const portrait = await readFile(path.join(ROOT, 'models/faces/ava.webp'));
  const twice = async (target: string, field: string): Promise<void> => {
    const form = new FormData();
    form.set('name', 'First name');
    form.set('image', new File([Buffer.from(portrait)], 'me.webp'));
    form.append(field, field === 'image' ? new File([Buffer.from(portrait)], 'b.webp') : 'b');
    const refused = await server.call(target, { method: 'POST', body: form });
    assert.equal(refused.status, 422, `${target} with two parts '${field}'`);
    const { detail } = (await jsonOf(refused)) as { detail: { loc: string[]; msg: string }[] };
    assert.deepEqual(detail[0]?.loc, ['body', field]);
    assert.match(detail[0].msg, /more than one part of this name/);
  };
  await twice('/faces', 'image');
  await twice('/faces', 'name');
  await twice('/faces/legacy', 'image');
});

test('an upload that is no form with a file is told what it lacks', async () => {
  for (const target of ['/faces', '/faces/legacy']) {
    const send = async (type: string, body: string): Promise<Response> =>
      await server.call(target, { method: 'POST', headers: { 'content-type': type }, body });
    const json = await send('application/json', '{}');
    assert.equal(json.status, 415);
    assert.match(String((await jsonOf(json))['error']), /^Send the body as multipart\/form-data/);
    const part = 'content-disposition: form-data; name="image"\r\n\r\nbytes';
    const form = `--b\r\n${part}\r\n--b--\r\n`;
    const unbounded = await send('multipart/form-data', form);
    assert.equal(unbounded.status, 415);
    assert.match(String((await jsonOf(unbounded))['error']), /has no boundary/);
    const text = await send('multipart/form-data; boundary=b', form);
    assert.equal(text.status, 422);
    const { detail } = (await jsonOf(text)) as { detail: { loc: string[]; msg: string }[] };
    assert.deepEqual(detail[0]?.loc, ['body', 'image']);
    assert.match(detail[0].msg, /has no file name/);
    const empty = form.replace('"image"\r\n\r\nbytes', '"image"; filename="a.png"\r\n\r\n');
    const { detail: issues } = (await jsonOf(
      await send('multipart/form-data; boundary=b', empty),
    )) as { detail: { msg: string }[] };
    assert.equal(issues[0]?.msg, 'Send a file that is not empty');
  }
});
