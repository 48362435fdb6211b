// A process full of simulated servers, told what to do over IPC. Started by rehearsal.ts, ends when
// its parent goes.
import { wallMs } from '../../src/base/time.ts';
import { answerCommands } from '../child-process.ts';
import { quantile } from '../report/stats.ts';
import type { ServersCommand, ServersFigures, ServersSetUp } from './protocol.ts';
import {
  BEATS,
  type BeatName,
  type Listener,
  PERIODS_MS,
  SimulatedServer,
} from './simulated-server.ts';

/** How often it looks what is due. */
const TICK_MS = 4;
/** Servers that are filled at a time. */
const FILLING = 20;
const MAX_FAILURES = 5;

const perBeat = <T>(make: () => T): Record<BeatName, T> =>
  Object.fromEntries(BEATS.map((name) => [name, make()])) as Record<BeatName, T>;

/** What was measured since it was made. */
class Counts {
  readonly sent = perBeat(() => 0);
  readonly replyMs = perBeat((): number[] => []);
  readonly lateMs: number[] = [];
  commands = 0;
  readonly sinceMs = performance.now();
  readonly cpu = process.cpuUsage();
}

let servers: SimulatedServer[] = [];
let counts = new Counts();
const failures: string[] = [];
/** Ids of servers that were found dead, and when, Unix ms. */
const dead = new Map<string, number>();
let onFound = (): void => {};
/** The first one ended. */
let isFirstDead = false;

const listener: Listener = {
  answered: (name, ms) => {
    counts.replyMs[name].push(Math.round(ms * 100) / 100);
  },
  foundDead: (ids) => {
    for (const id of ids) {
      dead.set(id, dead.get(id) ?? wallMs());
    }
    onFound();
  },
  failed: (message) => {
    if (failures.length < MAX_FAILURES) {
      failures.push(message);
    }
  },
};

async function setUp({ port, first, count, sessions, digests }: ServersSetUp): Promise<string> {
  for (let at = 0; at < count; at += FILLING) {
    const some = await Promise.all(
      Array.from({ length: Math.min(FILLING, count - at) }, (_server, index) =>
        SimulatedServer.connect(port, first + at + index, sessions, digests, listener),
      ),
    );
    await Promise.all(some.map((server) => server.fill()));
    servers = [...servers, ...some];
  }
  return servers[0]!.id;
}

/** Sends what is due to each server, as often as a server does, at times that chance has spread. */
function start(): void {
  const startMs = performance.now();
  const queues = BEATS.map((name) => ({
    name,
    periodMs: PERIODS_MS[name],
    // Offsets into the period, ascending: whose turn it is, and when.
    turns: servers
      .map((server, index) => ({ server, index, offsetMs: Math.random() * PERIODS_MS[name] }))
      .toSorted((a, b) => a.offsetMs - b.offsetMs),
    next: 0,
  }));
  const tick = (): void => {
    const nowMs = performance.now() - startMs;
    for (const queue of queues) {
      for (;;) {
        const { server, index, offsetMs } = queue.turns[queue.next % queue.turns.length]!;
        const round = Math.floor(queue.next / queue.turns.length);
        const lateMs = nowMs - round * queue.periodMs - offsetMs;
        if (lateMs < 0) {
          break;
        }
        queue.next++;
        if (index === 0 && isFirstDead) {
          continue;
        }
        counts.commands += server.send(queue.name);
        counts.sent[queue.name]++;
        counts.lateMs.push(lateMs);
      }
    }
  };
  setInterval(tick, TICK_MS);
}

function figures(): ServersFigures {
  const { user, system } = process.cpuUsage(counts.cpu);
  return {
    sent: counts.sent,
    commands: counts.commands,
    replyMs: counts.replyMs,
    lateP99Ms: quantile(counts.lateMs, 0.99),
    seconds: (performance.now() - counts.sinceMs) / 1000,
    cpuSeconds: (user + system) / 1e6,
    dead: [...dead.keys()],
    failures,
  };
}

async function obey(command: ServersCommand): Promise<unknown> {
  switch (command.op) {
    case 'setUp':
      return await setUp(command.setUp);
    case 'start':
      start();
      return true;
    case 'count':
      counts = new Counts();
      return true;
    case 'kill':
      isFirstDead = true;
      return servers[0]!.kill();
    case 'notice':
      while (!dead.has(command.dead)) {
        await new Promise<void>((resolve) => {
          onFound = resolve;
        });
      }
      return dead.get(command.dead);
    case 'figures':
      break;
  }
  return figures();
}

answerCommands<ServersCommand>('simulated servers', obey);
