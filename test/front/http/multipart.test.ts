// An uploaded file is memory of its own, not a view into a body that is freed.
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parseMultipart } from '../../../src/front/http/body.ts';
import { ValidationError } from '../../../src/front/http/validate.ts';
import type { MultipartFile } from '../../../src/front/http/route.ts';

const MIB = 1024 * 1024;

function uploadOf(fill: number, sizeBytes: number): MultipartFile {
  const body = Buffer.concat([
    Buffer.from('--b\r\nContent-Disposition: form-data; name="image"; filename="x.png"\r\n'),
    Buffer.from('Content-Type: image/png\r\n\r\n'),
    Buffer.alloc(sizeBytes, fill), Buffer.from('\r\n--b--\r\n'),
  ]);
  return parseMultipart(body, 'multipart/form-data; boundary=b')['image'] as MultipartFile;
}

test('a file outlives the body it came in', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const uploads = [1, 2, 3, 4, 5].map((fill) => ({ fill, file: uploadOf(fill, 4 * MIB + fill) }));
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

test('a file holds no more memory than its bytes', () => {
  const file = uploadOf(7, 1000);
  assert.equal(file.bytes.buffer.byteLength, 1000);
  assert.equal(file.bytes.byteOffset, 0);
});

test('a body of many small parts is refused before they are parsed', () => {
  const part = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n';
  const type = 'multipart/form-data; boundary=b';
  assert.deepEqual(parseMultipart(Buffer.from(`${part.repeat(32)}--b--\r\n`), type), { a: '1' });
  const many = Buffer.from(part.repeat(100_000));
  const startedMs = performance.now();
  assert.throws(() => parseMultipart(many, type), (error) => error instanceof ValidationError && /more than 32 parts/.test(error.issues[0]!.msg));
  assert.ok(performance.now() - startedMs < 50, 'parsing them would take half a second');
});
