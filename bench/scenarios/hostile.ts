// Floods on every entry point of a server beside honest sessions: what they cost those sessions,
// and what they leave behind.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { spareCpus } from '../cpus.ts';
import { Attackers } from '../hostile/attackers.ts';
import { ENTRY_POINTS } from '../hostile/entry-points.ts';
import { describe, type Phase, report, UNKNOWN_MEMORY } from '../hostile/report.ts';
import type { Arena, Strike, Tallies } from '../hostile/protocol.ts';
import { plainOffer } from '../hostile/offers.ts';
import { RawWebSocket, textFrame } from '../hostile/raw-web-socket.ts';
import { residentMb, type Seen, Watch } from '../hostile/watch.ts';
import { spansOf } from '../course.ts';
import { liveMemory } from '../live-memory.ts';
import { quantile } from '../report/stats.ts';
import { ROOT } from '../run.ts';
import {
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  number,
  text,
} from '../scenario.ts';
import { benchSpeech, codecOf, firstFace, startFleet } from './setup.ts';

/** Connecting, compiling and the first key frames are over by then. */
const WARM_UP_SECONDS = 4;
/** A key's rate is 50 requests a second: tokens are made ahead, more slowly. */
const TOKENS = 64;
const TOKEN_EVERY_MS = 30;
/**
 * Places on the worker that the attackers leave free: one for the new session, and one since the
 * cost of a session, as the worker learns it, goes up and down by a tenth.
 */
const PLACES_LEFT = 2;
/** The worker reports its figures once a second. */
const [ROOM_SAMPLES, ROOM_EVERY_MS] = [6, 500];

/** A second key, as `npm run keys` makes it, with the server's own limits for each key. */
async function attackersKey(dataDir: string): Promise<string> {
  const args = [
    '--disable-warning=ExperimentalWarning',
    path.join(ROOT, 'scripts/keys.ts'),
    'create',
    '--name',
    'attackers',
    '--owner',
    'attackers',
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, DATA_DIR: dataDir },
  });
  return stdout.trim();
}

async function createTokens(server: Server, apiKey: string, faceId: string): Promise<string[]> {
  const tokens: string[] = [];
  while (tokens.length < TOKENS) {
    const response = await fetch(`${server.url}/compose/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-api-key': apiKey },
      body: JSON.stringify({ faceId }),
    });
    const { session_token: token } = (await response.json()) as { session_token: string };
    if (!response.ok) {
      throw new Error(`POST /compose/token answered ${response.status} before any attack`);
    }
    tokens.push(token);
    await delay(TOKEN_EVERY_MS);
  }
  return tokens;
}

/**
 * Starts the thread that makes faces: what it loads stays for a minute, and is not an attack's
 * doing.
 */
async function wakeJobs({ url, apiKey }: Server): Promise<void> {
  const form = new FormData();
  form.set('image', new Blob([Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0])]), 'nothing.jpg');
  const response = await fetch(`${url}/faces/legacy`, {
    method: 'POST',
    headers: { 'x-service-api-key': apiKey },
    body: form,
  });
  if (!response.ok) {
    throw new Error(`POST /faces/legacy answered ${response.status} before any attack`);
  }
}

/** The UDP port of the worker: a session's answer tells it. */
async function mediaPort(server: Server, token: string): Promise<number> {
  const socket = await RawWebSocket.open({
    url: server.url,
    path: `/compose/webrtc/p2p?session_token=${token}`,
    localAddress: '127.0.0.1',
  });
  try {
    return await new Promise((resolve, reject) => {
      socket.onClose = (reason) => {
        reject(new Error(`no answer to an offer: ${reason}`));
      };
      socket.onText = (said) => {
        const port = /a=candidate:\S+ 1 udp \d+ \S+ (\d+) /i.exec(said)?.[1];
        if (port !== undefined) {
          resolve(Number(port));
        } else if (said.startsWith('ERROR')) {
          reject(new Error(said));
        }
      };
      socket.write(textFrame(JSON.stringify({ type: 'offer', sdp: plainOffer() })));
    });
  } finally {
    socket.destroy();
  }
}

/** How many sessions more the server takes, by the least of some answers. */
async function leastRoom(server: Server): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let asked = 0; asked < ROOM_SAMPLES; asked++) {
    const response = await fetch(`${server.url}/readyz`);
    least = Math.min(least, ((await response.json()) as { room: number }).room);
    await delay(ROOM_EVERY_MS);
  }
  return least;
}

async function prepare(
  context: Context,
  server: Server,
  dataDir: string,
): Promise<{ attackers: Attackers; watch: Watch; sessions: number }> {
  const { options } = context;
  const [fleet, faceId, apiKey] = await Promise.all([
    startFleet(context, server, { processes: 1, codec: codecOf(options) }),
    firstFace(server),
    attackersKey(dataDir),
  ]);
  // With their key: the faces of the honest one stay as they are.
  await wakeJobs({ ...server, apiKey });
  const tokens = await createTokens(server, apiKey, faceId);
  const arena: Arena = {
    url: server.url,
    apiKey,
    faceId,
    tokens,
    mediaPort: await mediaPort(server, tokens[0]!),
    addresses: Array.from(
      { length: number(options, 'addresses') },
      (_, index) => `127.0.${1 + Math.floor(index / 200)}.${1 + (index % 200)}`,
    ),
  };
  const attackers = await Attackers.start(
    number(options, 'attackers'),
    arena,
    spareCpus(server.pid),
  );
  context.defer(() => attackers.end());
  const { startsSeconds } = await benchSpeech();
  const watch = await Watch.start(
    server,
    fleet,
    attackers,
    number(options, 'honest'),
    startsSeconds,
  );
  context.defer(() => {
    watch.stop();
  });
  await delay(WARM_UP_SECONDS * 1000 * Math.min(1, number(options, 'seconds')));
  return { attackers, watch, sessions: Math.max(1, (await leastRoom(server)) - PLACES_LEFT) };
}

/** What the honest ones saw, for the figures over time. */
function recordPhase(context: Context, { health, leastFps, speakMs, newSession }: Seen): void {
  const spans = spansOf(
    health.map(({ atMs }) => atMs),
    health.map(({ ms }) => ms),
    1000,
  );
  for (const { at, values } of spans) {
    context.record('/healthz p99', quantile(values, 0.99), 'ms', at);
  }
  context.record('least frames a second of an honest session', leastFps, '/s');
  context.record('speech to SPEAK p99', speakMs, 'ms');
  if (typeof newSession === 'number') {
    context.record('token to first frame of a new session', newSession, 'ms');
  }
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  if (context.target !== undefined) {
    throw new Error('hostile attacks a server of its own alone: leave --target out');
  }
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-hostile-'));
  context.defer(() => {
    rmSync(dataDir, { recursive: true, force: true });
  });
  // The limits that a server has by default are part of what is tried.
  const server = await context.server(
    {
      WORKERS: '1',
      DATA_DIR: dataDir,
      MAX_WORKER_LOAD: '1',
      RATE_LIMIT_RPS: '50',
      MAX_SESSIONS_PER_KEY: '1000',
      // The attackers come from loopback, where proxies are trusted by default.
      TRUSTED_PROXIES: 'none',
    },
    { inspect: true },
  );
  const { attackers, watch, sessions } = await prepare(context, server, dataDir);
  const seconds = number(options, 'seconds');
  const rate = number(options, 'rate');
  const phases: Phase[] = [];
  const phase = async (name: string, strikes: readonly Strike[]): Promise<void> => {
    let tallies: Tallies = {};
    const seen = await watch.during(seconds, async () => {
      if (strikes.length === 0) {
        await delay(seconds * 1000);
      } else {
        tallies = await attackers.attack(strikes, seconds, sessions);
      }
    });
    await delay(number(options, 'settle') * 1000);
    const alive = await liveMemory(server.inspectorUrl!).catch(() => UNKNOWN_MEMORY);
    const done = { name, seen, strikes, tallies, alive };
    phases.push(done);
    recordPhase(context, seen);
    context.progress(describe(done));
  };
  const only = text(options, 'only')
    .split(',')
    .filter((name) => name !== '');
  const entryPoints = ENTRY_POINTS.filter(({ name }) => only.length === 0 || only.includes(name));
  if (entryPoints.length === 0) {
    throw new Error(
      `--only takes these, with commas between: ${ENTRY_POINTS.map(({ name }) => name).join(', ')}`,
    );
  }
  let brokenBy: string | undefined = undefined;
  try {
    await phase('calm', []);
    const alone = entryPoints.slice(0, number(options, 'alone'));
    for (const { name, perSecond } of alone) {
      await phase(name, [{ entryPoint: name, perSecond: perSecond * rate }]);
    }
    if (entryPoints.length > 1) {
      await phase(
        'all',
        entryPoints.map(({ name, perSecond }) => ({
          entryPoint: name,
          perSecond: perSecond * rate * number(options, 'together'),
        })),
      );
    }
    await phase('calm again', []);
  } catch (error) {
    if (phases.length === 0) {
      throw error;
    }
    const next = entryPoints.slice(0, number(options, 'alone'))[phases.length - 1]?.name ?? 'all';
    const why = error instanceof Error ? error.message : String(error);
    brokenBy = `${next}: ${why}${Number.isNaN(residentMb(server)) ? ' (the server is gone)' : ''}`;
    context.progress(`the run ends here, ${brokenBy}`);
  }
  return report(context, phases, sessions, brokenBy);
}

export const hostile: Scenario = {
  name: 'hostile',
  about:
    'Floods on every entry point beside honest sessions: their frames, latency, /healthz, ' +
    'new sessions, memory. --alone N: the first N entry points alone, then all at once.',
  options: {
    honest: 8,
    seconds: 10,
    settle: 3,
    rate: 1,
    together: 0.2,
    attackers: 1,
    addresses: 4,
    only: '',
    alone: ENTRY_POINTS.length,
    codec: 'vp8',
    fps: 29,
    times: 2,
    slack: 1,
    healthz: 100,
    alive: 16,
    resident: 64,
  },
  small: {
    honest: 2,
    seconds: 0.6,
    settle: 0.1,
    rate: 0.1,
    alone: 2,
    together: 0.5,
    fps: 20,
    times: 10,
    slack: 5,
    healthz: 1000,
    alive: 64,
    resident: 256,
  },
  run,
};
