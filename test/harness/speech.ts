// Synthesised speech for tests: samples, and where each phoneme begins and ends.
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SPEECH_RATE } from '../../src/media/timeline.ts';
import { ROOT } from './server.ts';

const run = promisify(execFile);
export const OUT = path.join(ROOT, 'test/out');

export interface Segment {
  readonly phone: string;
  readonly startMs: number;
  readonly endMs: number;
}

export interface Speech {
  /** 16 kHz mono. */
  readonly pcm: Int16Array<ArrayBuffer>;
  readonly durationMs: number;
  readonly segments: readonly Segment[];
  /** The same samples as a WAV file. */
  readonly wavFile: string;
}

/** Phonemes that close the lips. */
const LIP_CLOSURES = new Set(['p', 'b', 'm']);
export const closures = ({ segments }: Speech): readonly Segment[] =>
  segments.filter(({ phone }) => LIP_CLOSURES.has(phone));

export type FliteVoice = 'slt' | 'rms' | 'awb' | 'kal16';

/** Synthesises speech with flite. Results are cached under test/out. */
export async function synthesize(
  text: string,
  voice: FliteVoice = 'slt',
  stretch = 1,
): Promise<Speech> {
  const name = createHash('sha256')
    .update(`${voice}|${stretch}|${text}`)
    .digest('hex')
    .slice(0, 16);
  const base = path.join(OUT, 'speech', name);
  const wavFile = `${base}.wav`;
  let listing: string;
  try {
    listing = await readFile(`${base}.txt`, 'utf8');
  } catch {
    await mkdir(path.dirname(base), { recursive: true });
    // Others may ask for the same sentence at the same time, in this process and in others: each
    // makes its own, and whole files take their names at once.
    const own = `${base}.${randomUUID()}`;
    ({ stdout: listing } = await run('flite', [
      '-voice',
      voice,
      '--setf',
      `duration_stretch=${stretch}`,
      '-psdur',
      '-t',
      text,
      '-o',
      `${own}.wav`,
    ]));
    await writeFile(`${own}.txt`, listing);
    await rename(`${own}.wav`, wavFile);
    await rename(`${own}.txt`, `${base}.txt`);
  }
  const pcm = readWav(await readFile(wavFile));
  return {
    pcm,
    durationMs: (pcm.length * 1000) / SPEECH_RATE,
    segments: parseSegments(listing),
    wavFile,
  };
}

/** flite prints `phone:end phone:end …`, ends in seconds. */
function parseSegments(listing: string): Segment[] {
  let startMs = 0;
  return listing
    .trim()
    .split(/\s+/)
    .map((entry) => {
      const [phone = '', end = '0'] = entry.split(':');
      const segment = { phone, startMs, endMs: Number(end) * 1000 };
      startMs = segment.endMs;
      return segment;
    });
}

/** Samples of a PCM16 16 kHz mono WAV file. @throws Error when it is another kind. */
export function readWav(file: Buffer): Int16Array<ArrayBuffer> {
  if (
    file.readUInt16LE(20) !== 1 ||
    file.readUInt16LE(22) !== 1 ||
    file.readUInt32LE(24) !== SPEECH_RATE ||
    file.readUInt16LE(34) !== 16
  ) {
    throw new Error('not a 16 kHz mono PCM16 WAV file');
  }
  const at = file.indexOf('data', 36, 'latin1');
  const length = Math.min(file.readUInt32LE(at + 4), file.length - at - 8);
  const pcm = new Int16Array(length >> 1);
  for (let i = 0; i < pcm.length; i++) {
    pcm[i] = file.readInt16LE(at + 8 + 2 * i);
  }
  return pcm;
}

/** @param rate in Hz */
export function toWav(pcm: Int16Array, rate = SPEECH_RATE): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + pcm.byteLength, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(pcm.byteLength, 40);
  return Buffer.concat([header, Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength)]);
}

export const silence = (durationMs: number): Int16Array<ArrayBuffer> =>
  new Int16Array(Math.round((durationMs * SPEECH_RATE) / 1000));

export function concat(...parts: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const all = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Cuts off the silence that a synthesiser puts before and after the speech. */
export function trim(pcm: Int16Array, threshold = 300): Int16Array<ArrayBuffer> {
  const first = pcm.findIndex((sample) => Math.abs(sample) > threshold);
  const last = pcm.findLastIndex((sample) => Math.abs(sample) > threshold);
  return first < 0 ? new Int16Array(0) : Int16Array.from(pcm.subarray(first, last + 1));
}
