// An uploaded file is memory of its own, not a view into a body that is freed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parseMultipart } from '../../../src/front/http/body.ts';
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
