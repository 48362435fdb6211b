// Both video encoders through the addon, checked with an independent decoder.
import assert from 'node:assert/strict';
import process from 'node:process';
import { test } from 'vitest';
import { i420Bytes } from '../../src/media/picture.ts';
import { KEY_FRAME_BIT, native } from '../../src/native/addon.ts';
import type { VideoEncoderOptions } from '../../src/native/addon.ts';
import { decode, psnr } from './decode.ts';
import { TalkingHead, randomSource } from './talking-head.ts';

const CODECS = ['vp8', 'h264'] as const;
const BASE = { width: 256, height: 256, fps: 30, bitrateKbps: 400 } as const;

interface Clip {
  frames: Uint8Array[];
  keys: number[];
  pictures: Uint8Array[];
}

function encodeClip(
  options: VideoEncoderOptions,
  count: number,
  {
    keyAt = -1,
    map = false,
    frozenFrom = count,
  }: { keyAt?: number; map?: boolean; frozenFrom?: number } = {},
): Clip {
  const head = new TalkingHead(options.width, options.height),
    encoder = new native.VideoEncoder(options),
    out = new Uint8Array(1 << 18);
  const clip: Clip = { frames: [], keys: [], pictures: [] };
  for (let i = 0; i < count; i++) {
    if (i < frozenFrom) {
      head.draw(i);
    } else {
      head.dirty.fill(0);
    }
    const result = encoder.encode(head.picture, out, i === keyAt, map ? head.dirty : null);
    if (result & KEY_FRAME_BIT) {
      clip.keys.push(i);
    }
    clip.frames.push(out.slice(0, result & ~KEY_FRAME_BIT));
    clip.pictures.push(head.picture.slice());
  }
  encoder.close();
  return clip;
}

const meanPsnr = (
  decoded: Uint8Array[],
  pictures: Uint8Array[],
  from: number,
  { width, height }: { width: number; height: number },
): number => {
  let sum = 0;
  for (let i = from; i < pictures.length; i++) {
    sum += psnr(decoded[i]!, pictures[i]!, width, height);
  }
  return sum / (pictures.length - from);
};

for (const codec of CODECS) {
  test(`${codec}: frames decode without delay and resemble their source; key frames on request`, () => {
    const clip = encodeClip({ codec, ...BASE }, 60, { keyAt: 41 });
    assert.deepEqual(clip.keys, [0, 41]);
    assert.ok(clip.frames.every((frame) => frame.length > 0));
    const decoded = decode(codec, clip.frames, BASE.width, BASE.height);
    assert.equal(decoded.length, 60);
    const quality = meanPsnr(decoded, clip.pictures, 30, BASE);
    assert.ok(quality > 36, `PSNR ${quality}`);
    // A stream that starts at a later key frame decodes by itself.
    const joined = decode(codec, clip.frames.slice(41), BASE.width, BASE.height);
    assert.equal(joined.length, 19);
    assert.ok(psnr(joined[18]!, clip.pictures[59]!, BASE.width, BASE.height) > 33);
  });

  test(`${codec}: a picture whose sides are not multiples of 16`, () => {
    const size = { width: 202, height: 150 };
    const clip = encodeClip({ codec, ...BASE, ...size }, 12, { map: true });
    const decoded = decode(codec, clip.frames, size.width, size.height);
    assert.equal(decoded.length, 12);
    assert.ok(meanPsnr(decoded, clip.pictures, 4, size) > 32);
  });

  test(`${codec}: a new bitrate takes effect within a second`, () => {
    const width = 256,
      height = 256,
      random = randomSource(7);
    // New noise in each frame uses all bits, within the quantiser's range at both bitrates.
    const pictures = Array.from({ length: 7 }, () =>
      new Uint8Array(i420Bytes(width, height))
        .fill(128)
        .map((value, i) => (i < width * height ? 110 + 16 * random() : value)),
    );
    const out = new Uint8Array(1 << 18);
    const encoder = new native.VideoEncoder({ codec, width, height, fps: 30, bitrateKbps: 300 });
    let at = 0;
    const kbps = (seconds: number): number => {
      let bytes = 0;
      for (let i = 0; i < seconds * 30; i++) {
        bytes += encoder.encode(pictures[at++ % 7]!, out, false, null) & ~KEY_FRAME_BIT;
      }
      return (bytes * 8) / 1000 / seconds;
    };
    for (const target of [300, 1200, 300]) {
      encoder.setBitrate(target);
      kbps(1);
      const measured = kbps(2);
      assert.ok(Math.abs(measured / target - 1) < 0.2, `${measured} kbit/s, asked for ${target}`);
    }
    encoder.close();
  });

  test(`${codec}: too small an output is a RangeError, and the next frame is a key frame`, () => {
    const head = new TalkingHead(128, 128),
      encoder = new native.VideoEncoder({ codec, ...BASE, width: 128, height: 128 }),
      out = new Uint8Array(1 << 17);
    head.draw(0);
    assert.throws(() => encoder.encode(head.picture, new Uint8Array(20), false, null), RangeError);
    assert.ok(encoder.encode(head.picture, out, false, null) & KEY_FRAME_BIT);
    head.draw(1);
    assert.ok(!(encoder.encode(head.picture, out, false, null) & KEY_FRAME_BIT));
    encoder.close();
  });
}

test('h264: constrained baseline 3.1, parameter sets before key frames, no reordering', () => {
  const clip = encodeClip({ codec: 'h264', ...BASE, width: 512, height: 512 }, 3, { keyAt: 2 });
  for (const index of [0, 2]) {
    const frame = Buffer.from(clip.frames[index]!);
    const types: number[] = [];
    for (let i = 0; i + 4 < frame.length; i++) {
      if (frame.readUInt32BE(i) === 1) {
        types.push(frame[i + 4]! & 31);
      }
    }
    assert.deepEqual(types, [7, 8, 5]);
    assert.equal(frame.subarray(5, 8).toString('hex'), '42c01f');
  }
  assert.equal(clip.frames[1]![4]! & 31, 1);
});

test('vp8: a dirty map saves bytes in a still scene, and the quality does not decay', () => {
  const size = { ...BASE, width: 512, height: 512, bitrateKbps: 600 };
  const clip = encodeClip({ codec: 'vp8', ...size }, 150, { map: true, frozenFrom: 80 });
  const decoded = decode('vp8', clip.frames, 512, 512);
  const moving = psnr(decoded[79]!, clip.pictures[79]!, 512, 512),
    settled = psnr(decoded[149]!, clip.pictures[149]!, 512, 512);
  assert.ok(moving > 36, `moving ${moving}`);
  assert.ok(settled >= moving, `${moving} → ${settled} dB`);
});

for (const codec of CODECS) {
  test(`${codec}: an unchanged picture is repeated in a few bytes, without effect on later pictures`, () => {
    const size = { ...BASE, width: 512, height: 512, bitrateKbps: 600 };
    const head = new TalkingHead(512, 512),
      out = new Uint8Array(1 << 18);
    const [encoder, plain] = [
      new native.VideoEncoder({ codec, ...size }),
      new native.VideoEncoder({ codec, ...size }),
    ];
    const frames: Uint8Array[] = [],
      without: Uint8Array[] = [],
      shownBy: number[] = [];
    for (let i = 0; i < 110; i++) {
      const isStill = i > 80 && i % 5 !== 0;
      if (isStill) {
        head.dirty.fill(0);
      } else {
        head.draw(i);
      }
      const frame = out.slice(
        0,
        encoder.encode(head.picture, out, false, head.dirty) & ~KEY_FRAME_BIT,
      );
      frames.push(frame);
      if (isStill) {
        assert.ok(frame.length < 150, `frame ${i} takes ${frame.length} bytes`);
      } else {
        without.push(
          codec === 'vp8'
            ? frame
            : out.slice(0, plain.encode(head.picture, out, false, head.dirty) & ~KEY_FRAME_BIT),
        );
      }
      shownBy.push(without.length - 1);
    }
    const [all, some] = [decode(codec, frames, 512, 512), decode(codec, without, 512, 512)];
    for (const [i, picture] of all.entries()) {
      // The other encoder's rate control has other times, so the pictures are only similar.
      if (codec === 'vp8') {
        assert.equal(Buffer.compare(picture, some[shownBy[i]!]!), 0, `frame ${i}`);
      } else {
        assert.ok(psnr(picture, some[shownBy[i]!]!, 512, 512) > 38, `frame ${i}`);
      }
      if (i > 80 && i % 5 !== 0) {
        assert.equal(Buffer.compare(picture, all[i - 1]!), 0, `frame ${i} repeats`);
      }
    }
    assert.throws(() => {
      head.dirty.fill(0);
      encoder.encode(head.picture, new Uint8Array(10), false, head.dirty);
    }, RangeError);
    assert.ok(
      encoder.encode(head.picture, out, false, head.dirty) & KEY_FRAME_BIT,
      'a lost frame is made good for, also when nothing has changed',
    );
    encoder.close();
    plain.close();
  });
}

test('h264: pictures are numbered correctly after any number of repetitions', () => {
  const head = new TalkingHead(64, 64),
    out = new Uint8Array(1 << 17);
  const encoder = new native.VideoEncoder({ codec: 'h264', ...BASE, width: 64, height: 64 });
  const frames: Uint8Array[] = [];
  let repeated = 0;
  // Frame numbers have 15 bits.
  for (let i = 0; i < 34_000; i++) {
    if (i < 61 || i % 7 === 0) {
      head.draw(i % 200);
    } else {
      head.dirty.fill(0);
    }
    const length = encoder.encode(head.picture, out, i === 1000, head.dirty) & ~KEY_FRAME_BIT;
    repeated += length < 30 ? 1 : 0;
    frames.push(out.slice(0, length));
  }
  encoder.close();
  assert.ok(repeated > 28_000, `${repeated} repetitions`);
  const decoded = decode('h264', frames, 64, 64);
  assert.equal(decoded.length, frames.length);
  assert.ok(psnr(decoded.at(-1)!, head.picture, 64, 64) > 33);
});

test('vp8: an unchanged picture that was coded coarsely is refined', () => {
  const size = { ...BASE, width: 512, height: 512, bitrateKbps: 120 };
  const clip = encodeClip({ codec: 'vp8', ...size }, 200, { map: true, frozenFrom: 100 });
  const decoded = decode('vp8', clip.frames, 512, 512);
  const [moving, settled] = [
    psnr(decoded[99]!, clip.pictures[99]!, 512, 512),
    psnr(decoded[199]!, clip.pictures[199]!, 512, 512),
  ];
  assert.ok(settled > moving + 2, `${moving} → ${settled} dB`);
});

for (const codec of CODECS) {
  test(`${codec}: a first frame prepared on another thread equals one of this thread`, async () => {
    const size = { ...BASE, width: 512, height: 512 },
      head = new TalkingHead(512, 512),
      out = new Uint8Array(1 << 18);
    const [prepared, plain] = [
      new native.VideoEncoder({ codec, ...size }),
      new native.VideoEncoder({ codec, ...size }),
    ];
    const frames: [Uint8Array[], Uint8Array[]] = [[], []];
    head.draw(0);
    const cpuMs = native.threadCpuMs();
    const coming = prepared.prepare(head.picture);
    const startedMs = native.threadCpuMs() - cpuMs;
    assert.throws(() => prepared.encode(head.picture, out, false, null), /is being prepared/);
    assert.throws(() => {
      prepared.setBitrate(500);
    }, /is being prepared/);
    assert.throws(() => {
      void prepared.prepare(head.picture);
    }, /in use already/);
    const drawn = head.picture.slice();
    head.picture.fill(77); // the caller may change its picture
    frames[0].push(await coming);
    assert.throws(() => {
      void prepared.prepare(drawn);
    }, /in use already/);
    const plainMs = native.threadCpuMs();
    const length = plain.encode(drawn, out, true, null);
    const encodedMs = native.threadCpuMs() - plainMs;
    assert.ok(length & KEY_FRAME_BIT);
    frames[1].push(out.slice(0, length & ~KEY_FRAME_BIT));
    assert.ok(
      startedMs < encodedMs / 2,
      `${startedMs} ms of this thread to begin, ${encodedMs} ms to do it here`,
    );
    for (let i = 1; i < 20; i++) {
      head.draw(i);
      for (const [k, encoder] of [prepared, plain].entries()) {
        frames[k]!.push(
          out.slice(0, encoder.encode(head.picture, out, false, null) & ~KEY_FRAME_BIT),
        );
      }
    }
    for (let i = 0; i < 20; i++) {
      assert.equal(Buffer.compare(frames[0][i]!, frames[1][i]!), 0, `frame ${i}`);
    }
    assert.ok(psnr(decode(codec, frames[0], 512, 512)[0]!, drawn, 512, 512) > 30);
    prepared.close();
    plain.close();
  });
}

test('an encoder may be closed or collected while it is being prepared', async () => {
  const head = new TalkingHead(128, 128);
  head.draw(0);
  const made = await Promise.all(
    Array.from({ length: 40 }, (_, i) => {
      const encoder = new native.VideoEncoder({
        codec: CODECS[i % 2]!,
        ...BASE,
        width: 128,
        height: 128,
      });
      const coming = encoder.prepare(head.picture);
      if (i % 3 === 0) {
        encoder.close();
      }
      return coming;
    }),
  );
  for (const frame of made) {
    assert.ok(frame.length > 500);
  }
});

test('encoders do not grow: memory stays level over many frames and many encoders', () => {
  const head = new TalkingHead(128, 128),
    out = new Uint8Array(1 << 17);
  head.draw(0);
  const round = (encoders: number): void => {
    for (let i = 0; i < encoders; i++) {
      const encoder = new native.VideoEncoder({
        codec: CODECS[i % 2]!,
        ...BASE,
        width: 128,
        height: 128,
      });
      for (let frame = 0; frame < 4; frame++) {
        encoder.encode(head.picture, out, false, head.dirty);
      }
      encoder.close();
    }
  };
  round(40);
  const before = process.memoryUsage.rss();
  round(200);
  const grown = (process.memoryUsage.rss() - before) / 1e6;
  // 200 leaked encoders of this size would take far more than 60 MB.
  assert.ok(grown < 15, `${grown.toFixed(1)} MB`);
});
