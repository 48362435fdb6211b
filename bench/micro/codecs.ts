// Micro bench of one session's codecs: video encoding of a talking head with and without a dirty
// map, Opus, resampling, colour.
import { i420Bytes } from '../../src/media/picture.ts';
import { native } from '../../src/native/addon.ts';
import type { VideoEncoderOptions } from '../../src/native/addon.ts';
import { TalkingHead } from '../../test/native/talking-head.ts';
import { measure, report } from '../harness.ts';
import type { BenchCase } from '../harness.ts';

const SIDE = 512,
  FRAMES = 90;

/**
 * Pictures and dirty maps drawn beforehand: only the encoder is timed. The clip runs back and
 * forth, so that it has no seam.
 */
function drawClip(): { pictures: Uint8Array[]; maps: Uint8Array[] } {
  const head = new TalkingHead(SIDE, SIDE),
    pictures: Uint8Array[] = [],
    maps: Uint8Array[] = [];
  for (let i = 0; i < FRAMES; i++) {
    head.draw(i);
    pictures.push(head.picture.slice());
    maps.push(head.dirty.slice());
  }
  return { pictures, maps };
}

const { pictures, maps } = drawClip();
const out = new Uint8Array(1 << 18);

function encodeCase(
  name: string,
  options: Partial<VideoEncoderOptions>,
  withMap: boolean,
): BenchCase {
  const encoder = new native.VideoEncoder({
    codec: 'vp8',
    width: SIDE,
    height: SIDE,
    fps: 30,
    bitrateKbps: 600,
    ...options,
  });
  return {
    name,
    run: (round) => {
      const place = round % (2 * FRAMES - 2),
        forth = place < FRAMES,
        index = forth ? place : 2 * FRAMES - 2 - place;
      // What changed from frame i to i+1 is what changed from i+1 to i.
      const map = maps[forth ? index : index + 1];
      return encoder.encode(pictures[index]!, out, false, withMap && map ? map : null);
    },
  };
}

report(
  'encode 512x512, 600 kbit/s, one frame',
  await measure(
    [
      encodeCase('vp8', {}, false),
      encodeCase('vp8, dirty map', {}, true),
      encodeCase('h264', { codec: 'h264' }, false),
    ],
    { budgetMs: 4000 },
  ),
);

const pcm48 = Int16Array.from(
  { length: 48000 },
  (_, i) => 6000 * Math.sin(i * 0.02) * Math.sin(i * 0.0007) + 1500 * Math.sin(i * 0.31),
);
const packet = new Uint8Array(1500),
  pcmOut = new Int16Array(960),
  opusAt = (round: number): number => (round % 49) * 960;
function opusCase(complexity: number): BenchCase {
  const encoder = new native.OpusEncoder({
    sampleRate: 48000,
    channels: 1,
    bitrate: 32000,
    complexity,
  });
  return {
    name: `opus encode, complexity ${complexity}`,
    run: (round) => encoder.encode(pcm48.subarray(opusAt(round), opusAt(round) + 960), packet),
  };
}
const packets = (() => {
  const encoder = new native.OpusEncoder({ sampleRate: 48000, channels: 1, bitrate: 32000 });
  return Array.from({ length: 49 }, (_, i) =>
    packet.slice(0, encoder.encode(pcm48.subarray(i * 960, (i + 1) * 960), packet)),
  );
})();
const decoder = new native.OpusDecoder({ sampleRate: 48000, channels: 1 });
const resample = (
  inputRate: number,
  outputRate: number,
  quality: 'low' | 'medium' | 'high',
): BenchCase => {
  const resampler = new native.Resampler({ inputRate, outputRate, channels: 1, quality }),
    input = pcm48.subarray(0, inputRate / 50),
    output = new Int16Array(outputRate / 50 + 1);
  return {
    name: `resample ${inputRate} → ${outputRate}, ${quality}`,
    run: () => resampler.process(input, output),
  };
};
report(
  'audio, 20 ms',
  await measure(
    [
      opusCase(5),
      opusCase(10),
      { name: 'opus decode', run: (round) => decoder.decode(packets[round % 49]!, pcmOut) },
      resample(16000, 48000, 'medium'),
      resample(16000, 48000, 'high'),
      resample(48000, 16000, 'medium'),
      resample(44100, 16000, 'medium'),
    ],
    { budgetMs: 2000 },
  ),
);

const rgba = new Uint8Array(SIDE * SIDE * 4).map((_, i) => i * 7),
  i420 = new Uint8Array(i420Bytes(SIDE, SIDE));
report(
  'colour 512x512',
  await measure(
    [
      {
        name: 'rgbaToI420',
        run: () => {
          native.rgbaToI420(rgba, SIDE, SIDE, i420);
        },
      },
      {
        name: 'i420ToRgba',
        run: () => {
          native.i420ToRgba(i420, SIDE, SIDE, rgba);
        },
      },
    ],
    { budgetMs: 500 },
  ),
);
