// All fuzz targets: what `npm run fuzz` and `npm test` run, and where their inputs are kept.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const HERE = import.meta.dirname;
export const ROOT = path.join(HERE, '../..');

export interface CatalogueEntry {
  readonly name: string;
  /** 'js': test/fuzz/targets/NAME.ts. 'native': native/fuzz/NAME_fuzz.cc. */
  readonly kind: 'js' | 'native';
  /**
   * Share of the usual time: the parsers that run a hundred thousand inputs a second need less of
   * it.
   */
  readonly share: number;
  /**
   * Mutated inputs that take about a second on one core, besides the kept ones. `npm test` runs a
   * quarter of them, `npm run test:deep` four times as many. A number, so that each run does the same.
   */
  readonly inputs: number;
}

const js = (name: string, inputs: number, share = 1): CatalogueEntry => ({
  name,
  kind: 'js',
  share,
  inputs,
});
const native = (name: string, inputs: number): CatalogueEntry => ({
  name,
  kind: 'native',
  share: 0.5,
  inputs,
});

export const CATALOGUE: readonly CatalogueEntry[] = [
  js('stun', 75_000, 0.5),
  js('dtls', 3_000),
  js('peer', 750),
  js('ice', 1_500, 0.5),
  js('sctp', 4_000, 0.5),
  js('srtp', 1_500),
  js('sdp', 6_000),
  js('wire', 20_000, 0.5),
  js('livekit', 1_000, 0.5),
  js('signals', 750, 0.5),
  js('room-data', 1_000, 0.5),
  js('multipart', 20_000, 0.5),
  js('http', 4_000, 0.5),
  js('audio-body', 30_000, 0.5),
  js('wav', 15_000, 0.5),
  js('mp3', 750),
  js('ogg', 750),
  js('image', 7_500),
  js('face-asset', 10_000, 0.5),
  native('face', 50),
  native('audio', 500),
  native('video', 2_500),
];

/** Small inputs that together reach what is known to be reachable. */
export const corpusOf = (name: string): string => path.join(HERE, 'corpus', name);
/** Inputs that once broke something. */
export const regressionsOf = (name: string): string => path.join(HERE, 'regressions', name);

/** @returns the files of a folder with their bytes; none when there is no such folder */
export function inputsIn(folder: string): { readonly name: string; readonly bytes: Buffer }[] {
  try {
    return readdirSync(folder)
      .sort()
      .map((name) => ({ name, bytes: readFileSync(path.join(folder, name)) }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return [];
    }
    throw error;
  }
}
