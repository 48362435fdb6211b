// The layout as a test: which folder may import which, where each vendor library is used, and how
// long a file may get.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const src = path.join(root, 'src');

const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('page/'))
  .sort();

/** Modules that a file imports or exports from, for their types too. */
const importsOf = (file: string): string[] =>
  [
    ...readFileSync(path.join(src, file), 'utf8').matchAll(
      /^(?:import|export)\s[^;]*?from\s+'([^']+)'/gm,
    ),
  ].map((match) => match[1]!);

/**
 * Folder → folders that it may import from, types included. A folder named without a slash stands for its
 * inner folders too.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  base: [],
  media: ['base'],
  native: ['base', 'media'],
  metrics: ['base', 'media', 'native'],
  webrtc: ['base', 'media', 'metrics', 'webrtc'],
  'webrtc/ice': ['base'],
  'webrtc/dtls': ['base', 'webrtc/srtp'],
  'webrtc/srtp': ['base'],
  'webrtc/sctp': ['base'],
  'webrtc/sdp': ['base', 'media'],
  'webrtc/congestion': ['base'],
  'webrtc/rtp': ['base', 'media', 'webrtc/congestion', 'webrtc/sdp', 'webrtc/srtp'],
  link: ['base', 'media', 'webrtc/sdp'],
  'pipeline/speech': ['base', 'media', 'native', 'link'],
  'pipeline/features': ['base', 'media', 'native'],
  'pipeline/inference': ['base', 'media', 'native'],
  'pipeline/render': ['base', 'media', 'native'],
  'pipeline/encode': ['base', 'media', 'native'],
  'pipeline/wav2lip': ['base', 'media', 'native', 'link', 'pipeline/render'],
  talk: ['base', 'media', 'link'],
  'talk/providers': ['base', 'media', 'link', 'talk'],
  worker: ['base', 'media', 'native', 'metrics', 'link', 'webrtc', 'pipeline'],
  jobs: ['base', 'media', 'native', 'metrics'],
  'jobs/face': ['base', 'media', 'native', 'jobs/face'],
  'jobs/video': ['base', 'media', 'native', 'metrics', 'pipeline'],
  'front/http': ['base', 'front/tracing'],
  'front/store': ['base'],
  'front/process': ['base', 'front/store'],
  'front/accounts': ['base', 'front/store'],
  'front/history': ['base', 'front/store'],
  'front/queue': ['base', 'front/store'],
  'front/faces': ['base', 'media', 'jobs', 'front/store', 'front/queue'],
  'front/placement': ['base', 'media', 'native', 'metrics', 'link'],
  'front/sessions': [
    'base',
    'media',
    'native',
    'metrics',
    'link',
    'webrtc/sdp',
    'front/http',
    'front/store',
    'front/placement',
    'front/tracing',
  ],
  'front/rooms': [
    'base',
    'media',
    'native',
    'metrics',
    'link',
    'webrtc/sdp',
    'front/http',
    'front/sessions',
  ],
  'front/legs': ['base', 'metrics', 'link', 'webrtc/sdp', 'front/http', 'front/sessions'],
  'front/talk': [
    'base',
    'link',
    'metrics',
    'front/http',
    'front/store',
    'front/accounts',
    'front/sessions',
  ],
  'front/tracing': ['base', 'metrics', 'link'],
  'front/cluster': ['base', 'metrics', 'front/http', 'front/store', 'front/sessions'],
  'front/api': [
    'base',
    'media',
    'metrics',
    'jobs',
    'front/http',
    'front/store',
    'front/accounts',
    'front/history',
    'front/sessions',
    'front/cluster',
    'front/talk',
    'front/rooms',
    'front/legs',
    'front/faces',
    'front/videos',
    'front/tracing',
  ],
  'front/videos': [
    'base',
    'media',
    'metrics',
    'jobs',
    'front/http',
    'front/store',
    'front/queue',
    'front/faces',
    'front/history',
  ],
};

/** Vendor library → the only folder that may use it. */
const FOLDER_OF_VENDOR: Record<string, RegExp> = {
  'uWebSockets.js': /^front\/http\//,
  ioredis: /^front\/store\//,
  'onnxruntime-node': /^(pipeline\/inference|pipeline\/wav2lip|jobs\/face)\//,
  'prom-client': /^metrics\//,
  piscina: /^jobs\//,
  sharp: /^jobs\//,
  mediabunny: /^jobs\//,
  'mpg123-decoder': /^jobs\//,
  'opus-decoder': /^jobs\//,
  '@wasm-audio-decoders/ogg-vorbis': /^jobs\//,
  pino: /^base\//,
  '@livekit/protocol': /^front\/rooms\//,
  '@opentelemetry/api': /^front\/tracing\//,
  '@opentelemetry/sdk-trace-base': /^front\/tracing\//,
  '@aws-sdk/client-s3': /^front\/store\//,
  '@aws-sdk/s3-request-presigner': /^front\/store\//,
  ws: /^(front\/rooms|front\/cluster|talk\/providers)\//,
};

const WITH_INNER_ROOMS = ['front', 'jobs', 'pipeline', 'webrtc'];

/**
 * @returns undefined for src/compose and the files at the top of src and of src/front: they wire
 * everything
 */
function folderOf(file: string): string | undefined {
  const [first, ...rest] = file.split('/');
  if (rest.length === 0 || first === 'compose') {
    return undefined;
  }
  if (rest.length > 1 && WITH_INNER_ROOMS.includes(first!)) {
    return `${first!}/${rest[0]!}`;
  }
  return first === 'front' ? undefined : first!;
}

const mayImport = (folder: string, other: string): boolean =>
  MAY_IMPORT[folder]!.some((allowed) => other === allowed || other.startsWith(`${allowed}/`));

/** File → files of ours that it imports. */
const graph = new Map(
  files.map((file) => [
    file,
    importsOf(file)
      .filter((target) => target.startsWith('.') && target.endsWith('.ts'))
      .map((target) => path.posix.join(path.posix.dirname(file), target)),
  ]),
);

test('imports run one way, those of types too', () => {
  const wrong: string[] = [];
  for (const [file, targets] of graph) {
    const folder = folderOf(file);
    if (folder === undefined) {
      continue;
    }
    assert.ok(folder in MAY_IMPORT, `src/${file} lies in a folder that the table does not know`);
    for (const target of targets) {
      const other = folderOf(target);
      if (other !== folder && (other === undefined || !mayImport(folder, other))) {
        wrong.push(`src/${file} → src/${target}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

test('no file imports itself by a detour', () => {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) {
      circles.push([...way.slice(way.indexOf(file)), file].join(' → '));
      return;
    }
    if (done.has(file)) {
      return;
    }
    for (const target of graph.get(file) ?? []) {
      visit(target, [...way, file]);
    }
    done.add(file);
  };
  for (const file of files) {
    visit(file, []);
  }
  assert.deepEqual(circles, []);
});

test('each vendor library is used in one folder', () => {
  const wrong: string[] = [];
  for (const file of files) {
    for (const target of importsOf(file)) {
      const vendor = target.startsWith('@')
        ? target.split('/').slice(0, 2).join('/')
        : target.split('/')[0]!;
      const folder = FOLDER_OF_VENDOR[vendor];
      if (folder !== undefined && !folder.test(file)) {
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
    // uWebSockets.js takes a limit from there alone.
    const mayRead = ['config.ts', 'main.ts', 'front/http/header-size.ts'];
    if (!mayRead.includes(file) && /\bprocess\.(env|argv)\b/.test(text)) {
      wrong.push(`src/${file} reads the environment`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('timers and message receivers are guarded: an exception would end the thread', () => {
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
