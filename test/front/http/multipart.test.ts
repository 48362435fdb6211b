// An uploaded file is memory of its own: uWebSockets.js gives views into the body, which do not keep the body alive.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parseMultipart } from '../../../src/front/http/body.ts';
import type { MultipartFile } from '../../../src/front/http/route.ts';

const MIB = 1024 * 1024;

function uploadOf(fill: number, sizeBytes: number): MultipartFile {
  const body = Buffer.concat([
    Buffer.from('--b\r\nContent-Disposition: form-data; name="image"; filename="x.png"\r\nContent-Type: image/png\r\n\r\n'),
    Buffer.alloc(sizeBytes, fill), Buffer.from('\r\n--b--\r\n'),
  ]);
  return parseMultipart(body, 'multipart/form-data; boundary=b')['image'] as MultipartFile;
}

test('a file outlives the body it came in', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const uploads = Array.from({ length: 6 }, (_, index) => ({ index, file: uploadOf(index + 1, 4 * MIB + index) }));
  collect();
  collect();
  const others = Array.from({ length: 6 }, () => Buffer.alloc(4 * MIB, 0xee)); // takes what was freed
  for (const { index, file } of uploads) {
    assert.equal(file.bytes.length, 4 * MIB + index);
    assert.equal(file.bytes.findIndex((byte) => byte !== index + 1), -1, `upload ${index} holds the bytes of another`);
  }
  assert.equal(others.length, 6);
});

test('a file holds no more memory than its bytes', () => {
  const file = uploadOf(7, 1000);
  assert.equal(file.bytes.buffer.byteLength, 1000);
  assert.equal(file.bytes.byteOffset, 0);
});
