// Connects and disconnects for minutes, cleanly and not, and looks for what stays behind: memory,
// descriptors, ports, slots.
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type LiveMemory, liveMemory } from '../live-memory.ts';
import { quantile, slope, tailQuantile } from '../report/stats.ts';
import {
  type Bound,
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  atMost,
  number,
} from '../scenario.ts';
import { type Scrape } from '../server-view.ts';
import { OUTSIDE_NOTE, codecOf, look, startFleet } from './setup.ts';

/** A peer that vanished must be noticed within ten seconds; a little is added for the scrape. */
const FREED_WITHIN_MS = 12_000;
/**
 * So often the churn pauses until nobody is left, and what is alive is counted, the garbage of all
 * threads collected first. The resident size during the churn is not a measure: it is that
 * of whoever is connected, of megabytes that await collection, and of what malloc keeps for the
 * next session, and a regression through it has said anything from -40 to +40 kB a connect of the
 * same server. After a collection it still wavers by 5 MB, as pages go back sooner or later, so its
 * bound is wide: it is there for what splinters malloc's arenas (33 kB a connect, while encoders
 * were set up on the worker's thread), and the other two are there for leaks.
 */
const [PAUSES, PAUSES_WHEN_SHORT] = [10, 4];
/** Below this many connects the slopes are noise. */
const ENOUGH_FOR_SLOPES = 300;

const sessionsIn = (one: Scrape | undefined): number =>
  one === undefined ? Number.NaN : one.sum('mouthpiece_worker_sessions');

/** UDP sockets of a process: inodes of its descriptors that /proc/net/udp lists. */
function udpSockets(pid: number | undefined): number {
  if (pid === undefined) {
    return Number.NaN;
  }
  const inodes = new Set(
    readFileSync(`/proc/${pid}/net/udp`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/)[9]),
  );
  return readdirSync(`/proc/${pid}/fd`).filter((name) => {
    try {
      return inodes.has(
        /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? '',
      );
    } catch {
      return false; // closed meanwhile
    }
  }).length;
}

async function untilEmpty(server: Server): Promise<number> {
  const startMs = performance.now();
  while (performance.now() - startMs < FREED_WITHIN_MS + 10_000) {
    const now = await look(server);
    if (now === undefined) {
      return Number.NaN;
    }
    if (sessionsIn(now) === 0 && now.sum('mouthpiece_sessions') === 0) {
      break;
    }
    await delay(250);
  }
  return performance.now() - startMs;
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const connects = number(options, 'connects');
  const server = await context.server({ WORKERS: '1', MAX_WORKER_LOAD: '1' }, { inspect: true });
  const fleet = await startFleet(context, server, { processes: 1, codec: codecOf(options) });
  const points: {
    readonly connects: number;
    readonly rssMb: number;
    readonly descriptors: number;
  }[] = [];
  const setUps: number[] = [];
  const errors = new Map<string, number>();
  let opened = 0;
  let vanished = 0;
  const vanishing: Promise<void>[] = [];
  const sample = async (): Promise<void> => {
    const now = await look(server);
    if (now !== undefined) {
      points.push({
        connects: opened,
        rssMb: now.sum('process_resident_memory_bytes') / 2 ** 20,
        descriptors: now.sum('process_open_fds'),
      });
    }
  };
  let turnedAway = 0;
  const one = async (index: number): Promise<void> => {
    try {
      const { peer, figures } = await fleet.openPatiently(undefined, undefined, () => {
        turnedAway++;
      });
      setUps.push(figures.setUp.firstFrame);
      if (index % 3 === 0) {
        await fleet.speak(peer, 'burst', index, 0.5);
      }
      await delay(Math.random() * 300);
      const how = index % 10 === 9 ? 'vanish' : 'clean';
      if (how === 'clean') {
        await fleet.close(peer);
      } else {
        vanished++;
        // It takes the server seconds to notice, in which others come and go.
        vanishing.push(fleet.close(peer, 'vanish'));
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      errors.set(why, (errors.get(why) ?? 0) + 1);
    }
  };
  // The first connects fill caches and pools that stay, and V8 compiles what they run, half a
  // megabyte in all: the counting begins after them.
  const parallel = number(options, 'parallel');
  for (let i = 0; i < number(options, 'warmUp'); i += parallel) {
    await Promise.all(
      Array.from({ length: Math.min(parallel, number(options, 'warmUp') - i) }, (_, k) =>
        one(i + k),
      ),
    );
  }
  await untilEmpty(server);
  const [socketsBefore, before] = [udpSockets(server.pid), await look(server)];
  await sample();
  const settled: ({ readonly connects: number } & LiveMemory)[] = [];
  const count = async (): Promise<void> => {
    if (server.inspectorUrl === undefined || server.inspectorUrl === undefined) {
      return;
    }
    const memory = await liveMemory(server.inspectorUrl);
    settled.push({ connects: opened, ...memory });
    context.progress(
      `${String(opened).padStart(5)}/${connects}  alive after collection: ` +
        `heaps ${(memory.heapBytes / 2 ** 20).toFixed(2)} MB, ` +
        `malloc ${(memory.mallocBytes / 2 ** 20).toFixed(2)} MB; ` +
        `resident ${(memory.residentBytes / 2 ** 20).toFixed(1)} MB`,
    );
  };
  await count();
  const every = Math.max(1, Math.floor(connects / 50));
  let next = 0;
  const connection = async (until: number): Promise<void> => {
    while (next < until) {
      const index = next++;
      await one(index);
      opened++;
      if (opened % every !== 0) {
        continue;
      }
      await sample();
      const failed = [...errors.values()].reduce((sum, count) => sum + count, 0);
      context.progress(
        `${String(opened).padStart(5)}/${connects}  set-up ` +
          `p50 ${quantile(setUps, 0.5).toFixed(0)} ms  ` +
          `RSS ${points.at(-1)?.rssMb.toFixed(0) ?? '?'} ` +
          `MB  ${points.at(-1)?.descriptors ?? '?'} ` +
          `descriptors  ${errors.size === 0 ? '' : `${failed} failed`}`,
      );
    }
  };
  let freedMs = 0;
  const pauses = connects >= ENOUGH_FOR_SLOPES ? PAUSES : PAUSES_WHEN_SHORT;
  for (let pause = 1; pause <= pauses; pause++) {
    const until = Math.round((connects * pause) / pauses);
    await Promise.all(Array.from({ length: parallel }, () => connection(until)));
    freedMs = Math.max(freedMs, await untilEmpty(server));
    await Promise.all(vanishing);
    await count();
  }
  const after = await look(server);
  await sample();

  const failures = [...errors.values()].reduce((sum, count) => sum + count, 0);
  const later = settled.filter(({ connects: at }) => at >= connects / 2);
  const perConnect = (bytes: (memory: LiveMemory) => number): number =>
    slope(later.map((memory) => [memory.connects, bytes(memory) / 1024]));
  const figures = {
    connects: opened,
    failures,
    turnedAway,
    vanished,
    setUpP50Ms: quantile(setUps, 0.5),
    setUpP99Ms: tailQuantile(setUps, 0.99),
    freedMs,
    heapKbPerConnect: perConnect(({ heapBytes }) => heapBytes),
    mallocKbPerConnect: perConnect(({ mallocBytes }) => mallocBytes),
    residentKbPerConnect: perConnect(({ residentBytes }) => residentBytes),
    descriptorsLeft:
      after === undefined || before === undefined
        ? Number.NaN
        : after.sum('process_open_fds') - before.sum('process_open_fds'),
    socketsLeft: udpSockets(server.pid) - socketsBefore,
    sessionsLeft: sessionsIn(after),
    rssMb: points.at(-1)?.rssMb ?? Number.NaN,
    startedNotEnded:
      after === undefined
        ? Number.NaN
        : after.sum('mouthpiece_sessions_started_total') -
          after.sum('mouthpiece_sessions_ended_total'),
  };
  const bounds: Bound[] = [atMost('connects that failed', failures, 0)];
  if (after !== undefined) {
    bounds.push(
      atMost('sessions left', figures.sessionsLeft, 0),
      atMost('sessions begun and never ended', figures.startedNotEnded, 0),
      atMost('time until the last slot is free', freedMs, FREED_WITHIN_MS, 'ms'),
      atMost('descriptors left', figures.descriptorsLeft, 3),
    );
    if (server.pid !== undefined) {
      bounds.push(atMost('UDP sockets left', figures.socketsLeft, 0));
    }
    if (connects >= ENOUGH_FOR_SLOPES && settled.length > 0) {
      bounds.push(
        atMost(
          'heaps after collection, growth over the second half',
          (figures.heapKbPerConnect * connects) / 2,
          number(options, 'heap'),
          'kB',
        ),
        atMost(
          'malloc after collection, growth over the second half',
          (figures.mallocKbPerConnect * connects) / 2,
          number(options, 'malloc'),
          'kB',
        ),
        atMost(
          'resident after collection, slope over the second half',
          figures.residentKbPerConnect,
          number(options, 'slope'),
          'kB/connect',
        ),
      );
    }
  }
  return {
    figures,
    bounds,
    tables: [
      { title: 'churn', columns: ['', ''], rows: Object.entries(figures) },
      ...(errors.size === 0
        ? []
        : [{ title: 'failures', columns: ['reason', 'times'], rows: [...errors] }]),
    ],
    plots: [
      {
        kind: 'lines',
        title: 'Resident memory of the server',
        x: 'connects',
        y: 'MB',
        lines: [
          { name: 'resident', points: points.map((point) => [point.connects, point.rssMb]) },
          {
            name: 'resident, nobody left, collected',
            points: settled.map((memory) => [memory.connects, memory.residentBytes / 2 ** 20]),
          },
        ],
      },
      {
        kind: 'lines',
        title: 'Memory alive with nobody left, garbage collected',
        x: 'connects',
        y: 'MB',
        lines: [
          {
            name: 'heaps of all threads',
            points: settled.map((memory) => [memory.connects, memory.heapBytes / 2 ** 20]),
          },
          {
            name: 'malloc',
            points: settled.map((memory) => [memory.connects, memory.mallocBytes / 2 ** 20]),
          },
        ],
      },
      {
        kind: 'lines',
        title: 'File descriptors of the server',
        x: 'connects',
        y: '',
        lines: [
          { name: 'open', points: points.map((point) => [point.connects, point.descriptors]) },
        ],
      },
      {
        kind: 'distribution',
        title: 'Token to first frame (outside)',
        x: 'ms',
        samples: [{ name: 'set-up', values: setUps }],
      },
    ],
    notes: [
      'Every tenth peer vanishes without a word; every third speaks half a second.',
      ...(settled.length === 0
        ? []
        : [
            `Memory: ${pauses} times in the run the churn waits until nobody is left, ` +
              `collects the garbage of all threads, and asks V8's heaps and malloc what is ` +
              'alive; slopes are least squares over the second half. The heaps grow by some ' +
              '250 kB more while V8 compiles what has become hot (two heap snapshots a ' +
              'thousand connects apart differ by code alone), however long the run; so it is ' +
              'the growth that is bounded, and what keeps one kilobyte a connect breaks that ' +
              'in any run of 1000.',
          ]),
      ...(after === undefined ? [OUTSIDE_NOTE] : []),
    ],
  };
}

export const churn: Scenario = {
  name: 'churn',
  about:
    'Connects and disconnects, one in ten without a word; memory slope, descriptors, ' +
    'sockets and slots left behind.',
  options: {
    connects: 600,
    parallel: 4,
    warmUp: 150,
    heap: 400,
    malloc: 300,
    slope: 20,
    codec: 'vp8',
  },
  small: { connects: 12, warmUp: 2, parallel: 2 },
  run,
};
