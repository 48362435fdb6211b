// Multipart forms: an uploaded file is memory of its own; what is malformed or endless is refused;
// no body holds the thread.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { copyOf } from '../../../src/front/http/copy.ts';
import { parseMultipart } from '../../../src/front/http/multipart.ts';
import type { MultipartFile } from '../../../src/front/http/route.ts';
import { ValidationError } from '../../../src/front/http/validate.ts';
import { native } from '../../../src/native/addon.ts';
import { isWithin } from '../../harness/machine.ts';

const MIB = 1024 * 1024;

async function uploadOf(fill: number, sizeBytes: number): Promise<MultipartFile> {
  const body = Buffer.concat([
    Buffer.from('--b\r\nContent-Disposition: form-data; name="image"; filename="x.png"\r\n'),
    Buffer.from('Content-Type: image/png\r\n\r\n'),
    Buffer.alloc(sizeBytes, fill),
    Buffer.from('\r\n--b--\r\n'),
  ]);
  return (await parseMultipart(body, 'multipart/form-data; boundary=b'))['image'] as MultipartFile;
}

test('a file stays valid after its body is freed', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const uploads = await Promise.all(
    [1, 2, 3, 4, 5].map(async (fill) => ({ fill, file: await uploadOf(fill, 4 * MIB + fill) })),
  );
  collect();
  collect();
  const others = Array.from({ length: 6 }, () => Buffer.alloc(4 * MIB, 0xee)); // takes what was freed
  for (const { fill, file } of uploads) {
    assert.equal(file.bytes.length, 4 * MIB + fill);
    const foreign = file.bytes.findIndex((byte) => byte !== fill);
    assert.equal(foreign, -1, `upload ${fill} holds the bytes of another`);
  }
  assert.equal(others.length, 6);
});

test('a file holds no more memory than its bytes', async () => {
  const file = await uploadOf(7, 1000);
  assert.equal(file.bytes.buffer.byteLength, 1000);
  assert.equal(file.bytes.byteOffset, 0);
});

/** How often others get the thread while `work` runs. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) {
      setImmediate(count);
    }
  };
  setImmediate(count);
  await work();
  isOver = true;
  return turns;
}

test('a large body and its file are copied one MiB at a time', async () => {
  const chunks = Array.from({ length: 20 }, () => Buffer.alloc(MIB, 7));
  const joined = await turnsDuring(async () => {
    const bytes = await copyOf([...chunks, Buffer.alloc(5 * MIB, 8)]);
    assert.equal(bytes.length, 25 * MIB);
    assert.equal(bytes.indexOf(8), 20 * MIB);
  });
  assert.ok(joined >= 20, `${joined} turns in 25 MiB`);
  // One turn for each MiB that is searched, one for each that is copied.
  const parsed = await turnsDuring(() => uploadOf(7, 20 * MIB));
  assert.ok(parsed >= 30, `${parsed} turns in 20 MiB`);
});

test('many bodies at once take turns: one slice of them all in each turn of the event loop', async () => {
  const type = 'multipart/form-data; boundary=b';
  const bodies = Array.from({ length: 8 }, () =>
    Buffer.concat([
      Buffer.from('--b\r\nContent-Disposition: form-data; name="image"; filename="f"\r\n\r\n'),
      Buffer.alloc(8 * MIB, 1),
      Buffer.from('\r\n--b--'),
    ]),
  );
  const turns = await turnsDuring(() =>
    Promise.all(bodies.map((body) => parseMultipart(body, type))),
  );
  // Each body is searched and its file copied.
  assert.ok(turns >= 8 * (8 + 8), `${turns} turns for 8 bodies of 8 MiB`);
});

test('a body of many small parts is refused before they are parsed', async () => {
  const parts = (count: number): string =>
    Array.from(
      { length: count },
      (_, n) => `--b\r\nContent-Disposition: form-data; name="a${n}"\r\n\r\n1\r\n`,
    ).join('');
  const type = 'multipart/form-data; boundary=b';
  const most = await parseMultipart(Buffer.from(`${parts(32)}--b--\r\n`), type);
  assert.equal(Object.keys(most).length, 32);
  const many = Buffer.from(parts(100_000));
  const startedMs = native.threadCpuMs();
  await assert.rejects(
    parseMultipart(many, type),
    (error) => error instanceof ValidationError && /more than 32 parts/.test(error.issues[0]!.msg),
  );
  assert.ok(
    isWithin(native.threadCpuMs() - startedMs, 50),
    'parsing them would take half a second',
  );
});

const TYPE = 'multipart/form-data; boundary=b';
const parse = (body: string): Promise<Record<string, MultipartFile | string>> =>
  parseMultipart(Buffer.from(body), TYPE);
const refusalOf = async (body: string | Buffer, type = TYPE): Promise<string> => {
  try {
    await parseMultipart(typeof body === 'string' ? Buffer.from(body) : body, type);
    return '';
  } catch (error) {
    assert.ok(error instanceof ValidationError, String(error));
    assert.equal(error.issues[0]?.type, 'multipart_invalid');
    return error.issues[0].msg;
  }
};
const part = (header: string, body: string): string => `--b\r\n${header}\r\n\r\n${body}\r\n`;

test('fields are parsed as clients write them', async () => {
  const form = await parse(
    `a preamble\r\n${part('Content-Disposition: form-data; name="text"', 'gr\u00fc\u00df')}` +
      part(
        'content-disposition: form-data; filename="a \\"b\\";c=\u00e9.png"; ' +
          'name=file\r\nContent-Type: image/png',
        '\r\n--c',
      ) +
      part('Content-Disposition:form-data;name="path";filename="C:\\x\\y.jpg"', '') +
      part('Content-Disposition: form-data; filename="nameless"', 'x') +
      '--b  \r\n\r\nno header\r\n--b--\r\nan epilogue',
  );
  assert.deepEqual(Object.keys(form), ['text', 'file', 'path']);
  assert.equal(form['text'], 'gr\u00fc\u00df');
  const file = form['file'] as MultipartFile;
  assert.deepEqual(
    [file.field, file.fileName, file.contentType],
    ['file', 'a "b";c=\u00e9.png', 'image/png'],
  );
  assert.equal(Buffer.from(file.bytes).toString(), '\r\n--c');
  assert.deepEqual(
    [(form['path'] as MultipartFile).fileName, (form['path'] as MultipartFile).bytes.length],
    ['C:\\x\\y.jpg', 0],
  );
  assert.deepEqual(await parse('--b--'), {});
  assert.deepEqual(
    await parse(`--b\r\nContent-Disposition: form-data; name="empty"\r\n\r\n\r\n--b--`),
    {
      empty: '',
    },
  );
});

test('an invalid form, or one with too many parts, is refused with a message', async () => {
  const field = part('Content-Disposition: form-data; name="a"', 'x');
  const fields = Array.from({ length: 33 }, (_, n) => field.replace('"a"', `"a${n}"`));
  assert.equal(await refusalOf(`${fields.slice(1).join('')}--b--`), '');
  assert.match(await refusalOf(`${fields.join('')}--b--`), /more than 32 parts/);
  assert.match(await refusalOf(`${field}${field}--b--`), /more than one part of this name/);
  assert.match(await refusalOf(field), /closing boundary is missing/);
  assert.match(await refusalOf(''), /boundary is missing/);
  assert.match(await refusalOf('--bc\r\n\r\nx\r\n--b--'), /not valid/);
  assert.match(
    await refusalOf(`${part(`X: ${'x'.repeat(9000)}`, 'x')}--b--`),
    /header does not end within 8 KiB/,
  );
  const text = (bytes: number): string =>
    `${part('Content-Disposition: form-data; name="a"', 'x'.repeat(bytes))}--b--`;
  assert.equal(await refusalOf(text(65_536)), '');
  assert.match(await refusalOf(text(65_537)), /without a file name is longer than 64 KiB/);
});

/**
 * The longest computing without a turn of the event loop while a body is read, in ms of the
 * processor: time in which the thread waited for a core is not the parser's.
 */
async function longestHoldMs(body: Buffer, type: string): Promise<number> {
  let isOver = false;
  let longestMs = 0;
  const watch = async (): Promise<void> => {
    for (let lastMs = native.threadCpuMs(); !isOver; lastMs = native.threadCpuMs()) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      longestMs = Math.max(longestMs, native.threadCpuMs() - lastMs);
    }
  };
  const watching = watch();
  await refusalOf(body, type);
  isOver = true;
  await watching;
  return longestMs;
}

/** A slice takes 7 ms at worst, a file's copy as long. */
const LIMIT_MS = 30;

test('32 MiB of any content block the thread only briefly', async () => {
  const size = 32 * MIB;
  const start = '--b\r\nContent-Disposition: form-data; name="image"; filename="f"\r\n\r\n';
  const bodies: Record<string, [string, Buffer]> = {
    'parts by the million': ['b', Buffer.from('--b\r\n\r\n\r\n'.repeat(size / 11))],
    'line ends': ['b', Buffer.concat([Buffer.from(start), Buffer.alloc(size, '\r\n')])],
    'beginnings of a boundary': [
      'b',
      Buffer.concat([Buffer.from(start), Buffer.alloc(size, '\r\n--')]),
    ],
    dashes: [
      `${'-'.repeat(60)}x`,
      Buffer.concat([
        Buffer.from(start.replace('b', `${'-'.repeat(60)}x`)),
        Buffer.alloc(size, '-'),
      ]),
    ],
    'a preamble': ['b', Buffer.alloc(size, '\r')],
  };
  for (const [name, [boundary, body]] of Object.entries(bodies)) {
    let holdMs = Infinity;
    for (let run = 0; run < 5 && !isWithin(holdMs, LIMIT_MS); run++) {
      holdMs = Math.min(
        holdMs,
        await longestHoldMs(body, `multipart/form-data; boundary=${boundary}`),
      );
    }
    console.info(`${name}: ${holdMs.toFixed(1)} ms`);
    assert.ok(isWithin(holdMs, LIMIT_MS), `${name}: ${holdMs.toFixed(0)} ms`);
  }
});
