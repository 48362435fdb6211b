// Opus and resampling through the addon.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { native } from '../../src/native/addon.ts';
import type { OpusEncoderOptions } from '../../src/native/addon.ts';
import { randomSource } from './talking-head.ts';

/** A voice-like signal: syllables of a gliding pitch with harmonics and three formants. */
function voice(rate: number, seconds: number): Int16Array {
  let phase = 0;
  return Int16Array.from({ length: rate * seconds }, (_, i) => {
    const t = i / rate,
      pitch = 120 + 30 * Math.sin(2 * t);
    phase += (2 * Math.PI * pitch) / rate;
    let sum = 0;
    for (let h = 1; h * pitch < 3800; h++) {
      sum +=
        Math.sin(h * phase) *
        [500, 1500, 2500].reduce(
          (gain, f) => gain + Math.exp(-(((h * pitch - f) / 250) ** 2)),
          0.05,
        );
    }
    return 3000 * sum * Math.max(0, Math.sin(t * 12)) ** 0.5;
  });
}

/** @returns the best SNR of `got` against `want`, dB, over shifts of 0 to maxShift samples */
function snr(want: Int16Array, got: Int16Array, maxShift: number): number {
  let best = -Infinity;
  for (let shift = 0; shift <= maxShift; shift++) {
    let signal = 0,
      noise = 0;
    for (let i = 0; i + shift < got.length && i < want.length; i++) {
      signal += want[i]! ** 2;
      noise += (want[i]! - got[i + shift]!) ** 2;
    }
    best = Math.max(best, 10 * Math.log10(signal / noise));
  }
  return best;
}

const energy = (pcm: Int16Array): number => pcm.reduce((sum, value) => sum + value * value, 0);

function encodeAll(
  pcm: Int16Array,
  frame: number,
  options: OpusEncoderOptions,
  loss = 0,
): Uint8Array[] {
  const encoder = new native.OpusEncoder(options),
    out = new Uint8Array(1500),
    packets: Uint8Array[] = [];
  encoder.setPacketLoss(loss);
  for (let i = 0; i + frame <= pcm.length; i += frame) {
    packets.push(out.slice(0, encoder.encode(pcm.subarray(i, i + frame), out)));
  }
  encoder.close();
  return packets;
}

test('opus: a voice survives the round trip at every rate and channel count', () => {
  for (const sampleRate of [16000, 24000, 48000]) {
    for (const channels of [1, 2] as const) {
      const mono = voice(sampleRate, 1);
      const pcm =
        channels === 1
          ? mono
          : Int16Array.from({ length: mono.length * 2 }, (_, i) => mono[i >> 1]!);
      const frame = (sampleRate / 50) * channels,
        out = new Int16Array(pcm.length),
        decoder = new native.OpusDecoder({ sampleRate, channels });
      const packets = encodeAll(pcm, frame, { sampleRate, channels, bitrate: 64000 });
      packets.forEach((packet, i) =>
        assert.equal(
          decoder.decode(packet, out.subarray(i * frame, (i + 1) * frame)),
          sampleRate / 50,
        ),
      );
      decoder.close();
      const quality = snr(
        mono,
        channels === 1 ? out : out.filter((_, i) => i % 2 === 0),
        sampleRate / 100,
      );
      assert.ok(quality > 10, `${sampleRate} Hz x${channels}: ${quality.toFixed(1)} dB`);
    }
  }
});

test('opus: the bitrate can be changed between frames', () => {
  const encoder = new native.OpusEncoder({ sampleRate: 48000, channels: 1, bitrate: 16000 }),
    out = new Uint8Array(1500),
    pcm = voice(48000, 3);
  const bytes = [16000, 64000, 16000].map((bitrate, part) => {
    encoder.setBitrate(bitrate);
    let sum = 0;
    for (let i = 0; i < 50; i++) {
      sum += encoder.encode(pcm.subarray((part * 50 + i) * 960, (part * 50 + i + 1) * 960), out);
    }
    return sum;
  });
  encoder.close();
  assert.ok(bytes[1]! > 2 * bytes[0]! && bytes[1]! > 2 * bytes[2]!, bytes.join());
});

test('opus: a lost frame is concealed, and recovered better with in-band redundancy', () => {
  const pcm = voice(16000, 2),
    frame = 320,
    lost = new Set([20, 31, 42, 55, 66]);
  const packets = encodeAll(
    pcm,
    frame,
    { sampleRate: 16000, channels: 1, bitrate: 32000, inbandFec: true },
    30,
  );
  const play = (mode: 'whole' | 'conceal' | 'recover'): Int16Array => {
    const decoder = new native.OpusDecoder({ sampleRate: 16000, channels: 1 }),
      out = new Int16Array(packets.length * frame);
    packets.forEach((packet, i) => {
      const slot = out.subarray(i * frame, (i + 1) * frame);
      if (mode === 'whole' || !lost.has(i)) {
        decoder.decode(packet, slot);
      } else if (mode === 'conceal') {
        assert.equal(decoder.decode(null, slot), frame);
      } else {
        assert.equal(decoder.decode(packets[i + 1]!, slot, true), frame);
      }
    });
    decoder.close();
    return out;
  };
  const whole = play('whole'),
    concealed = play('conceal'),
    recovered = play('recover');
  const error = (got: Int16Array): number =>
    [...lost].reduce(
      (sum, i) =>
        sum +
        energy(
          whole
            .subarray(i * frame, (i + 1) * frame)
            .map((value, k) => (value - got[i * frame + k]!) / 2),
        ),
      0,
    );
  assert.ok(energy(concealed.subarray(20 * frame, 21 * frame)) > 0);
  assert.ok(
    error(recovered) < 0.5 * error(concealed),
    `${error(recovered)} against ${error(concealed)}`,
  );
});

test('opus: corrupt packets throw or decode, and the decoder still works afterwards', () => {
  const decoder = new native.OpusDecoder({ sampleRate: 48000, channels: 2 }),
    out = new Int16Array(5760 * 2),
    random = randomSource(5);
  const good = encodeAll(voice(48000, 1), 960, {
    sampleRate: 48000,
    channels: 1,
    bitrate: 32000,
  })[10]!;
  let refused = 0;
  for (let i = 0; i < 2000; i++) {
    const packet =
      i % 2 === 0
        ? Uint8Array.from({ length: 1 + Math.floor(random() * 300) }, () => 256 * random())
        : good.map((byte) => (random() < 0.1 ? 256 * random() : byte));
    try {
      const samples = decoder.decode(packet, out);
      assert.ok(samples > 0 && samples <= 5760);
    } catch (error) {
      assert.match((error as Error).message, /^Opus cannot decode: corrupted stream/);
      refused++;
    }
  }
  assert.ok(refused > 100);
  assert.equal(decoder.decode(good, out), 960);
  assert.throws(() => decoder.decode(good, new Int16Array(100)), RangeError);
  assert.throws(() => decoder.decode(new Uint8Array(0), out), TypeError);
  assert.throws(() => decoder.decode(null, new Int16Array(2 * 1000)), TypeError);
  decoder.close();
});

const RATES = [
  [8000, 48000],
  [16000, 48000],
  [22050, 16000],
  [24000, 16000],
  [44100, 16000],
  [44100, 48000],
  [48000, 16000],
  [96000, 16000],
  [16000, 8000],
  [8000, 96000],
  [44099, 48000],
] as const;

/** Resamples in blocks of random length. */
function resample(
  pcm: Int16Array,
  inputRate: number,
  outputRate: number,
  {
    channels = 1,
    quality = 'medium',
  }: { channels?: number; quality?: 'low' | 'medium' | 'high' } = {},
): Int16Array {
  const resampler = new native.Resampler({ inputRate, outputRate, channels, quality }),
    random = randomSource(inputRate + outputRate);
  const out = new Int16Array(Math.ceil((pcm.length * outputRate) / inputRate) + 64),
    chunk = new Int16Array(1 << 16);
  let written = 0;
  for (let i = 0; i < pcm.length;) {
    const n = Math.min(pcm.length - i, channels * Math.floor(random() * 1500));
    const samples = resampler.process(pcm.subarray(i, i + n), chunk) * channels;
    out.set(chunk.subarray(0, samples), written);
    written += samples;
    i += n;
  }
  resampler.close();
  return out.subarray(0, written);
}

test('resampler: a tone keeps its purity, phase and length at every ratio and block size', () => {
  for (const [inputRate, outputRate] of RATES) {
    const hz = 0.35 * Math.min(inputRate, outputRate),
      amplitude = 20000;
    const tone = (rate: number, i: number): number =>
      amplitude * Math.sin((2 * Math.PI * hz * i) / rate);
    const out = resample(
      Int16Array.from({ length: inputRate }, (_, i) => Math.round(tone(inputRate, i))),
      inputRate,
      outputRate,
    );
    const missing = outputRate - out.length;
    // The output may lack half the filter: 24 samples of the lower rate and rounding, 3.5 ms at
    // 8 kHz.
    assert.ok(
      missing >= 0 && missing / outputRate <= 28 / Math.min(inputRate, outputRate),
      `${inputRate}→${outputRate}: ${missing} samples short`,
    );
    let signal = 0,
      noise = 0;
    for (let i = Math.ceil(outputRate / 100); i < out.length; i++) {
      signal += tone(outputRate, i) ** 2;
      noise += (tone(outputRate, i) - out[i]!) ** 2;
    }
    const purity = 10 * Math.log10(signal / noise);
    assert.ok(purity > 70, `${inputRate}→${outputRate}: ${purity.toFixed(1)} dB`);
  }
});

test('resampler: frequencies above half the lower rate are removed, not aliased', () => {
  for (const [quality, floor] of [
    ['low', 50],
    ['medium', 70],
    ['high', 80],
  ] as const) {
    const input = Int16Array.from(
      { length: 48000 },
      (_, i) => 20000 * Math.sin((2 * Math.PI * 9500 * i) / 48000),
    );
    const out = resample(input, 48000, 16000, { quality }).subarray(200);
    const left = 10 * Math.log10(energy(out) / out.length / (20000 ** 2 / 2) + 1e-12);
    assert.ok(left < -floor, `${quality}: ${left.toFixed(1)} dB`);
  }
});

test('resampler: channels are separate, loud signals clip, reset discards the signal', () => {
  const left = voice(16000, 1),
    stereo = Int16Array.from({ length: left.length * 2 }, (_, i) =>
      i % 2 === 0 ? left[i >> 1]! : 0,
    );
  const both = resample(stereo, 16000, 48000, { channels: 2 }),
    alone = resample(left, 16000, 48000);
  for (let i = 0; i < alone.length; i++) {
    assert.equal(both[2 * i], alone[i]);
    assert.equal(both[2 * i + 1], 0);
  }
  const square = resample(
    Int16Array.from({ length: 16000 }, (_, i) => (i % 64 < 32 ? 32767 : -32768)),
    16000,
    48000,
  );
  for (let i = 300; i < square.length; i++) {
    if (i % 192 > 12 && i % 192 < 84) {
      assert.ok(square[i]! > 20000, `${i}: ${square[i]}`);
    }
  }
  const resampler = new native.Resampler({ inputRate: 16000, outputRate: 48000, channels: 1 }),
    first = new Int16Array(960),
    second = new Int16Array(960);
  const n = resampler.process(left.subarray(2000, 2320), first);
  resampler.reset();
  assert.equal(resampler.process(left.subarray(2000, 2320), second), n);
  assert.deepEqual(first, second);
  assert.throws(() => resampler.process(left, new Int16Array(100)), RangeError);
  resampler.close();
});
