// Floods on every door of a server beside honest sessions: what they cost those sessions, and what they leave behind.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { mapCpus } from '../../src/front/placement/cpu-map.ts';
import { native } from '../../src/native/addon.ts';
import { Attackers } from '../hostile/attackers.ts';
import { DOORS } from '../hostile/doors.ts';
import type { Arena, Strike, Tallies } from '../hostile/protocol.ts';
import { plainOffer } from '../hostile/offers.ts';
import { RawWebSocket, textFrame } from '../hostile/raw-web-socket.ts';
import { residentMb, type Seen, Watch } from '../hostile/watch.ts';
import { type LiveMemory, liveMemory } from '../live-memory.ts';
import { ROOT } from '../run.ts';
import { type Bound, type Context, type Outcome, type Scenario, type Server, atLeast, atMost, number, text } from '../scenario.ts';
import { codecOf, firstFace, startFleet } from './common.ts';

const MIB = 1024 * 1024;
/** Objectives of the server (docs/operations.md): below them, twice as late is not seen by anybody. */
const OBJECTIVE_MS = { late: 15, speak: 120 };
/** Connecting, compiling and the first key frames are over by then. */
const WARM_UP_SECONDS = 4;
/** A key's rate is 50 requests a second: tokens are made ahead, more slowly. */
const TOKENS = 64;
const TOKEN_EVERY_MS = 30;

interface Phase {
  readonly name: string;
  readonly seen: Seen;
  readonly strikes: readonly Strike[];
  readonly tallies: Tallies;
  /** After the phase, all garbage collected. */
  readonly alive: LiveMemory;
}

/** A second key, as `npm run keys` makes it, with the server's own limits for each key. */
async function attackersKey(dataDir: string): Promise<string> {
  const args = ['--disable-warning=ExperimentalWarning', path.join(ROOT, 'scripts/keys.ts'), 'create', '--name', 'attackers', '--owner', 'attackers'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env: { ...process.env, DATA_DIR: dataDir } });
  return stdout.trim();
}

async function createTokens(server: Server, apiKey: string, faceId: string): Promise<string[]> {
  const tokens: string[] = [];
  while (tokens.length < TOKENS) {
    const response = await fetch(`${server.url}/compose/token`, {
      method: 'POST', headers: { 'content-type': 'application/json', 'x-service-api-key': apiKey }, body: JSON.stringify({ faceId }),
    });
    const { session_token: token } = await response.json() as { session_token: string };
    if (!response.ok) throw new Error(`POST /compose/token answered ${response.status} before any attack`);
    tokens.push(token);
    await delay(TOKEN_EVERY_MS);
  }
  return tokens;
}

/** The UDP port of the worker: a session's answer tells it. */
async function mediaPort(server: Server, token: string): Promise<number> {
  const socket = await RawWebSocket.open({ url: server.url, path: `/compose/webrtc/p2p?session_token=${token}`, localAddress: '127.0.0.1' });
  try {
    return await new Promise((resolve, reject) => {
      socket.onClose = (reason) => { reject(new Error(`no answer to an offer: ${reason}`)); };
      socket.onText = (said) => {
        const port = /a=candidate:\S+ 1 udp \d+ \S+ (\d+) /i.exec(said)?.[1];
        if (port !== undefined) resolve(Number(port));
        else if (said.startsWith('ERROR')) reject(new Error(said));
      };
      socket.write(textFrame(JSON.stringify({ type: 'offer', sdp: plainOffer() })));
    });
  } finally {
    socket.destroy();
  }
}

async function prepare(context: Context, server: Server, dataDir: string): Promise<{ attackers: Attackers; watch: Watch }> {
  const { options } = context;
  const fleet = await startFleet(context, server, { processes: 1, codec: codecOf(options) });
  const faceId = await firstFace(server);
  const apiKey = await attackersKey(dataDir);
  const tokens = await createTokens(server, apiKey, faceId);
  const arena: Arena = {
    url: server.url, apiKey, faceId, tokens, mediaPort: await mediaPort(server, tokens[0]!),
    addresses: Array.from({ length: number(options, 'addresses') }, (_, index) => `127.0.${1 + Math.floor(index / 200)}.${1 + index % 200}`),
  };
  const allowed = native.allowedCpus();
  const taken = new Set(mapCpus(allowed, 1));
  const spare = allowed.filter((cpu) => !taken.has(cpu));
  const attackers = await Attackers.start(number(options, 'attackers'), arena, spare.length > 0 ? spare.join(',') : undefined);
  context.defer(() => attackers.end());
  const watch = await Watch.start(server, fleet, number(options, 'honest'));
  context.defer(() => { watch.stop(); });
  await delay(WARM_UP_SECONDS * 1000 * Math.min(1, number(options, 'seconds')));
  return { attackers, watch };
}

function describe({ name, seen }: Phase): string {
  const newcomer = typeof seen.newcomer === 'number' ? `${seen.newcomer.toFixed(0)} ms` : seen.newcomer;
  return `${name.padEnd(13)} ${seen.leastFps.toFixed(1)} fps  late p99 ${seen.lateMs.toFixed(1)} ms  SPEAK p99 ${seen.speakMs.toFixed(0)} ms  healthz p99 ${seen.healthMs.toFixed(0)} ms  newcomer ${newcomer}  peak ${seen.peakResidentMb.toFixed(0)} MB${seen.lost.length === 0 ? '' : `  LOST ${seen.lost.join(', ')}`}`;
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  if (context.target !== null) throw new Error('hostile attacks a server of its own alone: leave --target out');
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-hostile-'));
  context.defer(() => { rmSync(dataDir, { recursive: true, force: true }); });
  // The limits that a server has by default are part of what is tried.
  const server = await context.server({ WORKERS: '1', DATA_DIR: dataDir, MAX_WORKER_LOAD: '1', RATE_LIMIT_RPS: '50', MAX_SESSIONS_PER_KEY: '1000' }, { inspect: true });
  const { attackers, watch } = await prepare(context, server, dataDir);
  const seconds = number(options, 'seconds');
  const rate = number(options, 'rate');
  const phases: Phase[] = [];
  const phase = async (name: string, strikes: readonly Strike[]): Promise<void> => {
    let tallies: Tallies = {};
    const seen = await watch.during(seconds, async () => {
      if (strikes.length === 0) await delay(seconds * 1000);
      else tallies = await attackers.attack(strikes, seconds);
    });
    await delay(number(options, 'settle') * 1000);
    const alive = await liveMemory(server.inspectorUrl!).catch(() => UNKNOWN_MEMORY);
    const done = { name, seen, strikes, tallies, alive };
    phases.push(done);
    context.progress(describe(done));
  };
  const only = text(options, 'only').split(',').filter((name) => name !== '');
  const doors = DOORS.filter(({ name }) => only.length === 0 || only.includes(name));
  if (doors.length === 0) throw new Error(`--only takes these, with commas between: ${DOORS.map(({ name }) => name).join(', ')}`);
  let brokenBy: string | null = null;
  try {
    await phase('calm', []);
    for (const { name, perSecond } of doors) await phase(name, [{ door: name, perSecond: perSecond * rate }]);
    if (doors.length > 1) await phase('all', doors.map(({ name, perSecond }) => ({ door: name, perSecond: perSecond * rate * number(options, 'together') })));
    await phase('calm again', []);
  } catch (error) {
    if (phases.length === 0) throw error;
    const next = phases.length <= doors.length ? doors[phases.length - 1]!.name : 'all';
    brokenBy = `${next}: ${error instanceof Error ? error.message : String(error)}${Number.isNaN(residentMb(server)) ? ' (the server is gone)' : ''}`;
    context.progress(`the run ends here, ${brokenBy}`);
  }
  return report(context, phases, brokenBy);
}

const percent = (part: number, whole: number): string => `${(100 * part / whole).toFixed(part / whole < 0.1 ? 1 : 0)} %`;

/** The commonest answers first. */
function answersOf(answers: Readonly<Record<string, number>>): string {
  const total = Object.values(answers).reduce((sum, times) => sum + times, 0);
  return Object.entries(answers).sort(([, a], [, b]) => b - a).slice(0, 5).map(([answer, times]) => `${answer} ${percent(times, total)}`).join(', ');
}

const UDP_MEDIA = new Set(['junk', 'stun', 'media']);

/** Attacked units that the server took up: datagrams that it read, else answers other than those of its silence. */
function served(door: string, { seen, tallies }: Phase, calm: Phase, seconds: number): number {
  if (UDP_MEDIA.has(door)) return seen.interval.rate('mouthpiece_datagrams_received_total') - calm.seen.interval.rate('mouthpiece_datagrams_received_total');
  const unanswered = /^(no answer|nothing|withheld|held|not sent|E[A-Z]+$)/;
  return Object.entries(tallies[door]?.answers ?? {}).filter(([answer]) => !unanswered.test(answer)).reduce((sum, [, times]) => sum + times, 0) / seconds;
}

function rejectedDatagrams({ seen: { interval } }: Phase): string {
  const reasons = ['unknown_source', 'stun_integrity', 'stun_unknown_user', 'stun_malformed', 'dtls_record', 'dtls_plaintext', 'srtp_auth', 'rate_limited', 'too_large', 'other'];
  const found = Object.fromEntries(reasons.map((reason) => [reason, interval.increase('mouthpiece_datagrams_rejected_total', { reason })]));
  return answersOf(Object.fromEntries(Object.entries(found).filter(([, times]) => times > 0)));
}

function boundsOf({ options }: Context, phases: readonly Phase[], doors: readonly Phase[], brokenBy: string | null): Bound[] {
  const calm = phases[0]!.seen;
  const limit = (name: 'late' | 'speak', calmMs: number): number => Math.max(number(options, 'times') * calmMs, OBJECTIVE_MS[name] * number(options, 'slack'));
  const bounds = doors.flatMap(({ name, seen }) => [
    atLeast(`${name}: frames a second of the honest session that got fewest`, seen.leastFps, number(options, 'fps')),
    atMost(`${name}: frame lateness, p99`, seen.lateMs, limit('late', calm.lateMs), 'ms'),
    // In a run of seconds it may be that nobody began to speak.
    ...(seen.utterances === 0 ? [] : [atMost(`${name}: speech to SPEAK, p99`, seen.speakMs, limit('speak', calm.speakMs), 'ms')]),
    ...(Number.isNaN(seen.lipsMs) ? [] : [atMost(`${name}: speech to its first frame by the server's ledger, p99`, seen.lipsMs, limit('speak', calm.lipsMs), 'ms')]),
    atMost(`${name}: /healthz, p99`, seen.healthMs, number(options, 'healthz'), 'ms'),
    atMost(`${name}: sessions lost, utterances unheard, newcomers turned away, /healthz refused, workers replaced`, harm(seen), 0),
  ]);
  const [first, last] = [phases[0]!.alive, phases.at(-1)!.alive];
  return [
    ...bounds,
    atMost('alive after collection, growth over all', (aliveBytes(last) - aliveBytes(first)) / MIB, number(options, 'alive'), 'MB'),
    atMost('resident after collection, growth over all', (last.residentBytes - first.residentBytes) / MIB, number(options, 'resident'), 'MB'),
    atMost('doors that ended the run', brokenBy === null ? 0 : 1, 0),
  ];
}

/** A thread that is held up for tens of seconds answers nobody. */
const UNKNOWN_MEMORY: LiveMemory = { heapBytes: Number.NaN, mallocBytes: Number.NaN, residentBytes: Number.NaN, threads: 0 };

/** What must not happen to anybody who means no harm, however rarely. */
const harm = ({ lost, unheard, newcomer, healthFailures, interval }: Seen): number =>
  lost.length + unheard + (typeof newcomer === 'number' ? 0 : 1) + Object.values(healthFailures).reduce((sum, times) => sum + times, 0)
  + interval.increase('mouthpiece_worker_restarts_total');

const aliveBytes = ({ heapBytes, mallocBytes }: LiveMemory): number => heapBytes + mallocBytes;

function report(context: Context, phases: readonly Phase[], brokenBy: string | null): Outcome {
  const calm = phases[0]!;
  const seconds = number(context.options, 'seconds');
  const doors = phases.filter(({ strikes }) => strikes.length > 0);
  const figures: Record<string, number> = {};
  for (const { name, seen, alive } of phases) {
    Object.assign(figures, {
      [`${name}: fps`]: seen.leastFps, [`${name}: late p99 ms`]: seen.lateMs, [`${name}: SPEAK p99 ms`]: seen.speakMs, [`${name}: healthz p99 ms`]: seen.healthMs,
      [`${name}: lost`]: seen.lost.length, [`${name}: alive MB`]: aliveBytes(alive) / MIB, [`${name}: resident MB`]: alive.residentBytes / MIB, [`${name}: peak MB`]: seen.peakResidentMb,
    });
  }
  const attackRows = doors.flatMap((phase) => phase.strikes.map(({ door, perSecond }): (string | number)[] => {
    const { attempted, answers } = phase.tallies[door]!;
    figures[`${phase.name}${phase.name === door ? '' : ` ${door}`}: attempted per second`] = attempted / seconds;
    const saw = UDP_MEDIA.has(door) ? `rejected as ${rejectedDatagrams(phase)}` : answersOf(answers);
    return [phase.name === door ? door : `${phase.name}: ${door}`, perSecond, attempted / seconds, phase.name === door || !UDP_MEDIA.has(door) ? served(door, phase, calm, seconds) : Number.NaN, saw];
  }));
  return {
    figures, bounds: boundsOf(context, phases, doors, brokenBy),
    tables: [
      { title: 'what the attackers did and saw', columns: ['door', 'asked /s', 'attempted /s', 'served /s', 'what clients saw'], rows: attackRows },
      {
        title: `what ${context.options['honest']} honest sessions saw, and others meanwhile`,
        columns: ['', 'least fps', 'late p99 ms', 'outside p99 ms', 'SPEAK p99 ms', 'lips p99 ms', 'utterances', 'unheard', 'lost', 'healthz p99 ms', 'newcomer ms'],
        rows: phases.map(({ name, seen }) => [
          name, seen.leastFps, seen.lateMs, seen.delayMs, seen.speakMs, seen.lipsMs, seen.utterances, seen.unheard, seen.lost.length, seen.healthMs, seen.newcomer,
        ]),
      },
      {
        title: 'memory of the server, MB', columns: ['', 'resident, peak', 'resident after', 'heaps after', 'malloc after'],
        rows: phases.map(({ name, seen, alive }) => [name, seen.peakResidentMb, alive.residentBytes / MIB, alive.heapBytes / MIB, alive.mallocBytes / MIB]),
      },
    ],
    plots: [
      { kind: 'lines', title: 'Memory of the server, phase by phase', x: 'phase', y: 'MB', lines: [
        { name: 'resident, peak', points: phases.map(({ seen }, index) => [index, seen.peakResidentMb]) },
        { name: 'resident, collected', points: phases.map(({ alive }, index) => [index, alive.residentBytes / MIB]) },
        { name: 'alive', points: phases.map(({ alive }, index) => [index, aliveBytes(alive) / MIB]) },
      ] },
      { kind: 'lines', title: 'Frames a second of the honest session that got fewest, phase by phase', x: 'phase', y: 'fps', lines: [{ name: 'fps', points: phases.map(({ seen }, index) => [index, seen.leastFps]) }] },
    ],
    notes: [
      `The attackers are ${number(context.options, 'attackers')} processes on the same machine, at nice 10, on the cores that workers leave: they share them with the server's main thread and the honest peers. What was attempted may therefore lie below what was asked.`,
      'They come from loopback addresses of their own and have a key of their own, under the limits that a key has by default.',
      `Lateness and time to SPEAK may be ${number(context.options, 'times')} times those of the calm phase before; what stays within the server's objectives (${OBJECTIVE_MS.late} ms late, ${OBJECTIVE_MS.speak} ms to the lips) is no harm whatever the ratio.`,
      `Phases in order: ${phases.map(({ name }) => name).join(', ')}.`,
      ...(brokenBy === null ? [] : [`The run was broken off. ${brokenBy}`]),
    ],
  };
}

export const hostile: Scenario = {
  name: 'hostile',
  about: 'Floods on every door beside honest sessions: their frames and latency, /healthz, newcomers, memory left.',
  options: {
    honest: 8, seconds: 10, settle: 3, rate: 1, together: 0.2, attackers: 1, addresses: 8, only: '', codec: 'vp8',
    fps: 29, times: 2, slack: 1, healthz: 100, alive: 16, resident: 64,
  },
  small: { honest: 2, seconds: 0.6, settle: 0.1, rate: 0.1, together: 0.5, fps: 20, times: 10, slack: 5, healthz: 1000, alive: 64, resident: 256 },
  run,
};
