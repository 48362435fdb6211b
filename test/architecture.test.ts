// The floor plan as a test: who may import whom, which vendor library has which room, and how long a file may get.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const src = path.join(root, 'src');

const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .sort();
const importsOf = (file: string): { target: string; isTypeOnly: boolean }[] =>
  [
    ...readFileSync(path.join(src, file), 'utf8').matchAll(
      /^(?:import|export)\s+(type\s)?[^;]*?from\s+'([^']+)'/gm,
    ),
  ].map((match) => ({ target: match[2]!, isTypeOnly: match[1] !== undefined }));

/** Room → rooms whose code it may run. Types may be looked at across the table wherever that does not close a circle of code. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  base: [],
  media: ['base'],
  native: ['base', 'media'],
  metrics: ['base', 'media', 'native'],
  link: ['base', 'media'],
  'front/http': ['base'],
  'front/store': ['base', 'media', 'native'],
  'front/jobs': ['base', 'front/store'],
  'front/faces': ['base', 'media', 'jobs', 'front/store', 'front/jobs'],
  'front/static': ['base', 'media', 'jobs', 'metrics', 'front/store', 'front/jobs', 'front/faces'],
  'front/api': [
    'base',
    'media',
    'jobs',
    'front/http',
    'front/store',
    'front/sessions',
    'front/faces',
    'metrics',
  ],
  'front/sessions': [
    'base',
    'media',
    'link',
    'metrics',
    'native',
    'front/http',
    'front/store',
    'front/placement',
  ],
  'front/placement': ['base', 'media', 'link', 'metrics', 'native'],
  worker: ['base', 'media', 'link', 'metrics', 'native'],
  jobs: ['base', 'media', 'native', 'metrics', 'worker'],
};

/** Vendor library → the only room that may run it. */
const ROOM_OF_VENDOR: Record<string, RegExp> = {
  'uWebSockets.js': /^front\/http\//,
  ioredis: /^front\/store\//,
  'onnxruntime-node': /^(worker\/inference|jobs\/face|worker\/wav2lip)\//,
  'prom-client': /^metrics\//,
  piscina: /^jobs\//,
  sharp: /^jobs\//,
  mediabunny: /^jobs\//,
  'mpg123-decoder': /^jobs\//,
  'opus-decoder': /^jobs\//,
  '@wasm-audio-decoders/ogg-vorbis': /^jobs\//,
  pino: /^base\//,
};

const roomOf = (file: string): string | undefined => {
  const parts = file.split('/');
  if (parts.length === 1) {
    return undefined;
  } // main.ts, server.ts, config.ts wire everything
  if (parts[0] === 'front' && parts.length === 2) {
    return undefined;
  }
  return parts[0] === 'front' ? `front/${parts[1]!}` : parts[0]!;
};

test('imports run one way', () => {
  const wrong: string[] = [];
  for (const file of files) {
    const room = roomOf(file);
    if (room === undefined || room === 'front/page') {
      continue;
    }
    assert.ok(room in MAY_IMPORT, `src/${file} lies in a room that the table does not know`);
    for (const { target, isTypeOnly } of importsOf(file)) {
      if (!target.startsWith('.') || isTypeOnly) {
        continue;
      }
      const resolved = path.posix.join(path.posix.dirname(file), target);
      const other = roomOf(resolved);
      if (other !== room && (other === undefined || !MAY_IMPORT[room]!.includes(other))) {
        wrong.push(`src/${file} → src/${resolved}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

test('each vendor library has one room', () => {
  const wrong: string[] = [];
  for (const file of files) {
    for (const { target, isTypeOnly } of importsOf(file)) {
      const vendor = target.startsWith('@')
        ? target.split('/').slice(0, 2).join('/')
        : target.split('/')[0]!;
      const room = ROOM_OF_VENDOR[vendor];
      if (room !== undefined && !isTypeOnly && !room.test(file)) {
        wrong.push(`src/${file} uses ${vendor}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

test('only base/time.ts touches clocks, only config.ts and main.ts read the environment', () => {
  const wrong: string[] = [];
  for (const file of files) {
    const text = readFileSync(path.join(src, file), 'utf8')
      .replaceAll(/\/\/.*$/gm, '')
      .replaceAll(/\/\*[\s\S]*?\*\//g, '');
    if (
      file !== 'base/time.ts' &&
      /\b(Date\.now\(|performance\.now\(|process\.hrtime)/.test(text)
    ) {
      wrong.push(`src/${file} reads a clock`);
    }
    if (!['config.ts', 'main.ts'].includes(file) && /\bprocess\.(env|argv)\b/.test(text)) {
      wrong.push(`src/${file} reads the environment`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('every timer and every receiver of messages is guarded: an exception in one would end the process, or a worker with all its sessions', () => {
  const wrong: string[] = [];
  for (const file of files) {
    if (file.startsWith('base/')) {
      continue;
    }
    const text = readFileSync(path.join(src, file), 'utf8')
      .replaceAll(/\/\/.*$/gm, '')
      .replaceAll(/\/\*[\s\S]*?\*\//g, '');
    if (/\bset(Timeout|Interval|Immediate)\(/.test(text)) {
      wrong.push(`src/${file}: use every, after or soon of base/guard.ts`);
    }
    if (/\.on\('message', (?!guarded\()/.test(text)) {
      wrong.push(`src/${file}: what receives messages is guarded (base/guard.ts)`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('every file says what belongs in it, and stays short', () => {
  const wrong: string[] = [];
  for (const file of files) {
    const lines = readFileSync(path.join(src, file), 'utf8').split('\n');
    if (!/^(\/\/|\/\*\*)/.test(lines[0]!)) {
      wrong.push(`src/${file} does not open with a sentence on what belongs in it`);
    }
    if (lines.length > 420) {
      wrong.push(`src/${file} has ${lines.length} lines`);
    }
  }
  assert.deepEqual(wrong, []);
});
