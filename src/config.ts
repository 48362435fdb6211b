// The settings: each with its default, its bounds and its description for README.md. Nothing else
// reads the environment.
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { MOTIONS } from './media/articulation.ts';
import { CLUSTER_SETTINGS } from './cluster-settings.ts';
import { CONVERSATION_SETTINGS, conversationProblem } from './conversation-settings.ts';
import { maskUserInfo } from './base/hosts.ts';
import { isNetwork } from './front/http/addresses.ts';
import { ICE_SETTINGS, iceProblem } from './ice-settings.ts';
import { STORAGE_SETTINGS, storageProblem } from './storage-settings.ts';
import { REDIS_SETTINGS, redisProblem } from './redis-settings.ts';
import {
  decimal,
  flag,
  hosts,
  httpOrigin,
  integer,
  list,
  pageOrigin,
  setting,
  text,
} from './setting.ts';

const ipAddress = z.union([z.ipv4(), z.ipv6()], 'must be an IP address');

const networks = list.pipe(
  z.array(z.string().refine(isNetwork, 'must be an address or a network such as 10.0.0.0/8')),
);

const portRange = z
  .string()
  .regex(/^\d+(-\d+)?$/, 'must be a port or a range such as 40000-40031')
  .transform((value) => {
    const [first, last] = value.split('-').map(Number) as [number, number?];
    return { first, last: last ?? first };
  })
  .refine(
    ({ first, last }) => last <= 65535 && first <= last,
    'must lie within 0-65535, the smaller first',
  );

/**
 * Every setting. An unset or empty variable takes the default; `undefined` as the default makes the
 * value undefined.
 */
export const SETTINGS = {
  HOST: setting(text, '127.0.0.1', 'Address to listen on for HTTP and WebSocket. 0.0.0.0 for all.'),
  MEDIA_HOST: setting(
    ipAddress,
    undefined,
    'Address of the UDP sockets. Unset: HOST, or all addresses when HOST is loopback, ' +
      'since Firefox does not connect to loopback candidates.',
  ),
  PORT: setting(integer(0, 65535), '8080', 'HTTP and WebSocket port. 0 picks a free one.'),
  PUBLIC_URL: setting(
    httpOrigin,
    undefined,
    'Origin under which clients reach this server (https://media.example), for the URLs ' +
      'of static videos. Unset: taken from Host and X-Forwarded-Proto of each request.',
  ),
  FRAME_ORIGINS: setting(
    list.pipe(z.array(httpOrigin)),
    undefined,
    'Comma-separated origins of pages that may show the demo page in a frame ' +
      '(https://shop.example). Unset: none.',
  ),
  DATA_DIR: setting(text, './data', 'Directory of everything that must survive a restart.'),
  ...REDIS_SETTINGS,
  BOOTSTRAP_API_KEY: setting(
    text.min(16, 'must have at least 16 characters'),
    undefined,
    'An API key that is created at start if absent. Unset: the first start makes one and ' +
      'keeps it in DATA_DIR.',
  ),
  API_KEY_HEADERS: setting(
    list.pipe(z.array(z.string().regex(/^[a-z0-9-]+$/i, 'must be a header name')).min(1)),
    'x-service-api-key',
    'Comma-separated names of the headers that may carry the API key.',
  ),
  WORKERS: setting(
    integer(1, 256),
    undefined,
    'Media worker threads, each pinned to a core. Unset: cores - 1, at least 1.',
  ),
  MAX_SESSIONS_PER_WORKER: setting(
    integer(1, 1000),
    '64',
    'Most sessions of a worker. Its measured load usually limits them earlier.',
  ),
  MAX_WORKER_LOAD: setting(
    decimal(0.1, 1),
    '0.8',
    'Share of its core that a worker may use before it gets no more sessions.',
  ),
  REALTIME_WORKERS: setting(
    flag,
    'true',
    'Schedule workers before everything else on their cores (SCHED_RR), if the system ' +
      'permits it and another core is left.',
  ),
  ...ICE_SETTINGS,
  ANNOUNCED_IPS: setting(
    list.pipe(z.array(ipAddress)),
    undefined,
    'Addresses in the ICE candidates, when the server is behind NAT. Unset: those of MEDIA_HOST.',
  ),
  UDP_PORTS: setting(
    portRange,
    '0',
    'Range of UDP ports (first-last), one per worker. 0 picks free ones.',
  ),
  LIVEKIT_URL: setting(
    z
      .string()
      .regex(/^wss?:\/\/[^/?#@]+\/?$/, 'must be ws:// or wss:// with a host, no user and no path'),
    undefined,
    'LiveKit server on which sessions get their rooms; with LIVEKIT_API_KEY and ' +
      'LIVEKIT_API_SECRET. Unset: this server serves them itself.',
  ),
  LIVEKIT_API_KEY: setting(text, undefined, 'API key of that LiveKit server.'),
  LIVEKIT_API_SECRET: setting(text, undefined, 'Its secret.'),
  LIVEKIT_HOSTS: setting(
    hosts,
    undefined,
    'Comma-separated hosts (with a port or without) of LiveKit servers that avatars may be sent to ' +
      'although they are not public or have no TLS. Public ones with wss:// may always, and loopback ' +
      'by callers on the same machine.',
  ),
  LIVEKIT_VIDEO_CODEC: setting(
    z.enum(['vp8', 'h264']),
    'vp8',
    'Codec of the video that is published in rooms of LiveKit servers.',
  ),
  TOKEN_TTL_SECONDS: setting(integer(10, 86_400), '3600', 'How long a session token can be used.'),
  VIDEO_BITRATE_KBPS: setting(
    integer(150, 1500),
    '600',
    'Video bitrate at the start of a session with pictures of 512x512; larger pictures get more ' +
      '(1280x720: 1.9 times as much). Feedback moves it between 150 and MAX_VIDEO_BITRATE_KBPS.',
  ),
  MAX_VIDEO_BITRATE_KBPS: setting(
    integer(150, 4000),
    undefined,
    'Highest video bitrate, for pictures of any size. Unset: that at the start, since more is ' +
      'hardly visible (512x512: 43 dB at 600) and costs up to a fifth more CPU.',
  ),
  MOTION: setting(
    z.enum(MOTIONS),
    'natural',
    'How much heads move: none, calm, natural (as people who speak calmly to a camera) or lively.',
  ),
  AUDIO_BITRATE_KBPS: setting(integer(12, 128), '32', 'Opus bitrate.'),
  RATE_LIMIT_RPS: setting(integer(1, 100_000), '50', 'Requests per second and API key.'),
  MAX_SESSIONS_PER_KEY: setting(integer(1, 100_000), '1000', 'Concurrent sessions per API key.'),
  MAX_CONNECTIONS: setting(
    integer(16, 1_000_000),
    '10000',
    'TCP connections, WebSockets included. Further ones are closed unread.',
  ),
  TRUSTED_PROXIES: setting(
    z
      .string()
      .transform((value) => (value === 'none' ? '' : value))
      .pipe(networks),
    '127.0.0.0/8,::1',
    'Comma-separated addresses and networks of proxies whose X-Forwarded-For is trusted; none: no proxy. ' +
      'Their own requests, without that header, have no limits by address.',
  ),
  MAX_REQUESTS_PER_ADDRESS: setting(
    integer(1, 1_000_000),
    '1000',
    'Concurrent requests per client address, WebSockets without a valid token included.',
  ),
  OPEN_RPS_PER_ADDRESS: setting(
    integer(1, 1_000_000),
    '100',
    'Requests per second and client address to paths without an API key.',
  ),
  WRONG_KEYS_PER_MINUTE: setting(
    integer(1, 1_000_000),
    '60',
    'Wrong API keys and session tokens per minute and client address. ' +
      'Beyond that, only keys that were valid in the last 10 minutes pass.',
  ),
  CONNECTION_RPS_PER_ADDRESS: setting(
    integer(1, 1_000_000),
    '200',
    'New TCP connections per second and address, in bursts of up to ten times as many. ' +
      'Further ones are closed unread.',
  ),
  ALLOWED_ORIGINS: setting(
    list.pipe(z.array(pageOrigin)),
    undefined,
    'Comma-separated origins of pages that may open WebSockets (https://shop.example). Unset: any.',
  ),
  HISTORY_RETENTION_DAYS: setting(integer(1, 3650), '90', 'How long session history is kept.'),
  STATIC_TTL_SECONDS: setting(
    integer(60, 31_536_000),
    '86400',
    'How long a rendered static video is kept.',
  ),
  JOB_THREADS: setting(
    integer(1, 64),
    '1',
    'Cores for rendering static videos, where several videos take turns on each, and as ' +
      'many for face creation.',
  ),
  MAX_QUEUED_JOBS: setting(
    integer(1, 10_000),
    '100',
    'Offline jobs that may wait. Further ones are refused.',
  ),
  SECRETS_KEY: setting(
    z.string().regex(/^[0-9a-f]{64}$/i, 'must be 64 hex digits (openssl rand -hex 32)'),
    undefined,
    'Key that encrypts stored secrets. Unset: the first start makes one and keeps it in DATA_DIR.',
  ),
  TLS_CERT_FILE: setting(
    text,
    undefined,
    'PEM certificate chain; with TLS_KEY_FILE the server speaks HTTPS and WSS itself.',
  ),
  TLS_KEY_FILE: setting(text, undefined, 'PEM private key.'),
  WAV2LIP_MODEL: setting(
    text,
    undefined,
    'Path of an ONNX file of the Wav2Lip type. Offered as model "wav2lip" if it is fast ' +
      'enough for the frame rate.',
  ),
  WAV2LIP_THREADS: setting(
    integer(1, 64),
    '1',
    'Threads for one run of WAV2LIP_MODEL, per media worker. More threads make a run ' +
      'shorter; each session then counts for as many cores.',
  ),
  ORT_PROVIDERS: setting(
    list.pipe(z.array(z.enum(['cpu', 'cuda'])).min(1)),
    'cpu',
    'ONNX Runtime execution providers for WAV2LIP_MODEL, in order of preference.',
  ),
  ...STORAGE_SETTINGS,
  ...CLUSTER_SETTINGS,
  ...CONVERSATION_SETTINGS,
  DRAIN_SECONDS: setting(
    integer(0, 3600),
    '30',
    'How long running sessions may continue after SIGTERM.',
  ),
  LOG_LEVEL: setting(
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    'info',
    'Lowest level that is logged (JSON lines on stderr).',
  ),
  READY_JSON: setting(
    flag,
    '0',
    '1 prints one JSON line {"ready":true,"url","apiKey"} on stdout once the server listens, for scripts.',
  ),
} as const;

type Settings = typeof SETTINGS;
export type SettingName = keyof Settings;
type ValueOf<K extends SettingName> = Settings[K]['default'] extends string
  ? z.output<Settings[K]['schema']>
  : z.output<Settings[K]['schema']> | undefined;
type Parsed = { readonly [K in SettingName]: ValueOf<K> };

/** The values of all settings. */
export interface Config extends Omit<Parsed, 'WORKERS' | 'DATA_DIR'> {
  readonly WORKERS: number;
  /** Absolute. */
  readonly DATA_DIR: string;
}

/** Settings that cannot be used; the message has one line for each. */
export class ConfigError extends Error {}

/** Values that no message shows: they contain keys or passwords. */
const SECRET_SETTINGS: ReadonlySet<string> = new Set<SettingName>([
  'BOOTSTRAP_API_KEY',
  'SECRETS_KEY',
  'TURN_SECRET',
  'LIVEKIT_API_SECRET',
  'REDIS_URL',
  'REDIS_PASSWORD',
  'ICE_SERVERS',
  'LLM_API_KEY',
  'OPENAI_API_KEY',
  'GOOGLE_API_KEY',
  'TTS_API_KEY',
  'STT_API_KEY',
  'ELEVENLABS_API_KEY',
  'CARTESIA_API_KEY',
  'DEEPGRAM_API_KEY',
]);

/** The settings in effect, without those that are unset; secrets are masked, also those in URLs. */
export const shownConfig = (config: Config): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(config).map(([name, value]) => [
      name,
      SECRET_SETTINGS.has(name)
        ? '[secret]'
        : typeof value === 'string'
          ? maskUserInfo(value)
          : value,
    ]),
  );

/** The three that a LiveKit server needs. */
const LIVEKIT_SETTINGS = ['LIVEKIT_URL', 'LIVEKIT_API_KEY', 'LIVEKIT_API_SECRET'] as const;

/** Parses the environment. @throws ConfigError with a line for each bad setting and the reason */
export function loadConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, { schema, default: fallback }] of Object.entries(SETTINGS)) {
    const given = environment[name];
    const raw = given === undefined || given === '' ? fallback : given;
    if (raw === undefined) {
      continue;
    }
    const result = (schema as z.ZodType).safeParse(raw);
    if (result.success) {
      values[name] = result.data;
    } else {
      const shown = SECRET_SETTINGS.has(name) ? '…' : maskUserInfo(raw);
      const reasons = result.error.issues.map(reasonOf);
      problems.push(`${name}=${shown}: ${reasons.join('; ')}`);
    }
  }
  for (const name of Object.keys(environment)) {
    const similar = similarSetting(name);
    if (similar !== undefined) {
      problems.push(`${name}: no such setting; did you mean ${similar}?`);
    }
  }
  if ((values['TLS_CERT_FILE'] === undefined) !== (values['TLS_KEY_FILE'] === undefined)) {
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE: set both or neither');
  }
  const livekit = LIVEKIT_SETTINGS.filter((name) => values[name] !== undefined);
  if (livekit.length > 0 && livekit.length < LIVEKIT_SETTINGS.length) {
    problems.push(`${LIVEKIT_SETTINGS.join(', ')}: set all of them or none`);
  }
  problems.push(
    ...[conversationProblem, iceProblem, storageProblem, redisProblem]
      .map((problem) => problem(values))
      .filter((found) => found !== undefined),
  );
  if (problems.length > 0) {
    throw new ConfigError(problems.join('\n'));
  }
  values['WORKERS'] ??= Math.max(1, os.availableParallelism() - 1);
  values['DATA_DIR'] = path.resolve(String(values['DATA_DIR']));
  return Object.freeze(values) as unknown as Config;
}

/** Why a value is refused; in a list, which entry and field of it, counted from 1. */
function reasonOf({ path: keys, message }: z.core.$ZodIssue): string {
  const where = keys.map((key) => (typeof key === 'number' ? `entry ${key + 1}` : String(key)));
  return where.length === 0 ? message : `${where.join(', ')}: ${message}`;
}

/** The setting that `name` probably misspells. Other variables of the environment are ignored. */
function similarSetting(name: string): string | undefined {
  if (name in SETTINGS || name.length < 6) {
    return undefined;
  }
  return Object.keys(SETTINGS).find(
    (known) => known.length >= 6 && editDistanceIsOne(name.toUpperCase(), known),
  );
}

function editDistanceIsOne(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) {
    return false;
  }
  let i = 0;
  while (i < a.length && i < b.length && a[i] === b[i]) {
    i++;
  }
  const [restA, restB] = [a.slice(i), b.slice(i)];
  return restA.slice(1) === restB.slice(1) || restA === restB.slice(1) || restA.slice(1) === restB;
}
