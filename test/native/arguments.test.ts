// The addon refuses invalid arguments with a descriptive error and never crashes.
import assert from 'node:assert/strict';
import process from 'node:process';
import { test } from 'vitest';
import { setImmediate } from 'node:timers/promises';
import { i420Bytes, macroblocks } from '../../src/media/picture.ts';
import { native } from '../../src/native/addon.ts';

const VIDEO = { codec: 'vp8', width: 64, height: 48, fps: 30, bitrateKbps: 300 } as const;
const PICTURE = i420Bytes(64, 48);
// Calls as a caller without TypeScript could make them.
const loose = native as unknown as Record<
  string,
  new (...args: unknown[]) => Record<string, (...args: unknown[]) => unknown>
>;
const functions = native as unknown as Record<string, (...args: unknown[]) => unknown>;

function detached<T extends Uint8Array | Int16Array>(array: T): T {
  structuredClone(array.buffer, { transfer: [array.buffer as ArrayBuffer] });
  return array;
}

test('constructors check every option', () => {
  const wrong: readonly (readonly [
    string,
    unknown,
    typeof TypeError | typeof RangeError,
    RegExp,
  ])[] = [
    ['VideoEncoder', undefined, TypeError, /options must be an object/],
    ['VideoEncoder', { ...VIDEO, codec: 'av1' }, TypeError, /codec must be one of 'vp8', 'h264'/],
    ['VideoEncoder', { ...VIDEO, codec: 3 }, TypeError, /codec/],
    ['VideoEncoder', { ...VIDEO, width: 63 }, RangeError, /even/],
    [
      'VideoEncoder',
      { ...VIDEO, width: 0 },
      RangeError,
      /width must be an integer from 16 to 4096/,
    ],
    ['VideoEncoder', { ...VIDEO, height: 1e9 }, RangeError, /height/],
    ['VideoEncoder', { ...VIDEO, width: 64.5 }, RangeError, /width/],
    ['VideoEncoder', { ...VIDEO, fps: Number.NaN }, RangeError, /fps/],
    ['VideoEncoder', { ...VIDEO, bitrateKbps: '600' }, TypeError, /bitrateKbps must be a number/],
    ['OpusEncoder', { sampleRate: 44100, channels: 1, bitrate: 32000 }, RangeError, /sampleRate/],
    ['OpusEncoder', { sampleRate: 48000, channels: 3, bitrate: 32000 }, RangeError, /channels/],
    ['OpusEncoder', { sampleRate: 48000, channels: 1, bitrate: 1 }, RangeError, /bitrate/],
    [
      'OpusEncoder',
      { sampleRate: 48000, channels: 1, bitrate: 32000, complexity: 11 },
      RangeError,
      /complexity/,
    ],
    [
      'OpusEncoder',
      { sampleRate: 48000, channels: 1, bitrate: 32000, inbandFec: 1 },
      TypeError,
      /inbandFec must be true or false/,
    ],
    ['OpusDecoder', { sampleRate: 11025, channels: 1 }, RangeError, /sampleRate/],
    ['Resampler', { inputRate: 1, outputRate: 48000, channels: 1 }, RangeError, /inputRate/],
    ['Resampler', { inputRate: 16000, outputRate: 48000, channels: 0 }, RangeError, /channels/],
    [
      'Resampler',
      { inputRate: 16000, outputRate: 48000, channels: 1, quality: 'best' },
      TypeError,
      /quality must be one of/,
    ],
  ];
  for (const [name, options, type, message] of wrong) {
    assert.throws(
      () => new loose[name]!(options),
      (error: Error) => error instanceof type && message.test(error.message),
      `${name} ${JSON.stringify(options)}`,
    );
  }
  assert.throws(() => functions['VideoEncoder']!(VIDEO), TypeError);
});

test('encode checks its buffers: type, length, detachment', () => {
  const encoder = new native.VideoEncoder(VIDEO),
    bad = encoder as unknown as Record<string, (...args: unknown[]) => unknown>;
  const picture = new Uint8Array(PICTURE),
    out = new Uint8Array(1 << 16);
  assert.throws(
    () => encoder.encode(new Uint8Array(PICTURE - 1), out, false, null),
    /picture must have 4608 elements, not 4607/,
  );
  assert.throws(() => encoder.encode(new Uint8Array(PICTURE + 1), out, false, null), TypeError);
  assert.throws(
    () => bad['encode']!(new Uint16Array(PICTURE), out, false, null),
    /picture must be a Uint8Array/,
  );
  assert.throws(() => bad['encode']!(new ArrayBuffer(PICTURE), out, false, null), TypeError);
  assert.throws(() => bad['encode']!(null, out, false, null), TypeError);
  assert.throws(() => bad['encode']!(), TypeError);
  assert.throws(() => bad['encode']!(picture, out, 'yes', null), /forceKey must be true or false/);
  assert.throws(() => encoder.encode(picture, out, false, new Uint8Array(3)), TypeError);
  assert.throws(
    () => encoder.encode(detached(new Uint8Array(PICTURE)), out, false, null),
    /picture is detached/,
  );
  assert.throws(
    () => encoder.encode(picture, detached(new Uint8Array(100)), false, null),
    /out is detached/,
  );
  assert.throws(() => bad['prepare']!(new Uint8Array(PICTURE - 1)), TypeError);
  assert.throws(() => bad['prepare']!(), TypeError);
  assert.throws(() => bad['prepare']!(detached(new Uint8Array(PICTURE))), /picture is detached/);
  assert.throws(() => {
    encoder.setBitrate(0);
  }, RangeError);
  assert.throws(() => {
    encoder.setBitrate(Number.NaN);
  }, RangeError);
  assert.throws(() => bad['setBitrate']!({}), TypeError);
  assert.ok(
    encoder.encode(picture, out, false, new Uint8Array(macroblocks(64, 48))) > 0,
    'the encoder still works',
  );
  encoder.close();
  encoder.close();
  assert.throws(() => encoder.encode(picture, out, false, null), /VideoEncoder is closed/);
  assert.throws(() => {
    encoder.setBitrate(300);
  }, /closed/);
  assert.throws(() => {
    void encoder.prepare(picture);
  }, /closed/);
});

test('buffers over shared memory, offset views and Buffers are accepted', () => {
  const encoder = new native.VideoEncoder(VIDEO);
  const shared = new Uint8Array(new SharedArrayBuffer(PICTURE + 1 + 32768));
  const plain = new Uint8Array(PICTURE).map((_, i) => i);
  shared.set(plain, 1);
  const out = shared.subarray(PICTURE + 1),
    reference = Buffer.alloc(32768);
  const bytes = encoder.encode(shared.subarray(1, PICTURE + 1), out, false, null);
  encoder.close();
  const again = new native.VideoEncoder(VIDEO);
  assert.equal(again.encode(plain, reference, false, null), bytes);
  again.close();
  assert.deepEqual(
    Buffer.from(out.slice(0, bytes & 0xffff)),
    reference.subarray(0, bytes & 0xffff),
  );
});

test('methods refuse a `this` of another class', () => {
  const encoder = new native.VideoEncoder(VIDEO),
    resampler = new native.Resampler({ inputRate: 16000, outputRate: 48000, channels: 1 });
  const encode = Reflect.get(encoder, 'encode') as (...args: unknown[]) => unknown;
  for (const self of [resampler, {}, null, Object.create(encoder) as object]) {
    assert.throws(
      () => encode.call(self, new Uint8Array(PICTURE), new Uint8Array(1000), false, null),
      TypeError,
    );
  }
  encoder.close();
  resampler.close();
});

test('audio buffers: length, type, detachment and size are checked', () => {
  const encoder = new native.OpusEncoder({ sampleRate: 48000, channels: 2, bitrate: 32000 }),
    decoder = new native.OpusDecoder({ sampleRate: 48000, channels: 2 });
  const resampler = new native.Resampler({ inputRate: 16000, outputRate: 48000, channels: 2 }),
    pcm = new Int16Array(1920),
    out = new Uint8Array(1500);
  assert.throws(() => encoder.encode(pcm.subarray(1), out), TypeError);
  assert.throws(() => encoder.encode(new Int16Array(0), out), TypeError);
  assert.throws(
    () => encoder.encode(new Int16Array(1000), out),
    /pcm must hold 2.5, 5, 10, 20, 40 or 60 ms/,
  );
  assert.throws(
    () => encoder.encode(new Float32Array(1920) as unknown as Int16Array, out),
    /pcm must be a Int16Array/,
  );
  assert.throws(() => encoder.encode(pcm, new Uint8Array(0)), RangeError);
  assert.throws(() => encoder.encode(detached(new Int16Array(1920)), out), /detached/);
  assert.throws(() => decoder.decode(undefined as unknown as null, new Int16Array(7)), TypeError);
  assert.throws(() => decoder.decode(out, new Int16Array(1)), RangeError);
  assert.throws(
    () => resampler.process(new Int16Array(3), new Int16Array(100)),
    /whole sample frames/,
  );
  assert.equal(resampler.process(new Int16Array(0), new Int16Array(0)), 0);
  assert.ok(encoder.encode(pcm, out) > 0);
  for (const item of [encoder, decoder, resampler]) {
    item.close();
    item.close();
  }
  assert.throws(() => encoder.encode(pcm, out), /OpusEncoder is closed/);
  assert.throws(() => decoder.decode(out, pcm), /OpusDecoder is closed/);
  assert.throws(() => {
    resampler.reset();
  }, /Resampler is closed/);
});

test('colour conversion: sizes are checked, and a round trip keeps colours', () => {
  const width = 64,
    height = 32,
    rgba = new Uint8Array(width * height * 4),
    i420 = new Uint8Array(i420Bytes(width, height)),
    back = new Uint8Array(rgba.length);
  assert.throws(() => {
    native.rgbaToI420(rgba.subarray(4), width, height, i420);
  }, TypeError);
  assert.throws(() => {
    native.rgbaToI420(rgba, width, height, i420.subarray(1));
  }, TypeError);
  assert.throws(() => {
    native.rgbaToI420(rgba, 63, height, i420);
  }, RangeError);
  assert.throws(() => {
    native.i420ToRgba(i420, -2, height, rgba);
  }, RangeError);
  // BT.601 limited range: 100 % white, black and red.
  for (const [colour, [y, u, v]] of [
    [
      [255, 255, 255],
      [235, 128, 128],
    ],
    [
      [0, 0, 0],
      [16, 128, 128],
    ],
    [
      [255, 0, 0],
      [82, 90, 240],
    ],
    [
      [0, 0, 255],
      [41, 240, 110],
    ],
  ] as const) {
    for (let i = 0; i < rgba.length; i++) {
      rgba[i] = i % 4 === 3 ? 7 : colour[i % 4]!;
    }
    native.rgbaToI420(rgba, width, height, i420);
    const near = (got: number | undefined, want: number): void => {
      assert.ok(Math.abs(got! - want) <= 2, `${colour.join()}: ${got} for ${want}`);
    };
    near(i420[5], y);
    near(i420[width * height + 3], u);
    near(i420[(width * height * 5) / 4 + 3], v);
    native.i420ToRgba(i420, width, height, back);
    for (let i = 0; i < 3; i++) {
      assert.ok(Math.abs(back[400 + i]! - colour[i]!) <= 5);
    }
    assert.equal(back[403], 255);
  }
});

test('a filter needs two planes of one size, and a reach', () => {
  const [source, out] = [new Float32Array(12), new Float32Array(12)];
  native.gaussianBlur(source, 4, 3, 1, out);
  for (const [width, height, sigma] of [
    [4, 3, -1],
    [4, 3, Number.NaN],
    [4, -3, 1],
  ] as const) {
    assert.throws(() => {
      native.gaussianBlur(source, width, height, sigma, out);
    }, RangeError);
  }
  for (const [from, to] of [
    [source, source],
    [source, out.subarray(1)],
    [source.subarray(1), out],
    [new Float64Array(12) as never, out],
  ] as const) {
    assert.throws(() => {
      native.gaussianBlur(from, 4, 3, 1, to);
    }, TypeError);
  }
});

test('encoders without close() are collected in time: their memory is reported', async () => {
  const before = process.memoryUsage.rss(),
    picture = new Uint8Array(i420Bytes(512, 512)),
    out = new Uint8Array(1 << 16);
  let peak = 0;
  for (let i = 0; i < 150; i++) {
    new native.VideoEncoder({ ...VIDEO, width: 512, height: 512 }).encode(
      picture,
      out,
      false,
      null,
    );
    await setImmediate();
    peak = Math.max(peak, process.memoryUsage.rss() - before);
  }
  // Together they would hold 1.4 GB.
  assert.ok(peak < 700e6, `${(peak / 1e6).toFixed(0)} MB`);
});
