// docs/limits.md is held to the code: each constant and setting on it has the value told, and no
// limit of the code is missing from it.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { SETTINGS } from '../../src/config.ts';
import { CATALOGUE } from '../../src/metrics/catalogue.ts';
import type { MetricFamily } from '../../src/metrics/metric-family.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PAGE = readFileSync(path.join(ROOT, 'docs/limits.md'), 'utf8');

interface Constant {
  readonly name: string;
  readonly file: string;
  readonly expression: string;
}
interface Row {
  readonly bounds: string;
  readonly name: string;
  readonly file: string | undefined;
  readonly value: string;
  readonly metric: string;
  readonly seen: string;
}

/** What a constant is called when it is a limit: of size, number, rate or time. */
const LIMIT_NAME = new RegExp(
  [
    '^(MAX|MOST|LONGEST|SLOWEST|HARD)_',
    '_(MAX|LIMIT|TIMEOUT|DEADLINE|TTL|BUDGET|CAPACITY|QUOTA|TRIES|ATTEMPTS|PATIENCE|BURST|RESERVE)(_|$)',
    '_PER_(SECOND|KEY|ADDRESS|OWNER|SESSION|MINUTE)$',
  ].join('|'),
);

/**
 * Limits by their names that bound nothing a client or an operator could run into; each with the
 * reason.
 */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'src/talk/clauses.ts MAX_CLAUSE': 'where a text is cut for the voice',
  'src/talk/spoken-text.ts LETTERS_PER_SECOND': 'an estimate of how fast a voice speaks',
  'src/jobs/face/detect/portrait-quality.ts':
    'what a portrait may look like, told in words to who uploads it',
  'src/jobs/face/regions/eye-state.ts': 'picture processing',
  'src/jobs/face/regions/glasses-rim.ts': 'picture processing',
  'src/jobs/face/regions/head-matte.ts': 'picture processing',
  'src/jobs/face/regions/resting-mouth.ts': 'picture processing',
  'src/front/api/conversation-request.ts': 'defaults; the bounds are in the API document',
  'src/front/api/faces.ts MAX_UPLOAD_BYTES': 'MAX_IMAGE_BYTES and the form around it',
  'src/front/placement/watchdog.ts': 'how the watchdog counts its own lateness',
  'src/pipeline/render/motion/head-motion.ts': 'how heads move',
  'src/pipeline/wav2lip/wav2lip-mel.ts': 'signal processing',
  'src/pipeline/wav2lip/patch-generator.ts':
    'the share of a frame that the network of WAV2LIP_MODEL may take; README says it in ' +
    'milliseconds',
  'src/pipeline/wav2lip/wav2lip-network.ts': 'the picture sizes of a network, checked at start',
  'src/pipeline/speech/speech-stream.ts': 'the audio clock: how far it may run ahead',
  'src/pipeline/speech/utterance-start.ts': 'the audio clock: when an utterance may start',
  'src/worker/frame-scheduler.ts MAX_INSERTED_PER_TICK':
    'further utterances begin in the slot of their session',
  'src/webrtc/congestion/loss-window.ts': 'over how long loss is measured',
  'src/webrtc/congestion/bitrate-controller.ts': 'how quickly the bitrate follows the receiver',
  'src/worker/load-reporter.ts': 'the estimate of what a session costs',
  'src/webrtc/rtp/rtp-stream.ts MAX_RTP_BYTES': 'the size of our own packets',
  'src/webrtc/sctp/congestion.ts MAX_PACKET_BYTES': 'the size of our own packets',
  'src/webrtc/sctp/outbound.ts MAX_FRAGMENT_BYTES': 'the size of our own packets',
  'src/webrtc/rtp/h264.ts': "the encoder's own output",
  'src/front/http/listener.ts FREE_PORT_ATTEMPTS': 'tries to find a free port at start',
  'src/front/sessions/byte-queue.ts MAX_SPARE': 'memory that is kept for the next one who needs it',
  'src/metrics/catalogue-host.ts MAX_WORKERS': 'values of a label, more than WORKERS permits',
  'src/metrics/host-load.ts TICKS_PER_SECOND': 'the unit of /proc/stat',
  'src/front/process/private-redis.ts MAX_SOCKET_PATH':
    "the length of a path of ours, by the system's bound",
  'src/front/store/redis-client.ts SHARED.connectTimeout':
    'the client of Redis tries again by itself',
  'src/front/store/redis-client.ts SHARED.maxRetriesPerRequest':
    'the client of Redis tries again by itself',
  'src/link/speech-ring.ts SPEECH_RING_SECONDS': 'SPEECH_RING_SAMPLES in seconds',
  'src/pipeline/speech/audio-receiver.ts MAX_CONCEALED': 'how long a gap is concealed',
  'src/webrtc/ice/path.ts CONSENT_INTERVAL_MS.most': 'how often consent is asked for',
  'src/webrtc/rtp/key-frame-recovery.ts DRAIN.maxMs':
    'how long the sender waits for a queue on the way to drain',
  'src/pipeline/render/motion/face-motion.ts': 'how a face moves after skipped frames',
  'src/jobs/video/audio/pcm-stream.ts MAX_DECODER_ERRORS':
    'how many complaints of a decoder are repeated in one error',
};

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      return file.endsWith('src/page') ? [] : sources(file);
    }
    return entry.name.endsWith('.ts') ? [file] : [];
  });
}

/** Fields of an object of constants that are limits. */
const LIMIT_FIELD =
  /^(?:max|most|burst|perSecond|buckets)|(?:deadline|timeout|window|bytesPerWindow|unproven)/i;

/** Constants of a file, and those that are fields of an object: `NAME.field`. */
function constantsOf(file: string): Constant[] {
  const found = [
    ...readFileSync(file, 'utf8').matchAll(
      /^(?:export )?const ([A-Z][A-Z0-9_]+)(?:: [\w<>, ]+)? = ([^;]+);/gm,
    ),
  ];
  return found.flatMap(([, name, expression]) => {
    const constant = { name: name!, file: path.relative(ROOT, file), expression: expression! };
    const fields = /^\{([^{}]+)\}(?: as const)?$/.exec(expression!)?.[1] ?? '';
    return [
      constant,
      ...[...fields.matchAll(/(\w+): ([\d\s_+\-*/().<]+)/g)].map(([, field, value]) => ({
        ...constant,
        name: `${name}.${field}`,
        expression: value!,
      })),
    ];
  });
}

const CONSTANTS: readonly Constant[] = sources(path.join(ROOT, 'src')).flatMap(constantsOf);
const isLimit = ({ name }: Constant): boolean =>
  name.includes('.') ? LIMIT_FIELD.test(name.split('.')[1]!) : LIMIT_NAME.test(name);

/**
 * The number that a constant is, by arithmetic over other constants; undefined when it is something
 * else.
 */
function valueOf({ file, expression }: Constant, depth = 0): number | undefined {
  if (depth > 6 || !/^[\w\s.+\-*/()<,]+$/.test(expression)) {
    return undefined;
  }
  let isKnown = true;
  const numbers = expression
    .replaceAll('Math.ceil', '_ceil')
    .replaceAll(/\b[A-Z][A-Z0-9_]+\b/g, (name) => {
      const found =
        CONSTANTS.find((one) => one.name === name && one.file === file) ??
        CONSTANTS.find((one) => one.name === name);
      const value = found === undefined ? undefined : valueOf(found, depth + 1);
      isKnown &&= value !== undefined;
      return String(value);
    })
    .replaceAll(/(?<=\d)_(?=\d)/g, '');
  if (!isKnown || !/^(?:_ceil|[\d\s.+\-*/()<e])+$/.test(numbers)) {
    return undefined;
  }
  // eslint-disable-next-line typescript/no-implied-eval -- our own sources, digits and operators alone
  return Number(new Function('_ceil', `return ${numbers}`)(Math.ceil));
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KiB: 1024,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  ms: 1,
  s: 1000,
  min: 60_000,
  h: 3_600_000,
  days: 86_400_000,
  kbit: 1,
  '%': 0.01,
};

/** "64 KiB/s" → 65536, "15 s" → 15000 (ms): in bytes and milliseconds. */
function toldValue(text: string): number {
  const match = /^([\d,]+(?:\.\d+)?) ?([A-Za-z%]*)/.exec(text);
  assert.ok(match !== null, `no number in "${text}"`);
  return Number(match[1]!.replaceAll(',', '')) * (UNITS[match[2]!] ?? 1);
}

/** A value of the code in bytes or milliseconds, by the unit in its name. */
const inBase = (name: string, value: number): number =>
  value * (name.endsWith('_SECONDS') ? 1000 : name.endsWith('_DAYS') ? 86_400_000 : 1);

const ROWS: readonly Row[] = PAGE.split('\n')
  .filter((line) => /^\| [^-]/.test(line))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
  .filter(([, bound]) => bound?.startsWith('`') === true)
  .map(([bounds, bound, value, metric, seen]) => {
    const match = /^`([\w.]+)`(?: `([\w./-]+)`)?$/.exec(bound!);
    assert.ok(match !== null, `"${bound}" is neither a setting nor a constant with its file`);
    return {
      bounds: bounds!,
      name: match[1]!,
      file: match[2],
      value: value!,
      metric: metric!,
      seen: seen!,
    };
  });

test('the page tells each limit with its place, and each row is whole', () => {
  assert.ok(ROWS.length >= 80, `only ${ROWS.length} rows were read`);
  for (const { name, bounds, value, metric, seen } of ROWS) {
    assert.ok(
      [bounds, value, metric, seen].every((cell) => cell !== ''),
      `${name}: a cell is empty; write "-"`,
    );
  }
  const names = ROWS.map(({ name, file }) => `${file} ${name}`);
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
    'told twice',
  );
});

test('constants on the page have the value told', () => {
  for (const { name, file, value } of ROWS) {
    if (file === undefined) {
      continue;
    }
    const constant = CONSTANTS.find((one) => one.name === name && one.file === file);
    assert.ok(
      constant !== undefined,
      `docs/limits.md names ${name} in ${file}, which is not there`,
    );
    const known = valueOf(constant);
    assert.ok(
      known !== undefined,
      `${name} = ${constant.expression} is not a number that this test can compute`,
    );
    assert.equal(
      toldValue(value),
      inBase(name, known),
      `${name} in ${file} is ${constant.expression}, docs/limits.md says ${value}`,
    );
  }
});

test('settings on the page have the default told', () => {
  for (const { name, file, value } of ROWS) {
    if (file !== undefined) {
      continue;
    }
    assert.ok(
      name in SETTINGS,
      `docs/limits.md names the setting ${name}, which does not exist; a constant needs its file`,
    );
    const { default: fallback } = SETTINGS[name as keyof typeof SETTINGS];
    if (fallback === undefined) {
      assert.doesNotMatch(value, /^\d/, `${name} has no default`);
    } else {
      assert.equal(
        toldValue(value),
        inBase(name, Number(fallback)),
        `${name} is ${fallback} by default, docs/limits.md says ${value}`,
      );
    }
  }
});

test('metrics on the page exist, with their labels', () => {
  for (const { name, metric } of ROWS) {
    for (const [, metricName, label, labelValue] of metric.matchAll(
      /`(\w+)(?:\{(\w+)="(\w+)"\})?`/g,
    )) {
      const family = (CATALOGUE as Readonly<Record<string, MetricFamily>>)[metricName!];
      assert.ok(family !== undefined, `${name}: there is no metric ${metricName}`);
      if (label === undefined) {
        continue;
      }
      const allowed = family.labels[label];
      assert.ok(
        Array.isArray(allowed) ? allowed.includes(labelValue) : allowed !== undefined,
        `${name}: ${metricName} has no ${label}="${labelValue}"`,
      );
    }
  }
});

test('every limit of the code is on the page, or an exception with a reason', () => {
  const told = new Set(ROWS.map(({ name, file }) => `${file} ${name}`));
  const isException = ({ file, name }: Constant): boolean =>
    file in EXCEPTIONS || `${file} ${name}` in EXCEPTIONS;
  const missing = CONSTANTS.filter(
    (one) =>
      isLimit(one) &&
      valueOf(one) !== undefined &&
      !told.has(`${one.file} ${one.name}`) &&
      !isException(one),
  );
  assert.deepEqual(
    missing.map(({ file, name, expression }) => `${file} ${name} = ${expression}`),
    [],
    'add a row to docs/limits.md',
  );
  const known = new Set(CONSTANTS.flatMap(({ file, name }) => [file, `${file} ${name}`]));
  assert.deepEqual(
    Object.keys(EXCEPTIONS).filter((key) => !known.has(key)),
    [],
    'exceptions for what is gone',
  );
});
