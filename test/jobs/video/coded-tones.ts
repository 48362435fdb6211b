// A tone in every audio format, coded by ffmpeg, and how far a decoded one is from it.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
export const SECONDS = 1.5;

/** A rising tone that gets louder, so that no two parts are alike. Left and right differ. */
export const tone = (channel: number, t: number): number =>
  0.15 * (1 + t) * Math.sin(2 * Math.PI * (300 + 100 * channel + 150 * t) * t);

export function original(
  rate: number,
  channels: number,
  seconds = SECONDS,
): Int16Array<ArrayBuffer> {
  return Int16Array.from({ length: Math.round(rate * seconds) * channels }, (_, i) =>
    Math.round(32_767 * tone(i % channels, Math.floor(i / channels) / rate)),
  );
}

export const bytesOf = (samples: Int16Array<ArrayBuffer>): Uint8Array<ArrayBuffer> =>
  new Uint8Array(samples.buffer);

/** Root mean square difference (full scale 32768) over the common middle. */
export function difference(a: Int16Array, b: Int16Array): number {
  const edge = Math.floor(a.length / 10);
  let sum = 0;
  for (let i = edge; i < a.length - edge; i++) {
    sum += (a[i]! - (b[i] ?? 0)) ** 2;
  }
  return Math.sqrt(sum / (a.length - 2 * edge));
}

/** Files of the tone, in a folder of their own. */
export class CodedTones {
  #folder = '';

  async open(): Promise<void> {
    this.#folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-audio-'));
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** The tone, coded by ffmpeg. */
  async coded(
    extension: string,
    rate: number,
    channels: number,
    codec: readonly string[],
    seconds = SECONDS,
  ): Promise<Uint8Array> {
    const name = path.join(
      this.#folder,
      `${extension}-${rate}-${channels}-${codec.join('').replaceAll(/\W/g, '')}-${seconds}`,
    );
    await writeFile(`${name}.raw`, bytesOf(original(rate, channels, seconds)));
    await run('ffmpeg', [
      '-v',
      'error',
      '-y',
      '-f',
      's16le',
      '-ar',
      String(rate),
      '-ac',
      String(channels),
      '-i',
      `${name}.raw`,
      ...codec,
      `${name}.${extension}`,
    ]);
    return new Uint8Array(await readFile(`${name}.${extension}`));
  }
}
