// Every audio format of POST /static/audio: files written by ffmpeg are read to the sample, and
// broken files are refused with the reason.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { native } from '../../../src/native/addon.ts';
import { CodedTones, SECONDS, bytesOf, difference, original, tone } from './coded-tones.ts';
import { isWithin, processorMs } from '../../harness/machine.ts';
import {
  inspectAudio,
  openAudio,
  type AudioInput,
} from '../../../src/jobs/video/audio/open-audio.ts';
import { AudioError } from '../../../src/jobs/video/audio/pcm-stream.ts';
import { Soundtrack } from '../../../src/jobs/video/soundtrack.ts';

const tones = new CodedTones();
beforeAll(() => tones.open());
afterAll(() => tones.close());

async function decode(
  input: AudioInput,
): Promise<{ samples: Int16Array; rate: number; channels: number }> {
  const { pieces, rate, channels } = await openAudio(input);
  const parts: number[] = [];
  for await (const piece of pieces) {
    parts.push(...piece);
  }
  return { samples: Int16Array.from(parts), rate, channels };
}

const file = (format: AudioInput['format'], bytes: Uint8Array): AudioInput => ({
  bytes,
  format,
  rate: 16_000,
  channels: 1,
});

const rejects = (input: AudioInput, pattern: RegExp): Promise<void> =>
  assert.rejects(inspectAudio(input), (error: unknown) => {
    assert.ok(error instanceof AudioError, String(error));
    assert.match(error.message, pattern);
    return true;
  });

test('raw samples of both widths, in one and two channels', async () => {
  for (const channels of [1, 2] as const) {
    const samples = original(8000, channels);
    const short = await decode({ bytes: bytesOf(samples), format: 'pcm16', rate: 8000, channels });
    assert.deepEqual([short.rate, short.channels], [8000, channels]);
    assert.deepEqual(short.samples, samples);
    const wide = new Uint8Array(
      Int32Array.from(samples, (sample) => sample * 65_536 + 20_000).buffer,
    );
    assert.deepEqual(
      (await decode({ bytes: wide, format: 'pcm32', rate: 96_000, channels })).samples,
      samples,
    );
  }
});

test('raw samples at an odd address, and in shared memory', async () => {
  const samples = original(16_000, 1);
  const shared = new Uint8Array(new SharedArrayBuffer(samples.byteLength + 1), 1);
  shared.set(bytesOf(samples));
  assert.deepEqual((await decode(file('pcm16', shared))).samples, samples);
});

for (const [codec, tolerance] of [
  ['pcm_s16le', 0],
  ['pcm_u8', 150],
  ['pcm_s24le', 1],
  ['pcm_s32le', 1],
  ['pcm_f32le', 1],
  ['pcm_f64le', 1],
  ['pcm_alaw', 300],
  ['pcm_mulaw', 300],
] as const) {
  test(`WAV with ${codec}`, async () => {
    for (const [rate, channels] of (codec === 'pcm_s16le'
      ? [
          [8000, 1],
          [44_100, 2],
          [96_000, 1],
        ]
      : [[44_100, 2]]) as [number, number][]) {
      const found = await decode(
        file('wav', await tones.coded('wav', rate, channels, ['-c:a', codec])),
      );
      assert.deepEqual(
        [found.rate, found.channels, found.samples.length],
        [rate, channels, original(rate, channels).length],
      );
      assert.ok(
        difference(original(rate, channels), found.samples) <= tolerance,
        `${difference(original(rate, channels), found.samples)} at ${rate} Hz`,
      );
    }
  });
}

test('WAV files with an unknown length', async () => {
  const wav = await tones.coded('wav', 16_000, 1, []);
  const at = Buffer.from(wav).indexOf('data') + 4;
  for (const length of [0xffff_ffff, 0x7fff_ffff - 36, 0]) {
    const copy = Uint8Array.from(wav);
    new DataView(copy.buffer).setUint32(at, length, true);
    assert.equal((await inspectAudio(file('wav', copy))).samples, 24_000);
  }
});

test('MP3: all sampling rates, mono and stereo, constant and variable bitrate, tags', async () => {
  for (const [rate, channels, options] of [
    [8000, 1, ['-b:a', '24k']],
    [16_000, 1, ['-b:a', '48k']],
    [22_050, 2, ['-q:a', '4']],
    [32_000, 1, ['-q:a', '2']],
    [44_100, 2, ['-b:a', '128k']],
    [48_000, 1, ['-b:a', '96k', '-metadata', 'title=A title', '-write_id3v1', '1']],
    [48_000, 2, ['-b:a', '192k', '-write_xing', '0']],
  ] as const) {
    const expected = original(rate, channels);
    const found = await decode(file('mp3', await tones.coded('mp3', rate, channels, options)));
    assert.deepEqual([found.rate, found.channels], [rate, channels]);
    const isGapless = !options.includes('-write_xing' as never);
    const extra = found.samples.length - expected.length;
    assert.ok(
      isGapless ? extra === 0 : extra >= 0 && extra < 3000 * channels,
      `${rate} Hz, ${options.join(' ')}: ${extra} samples too many`,
    );
    if (isGapless) {
      assert.ok(
        difference(expected, found.samples) < 700,
        `${rate} Hz: ${difference(expected, found.samples)}`,
      );
    }
  }
});

test('Ogg: Opus and Vorbis, mono and stereo', async () => {
  for (const [codec, rate, channels] of [
    ['libopus', 48_000, 1],
    ['libopus', 48_000, 2],
    ['libvorbis', 8000, 1],
    ['libvorbis', 44_100, 2],
    ['libvorbis', 48_000, 1],
  ] as const) {
    const expected = original(rate, channels);
    const found = await decode(
      file(
        'ogg',
        await tones.coded('ogg', rate, channels, [
          '-c:a',
          codec,
          '-b:a',
          codec === 'libopus' ? '64k' : rate === 8000 ? '24k' : '96k',
        ]),
      ),
    );
    assert.deepEqual(
      [found.rate, found.channels, found.samples.length],
      [rate, channels, expected.length],
      codec,
    );
    assert.ok(
      difference(expected, found.samples) < 700,
      `${codec} ${rate} Hz: ${difference(expected, found.samples)}`,
    );
  }
});

test('speech and sound keep their timing at every sample rate', async () => {
  for (const [rate, channels] of [
    [8000, 1],
    [11_025, 2],
    [16_000, 1],
    [44_100, 2],
    [48_000, 1],
    [96_000, 2],
  ] as const) {
    const soundtrack = new Soundtrack(
      await openAudio({
        bytes: bytesOf(original(rate, channels)),
        format: 'pcm16',
        rate,
        channels,
      }),
    );
    const speech = new Int16Array(16_000 * SECONDS);
    for (let at = 0; at < speech.length; at += 533) {
      await soundtrack.readSpeech(speech.subarray(at), Math.min(533, speech.length - at));
    }
    const sound: number[] = [];
    for (
      let piece = await soundtrack.readSound(1600);
      piece.length > 0;
      piece = await soundtrack.readSound(1600)
    ) {
      sound.push(...piece);
    }
    soundtrack.close();
    assert.equal(
      sound.length,
      Math.round((Math.round(rate * SECONDS) * 48_000) / rate) * channels,
      `${rate} Hz`,
    );
    const mono = Int16Array.from(
      { length: speech.length },
      (_, i) =>
        32_767 *
        (channels === 1 ? tone(0, i / 16_000) : (tone(0, i / 16_000) + tone(1, i / 16_000)) / 2),
    );
    assert.ok(difference(mono, speech) < 20, `${rate} Hz, speech: ${difference(mono, speech)}`);
    assert.ok(
      difference(original(48_000, channels), Int16Array.from(sound)) < 20,
      `${rate} Hz, sound`,
    );
  }
});

test('refuses data that is not audio, empty, incomplete or too long, with the reason', async () => {
  const noise = Uint8Array.from(
    { length: 40_000 },
    (_, i) => (i * 7919 + (i >> 3) * 104_729) & 255,
  );
  const html = Buffer.from(`<!doctype html>${'<p>not a sound</p>'.repeat(500)}`);
  const [wav, mp3, opus, vorbis] = await Promise.all([
    tones.coded('wav', 16_000, 1, []),
    tones.coded('mp3', 44_100, 1, ['-b:a', '64k']),
    tones.coded('ogg', 48_000, 1, ['-c:a', 'libopus']),
    tones.coded('ogg', 44_100, 1, ['-c:a', 'libvorbis']),
  ]);
  for (const format of ['pcm16', 'pcm32', 'wav', 'mp3', 'ogg'] as const) {
    await rejects(file(format, new Uint8Array(0)), /is empty/);
  }
  await rejects(file('pcm16', noise.subarray(1)), /not a whole number of samples/);
  await rejects({ ...file('pcm16', noise), rate: 4000 }, /4000 samples a second/);
  for (const junk of [noise, html]) {
    await rejects(file('wav', junk), /not a WAV file/);
    await rejects(file('mp3', junk), /not an MP3 file/);
    await rejects(file('ogg', junk), /not an Ogg file/);
  }
  await rejects(file('wav', mp3), /not a WAV file/);
  await rejects(file('mp3', opus), /not an MP3 file/);
  await rejects(file('wav', wav.subarray(0, 30)), /ends within its header/);
  await rejects(file('wav', wav.subarray(0, wav.length / 2)), /incomplete: it announces \d+ bytes/);
  await rejects(
    file('mp3', mp3.subarray(0, mp3.length / 2)),
    /incomplete: it announces \d+ frames/,
  );
  await rejects(file('ogg', opus.subarray(0, opus.length - 700)), /ends within a page/);
  await rejects(file('ogg', vorbis.subarray(0, vorbis.length - 700)), /ends within a page/);
  await rejects(
    file('ogg', await tones.coded('oga', 44_100, 1, ['-c:a', 'flac'])),
    /neither Opus nor Vorbis/,
  );
  await rejects(file('wav', await tones.coded('wav', 48_000, 6, [], 0.2)), /6 channels/);
  await rejects(
    file('ogg', await tones.coded('ogg', 48_000, 6, ['-c:a', 'libopus'], 0.2)),
    /6 channels/,
  );
  await rejects(
    file('wav', await tones.coded('wav', 192_000, 1, [], 0.2)),
    /192000 samples a second/,
  );
  await rejects(
    file('wav', await tones.coded('wav', 16_000, 1, ['-c:a', 'adpcm_ms'])),
    /are not read/,
  );
  await rejects(
    file('wav', await tones.coded('wav', 16_000, 1, [], 0)),
    /no(t a single)? sample|no sound|incomplete|no audio/,
  );
  await rejects(
    { bytes: new Uint8Array(8000 * 2 * 601), format: 'pcm16', rate: 8000, channels: 1 },
    /longer than 10 minutes/,
  );
});

test('decoding a small file with hours of sound stops at the limit', async () => {
  const frame = new Uint8Array(72); // MPEG 2.5 layer III, 8 kbit/s, 8 kHz, mono: 72 ms
  frame.set([0xff, 0xe3, 0x18, 0xc0]);
  const bytes = new Uint8Array(Buffer.concat(Array.from({ length: 50_000 }, () => frame)));
  assert.equal((await inspectAudio(file('mp3', bytes.subarray(0, 72 * 100)))).samples, 57_600);
  const startMs = processorMs();
  await rejects(file('mp3', bytes), /longer than 10 minutes/);
  assert.ok(isWithin(processorMs() - startMs, 5000));
});

test('a megabyte that is made to be slow is refused within a second', async () => {
  const page = (serial: number, flags: number, lacing: readonly number[], body: Buffer): Buffer => {
    const header = Buffer.alloc(27 + lacing.length);
    header.write('OggS');
    header[5] = flags;
    header.writeUInt32LE(serial, 14);
    header[26] = lacing.length;
    Buffer.from(lacing).copy(header, 27);
    return Buffer.concat([header, body]);
  };
  const opusHead = Buffer.from('OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0', 'latin1');
  const opus = [page(1, 2, [19], opusHead), page(1, 0, [8], Buffer.from('OpusTags'))];
  const filled = (unit: Buffer): Buffer =>
    Buffer.alloc(Math.floor((1 << 20) / unit.length) * unit.length, unit);
  const none = Buffer.alloc(0);
  const oggs = [
    filled(page(1, 0, [], none)),
    filled(page(1, 1, [255], Buffer.alloc(255))),
    filled(page(2, 0, Array<number>(255).fill(0), none)),
    Buffer.concat(
      Array.from({ length: 3700 }, (_unused, index) =>
        page(index + 2, 0, [255], Buffer.alloc(255)),
      ),
    ),
  ];
  const mp3s = [
    Buffer.alloc(1 << 20, 0xff),
    filled(Buffer.from('ID3\x03\0\0\0\0\0\0', 'latin1')),
    filled(Buffer.from([0xff, 0xe2])),
  ];
  const wavs = [Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE', 'latin1'), Buffer.alloc(1 << 20)])];
  const inputs = [
    ...oggs.map((bytes) => file('ogg', new Uint8Array(Buffer.concat([...opus, bytes])))),
    file('ogg', new Uint8Array(filled(page(1, 2, [], none)))),
    ...mp3s.map((bytes) => file('mp3', new Uint8Array(bytes))),
    ...wavs.map((bytes) => file('wav', new Uint8Array(bytes))),
  ];
  for (const [index, input] of inputs.entries()) {
    const startMs = native.threadCpuMs();
    await rejects(input, /./);
    assert.ok(isWithin(native.threadCpuMs() - startMs, 1000), `input ${index}, ${input.format}`);
  }
});

test('a damaged file is read or refused, and nothing else happens', async () => {
  const files: AudioInput[] = [
    file('wav', await tones.coded('wav', 8000, 1, [], 0.3)),
    file('mp3', await tones.coded('mp3', 16_000, 1, ['-b:a', '32k'], 0.3)),
    file('ogg', await tones.coded('ogg', 48_000, 1, ['-c:a', 'libopus'], 0.3)),
    file('ogg', await tones.coded('ogg', 16_000, 1, ['-c:a', 'libvorbis'], 0.3)),
  ];
  let state = 1;
  const random = (below: number): number => {
    // mulberry32
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
  let refused = 0;
  for (const input of files) {
    for (let round = 0; round < 40; round++) {
      const bytes = Uint8Array.from(input.bytes);
      for (let i = 0; i <= round % 8; i++) {
        bytes[random(round % 2 === 0 ? 200 : bytes.length)] = random(256);
      }
      try {
        await inspectAudio({
          ...input,
          bytes: round % 5 === 0 ? bytes.subarray(0, random(bytes.length)) : bytes,
        });
      } catch (error) {
        assert.ok(
          error instanceof AudioError,
          `${input.format}, round ${round}: ${error instanceof Error ? error.stack : String(error)}`,
        );
        refused++;
      }
    }
  }
  assert.ok(refused > 20, `only ${refused} were refused`);
});
