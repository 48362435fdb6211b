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
}

const js = (name: string, share = 1): CatalogueEntry => ({ name, kind: 'js', share });
const native = (name: string): CatalogueEntry => ({ name, kind: 'native', share: 0.5 });

export const CATALOGUE: readonly CatalogueEntry[] = [
  js('stun', 0.5),
  js('dtls'),
  js('peer'),
  js('sctp', 0.5),
  js('srtp'),
  js('sdp'),
  js('wire', 0.5),
  js('multipart', 0.5),
  js('http', 0.5),
  js('audio-body', 0.5),
  js('wav', 0.5),
  js('mp3'),
  js('ogg'),
  js('image'),
  js('face-asset', 0.5),
  native('face'),
  native('audio'),
  native('video'),
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
