// What is watched while an entry point is attacked: the honest sessions, /healthz, a new session,
// and the server's memory.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Fleet } from '../peers/fleet.ts';
import { MAX_KEPT_DELAYS, type PeerFigures } from '../peers/peer-figures.ts';
import { quantile } from '../report/stats.ts';
import type { Server } from '../scenario.ts';
import { Interval, type Scrape, scrape } from '../server-view.ts';
import type { Attackers } from './attackers.ts';
import { reasonOf } from './entry-point.ts';

/** A conversation of short turns: many utterances begin in a short time, each after silence. */
const TURN = { everyMs: 2000, speechSeconds: 0.8 } as const;
const HEALTH_EVERY_MS = 50;
const HEALTH_LIMIT_MS = 5000;
const [NEW_SESSION_TRIES, NEW_SESSION_PAUSE_MS] = [6, 500];
const RESIDENT_EVERY_MS = 200;
const MIB = 1024 * 1024;
/** More than is parsed on the main thread. */
const LARGE_AUDIO = Buffer.alloc(225_000).toString('base64');
const BODY_LIMIT_MS = 16_000;

/** What one phase did to those who meant no harm. Times in milliseconds, sizes in MiB. */
export interface Seen {
  readonly seconds: number;
  /** Frames a second that arrived, of the session that got fewest. */
  readonly leastFps: number;
  /**
   * Frame lateness, p99: by the server's own clock, and as it looks from outside, above the
   * quickest frame.
   */
  readonly lateMs: number;
  readonly delayMs: number;
  /**
   * Speech sent to SPEAK arriving, p99 over all sessions, from outside; and audio to lips by the
   * server's own statistics.
   */
  readonly speakMs: number;
  readonly lipsMs: number;
  readonly utterances: number;
  /** Utterances that never began to be spoken. */
  readonly unheard: number;
  readonly lost: readonly string[];
  readonly healthMs: number;
  /** Every answer of /healthz: when its request was sent, as performance.now(), and how long it took. */
  readonly health: readonly { readonly atMs: number; readonly ms: number }[];
  readonly healthFailures: Readonly<Record<string, number>>;
  /** Token to first frame of one session opened meanwhile; a text when it was turned away. */
  readonly newSession: number | string;
  /**
   * Answer to one honest request with a body of 300 kB, or a text when it was another one than
   * expected.
   */
  readonly body: number | string;
  readonly peakResidentMb: number;
  /** Frames that were due and that the server did not send. */
  readonly skipped: number;
  /**
   * Share of the machine that other processes took than the server, its peers, the attackers and
   * the bench.
   */
  readonly elsewhere: number;
  readonly interval: Interval;
}

interface Mark {
  readonly atMs: number;
  readonly frames: number;
  readonly utterances: number;
}

export class Watch {
  readonly #server: Server;
  readonly #fleet: Fleet;
  readonly #attackers: Attackers;
  readonly #wanted: number;
  readonly #startsSeconds: readonly number[];
  readonly #honest = new Set<number>();
  readonly #health = new HealthProbe();
  #peakResidentMb = 0;
  readonly #sampler: NodeJS.Timeout;

  private constructor(
    server: Server,
    fleet: Fleet,
    attackers: Attackers,
    wanted: number,
    startsSeconds: readonly number[],
  ) {
    this.#server = server;
    this.#fleet = fleet;
    this.#attackers = attackers;
    this.#wanted = wanted;
    this.#startsSeconds = startsSeconds;
    this.#health.start(server.url);
    this.#sampler = setInterval(() => {
      this.#peakResidentMb = Math.max(this.#peakResidentMb, residentMb(server));
    }, RESIDENT_EVERY_MS);
  }

  /**
   * Opens `wanted` honest sessions and begins to watch.
   * @param startsSeconds where utterances of the fleet's speech begin, with their first sound
   */
  static async start(
    server: Server,
    fleet: Fleet,
    attackers: Attackers,
    wanted: number,
    startsSeconds: readonly number[],
  ): Promise<Watch> {
    const watch = new Watch(server, fleet, attackers, wanted, startsSeconds);
    await watch.#fillUp();
    return watch;
  }

  stop(): void {
    this.#honest.clear();
    this.#health.stop();
    clearInterval(this.#sampler);
  }

  /** Sessions that were lost are replaced, so that each entry point is judged by itself. */
  async #fillUp(): Promise<void> {
    while (this.#honest.size < this.#wanted) {
      const { peer } = await this.#fleet.openPatiently();
      this.#honest.add(peer);
      // Ends when the session does, or the fleet.
      this.#talk(peer).catch(() => {});
    }
  }

  async #talk(peer: number): Promise<void> {
    await delay(Math.random() * TURN.everyMs);
    for (let turn = peer; this.#honest.has(peer); turn++) {
      const from = this.#startsSeconds[turn % this.#startsSeconds.length]!;
      await this.#fleet.speak(peer, 'burst', from, TURN.speechSeconds);
      // Not in step with the frame clock, so that every phase of it is met.
      await delay(TURN.everyMs * (0.9 + 0.2 * Math.random()));
    }
  }

  /** Seconds of CPU since the start of the machine, and of our processes. */
  async #cpu(): Promise<Cpu> {
    const { cpuSeconds } = await this.#fleet.figures();
    const { user, system } = process.cpuUsage();
    const pids = [this.#server.pid, ...this.#attackers.pids].filter((pid) => pid !== undefined);
    const ours = pids.reduce(
      (sum, pid) => sum + cpuSecondsOf(pid),
      cpuSeconds + (user + system) / 1e6,
    );
    return { ...machineCpuSeconds(), ours };
  }

  async #figures(): Promise<ReadonlyMap<number, PeerFigures>> {
    return (await this.#fleet.figures()).byPeer;
  }

  /** Watches while `work` runs; a new session is opened in the middle of it. */
  async during(seconds: number, work: () => Promise<void>): Promise<Seen> {
    await this.#fillUp();
    const before = await scrape(this.#server.url);
    const cpuBefore = await this.#cpu();
    const marks = new Map<number, Mark>();
    for (const [id, { frames, utterances }] of await this.#figures()) {
      if (this.#honest.has(id)) {
        marks.set(id, { atMs: performance.now(), frames, utterances: utterances.length });
      }
    }
    this.#health.take();
    this.#peakResidentMb = residentMb(this.#server);
    const newSession = delay(seconds * 300).then(() => this.#openNewSession());
    const body = delay(seconds * 600).then(() => this.#largeBody());
    await work();
    const cpuAfter = await this.#cpu();
    const figures = await this.#figures();
    const endMs = performance.now();
    const { answers, failures } = this.#health.take();
    const arrived = [...marks].map(([id, mark]) => phaseOf(figures.get(id)!, mark, endMs));
    const lost = await this.#forgetLost(figures);
    // While nobody attacks any more: what the server counts is asked for, and must come.
    const interval = new Interval(before, await scrapePatiently(this.#server.url));
    const spoken = arrived.flatMap(({ speakMs }) => speakMs);
    return {
      seconds: interval.seconds,
      leastFps: Math.min(...arrived.map(({ fps }) => fps)),
      lateMs: interval.quantile('mouthpiece_frame_lateness_seconds', 0.99) * 1000,
      delayMs: quantile(
        arrived.flatMap(({ delaysMs }) => delaysMs),
        0.99,
      ),
      speakMs: quantile(spoken, 0.99),
      lipsMs: interval.quantile('mouthpiece_audio_to_lips_seconds', 0.99) * 1000,
      utterances: spoken.length,
      unheard: arrived.reduce((sum, { unheard }) => sum + unheard, 0),
      lost,
      healthMs: quantile(
        answers.map(({ ms }) => ms),
        0.99,
      ),
      health: answers,
      healthFailures: failures,
      newSession: await newSession,
      body: await body,
      peakResidentMb: this.#peakResidentMb,
      skipped: interval.increase('mouthpiece_frames_skipped_total'),
      elsewhere: elsewhereOf(cpuBefore, cpuAfter),
      interval,
    };
  }

  /** Clients try again when they are told that there is no room at this moment. */
  async #openNewSession(): Promise<number | string> {
    for (let tries = 1; ; tries++) {
      try {
        const { peer, figures } = await this.#fleet.open();
        await this.#fleet.close(peer);
        return figures.setUp.firstFrame;
      } catch (error) {
        if (tries === NEW_SESSION_TRIES || !String(error).includes('SERVER_OVERLOADED')) {
          return `${reasonOf(error)} (${await occupancy(this.#server.url)})`;
        }
        await delay(NEW_SESSION_PAUSE_MS);
      }
    }
  }

  /**
   * A request for a video of no face: its body is parsed as any other, and then nothing is
   * rendered.
   */
  async #largeBody(): Promise<number | string> {
    const startMs = performance.now();
    try {
      const response = await fetch(`${this.#server.url}/static/audio`, {
        method: 'POST',
        headers: { 'x-service-api-key': this.#server.apiKey, 'content-type': 'application/json' },
        body: JSON.stringify({ faceId: 'nobody', audioBase64: LARGE_AUDIO }),
        signal: AbortSignal.timeout(BODY_LIMIT_MS),
      });
      const { code } = (await response.json()) as { code?: string };
      return code === 'INVALID_FACE_ID'
        ? performance.now() - startMs
        : `${response.status} ${code}`;
    } catch (error) {
      return reasonOf(error);
    }
  }

  /** @returns how each lost session ended */
  async #forgetLost(figures: ReadonlyMap<number, PeerFigures>): Promise<string[]> {
    const lost: string[] = [];
    for (const id of this.#honest) {
      const { state, ending } = figures.get(id)!;
      if (state === 'live') {
        continue;
      }
      lost.push(ending ?? 'unknown');
      this.#honest.delete(id);
      await this.#fleet.close(id);
    }
    return lost;
  }
}

/** A peer's figures since `mark`. */
function phaseOf(
  figures: PeerFigures,
  mark: Mark,
  endMs: number,
): { fps: number; delaysMs: number[]; speakMs: number[]; unheard: number } {
  const { frames, delaysMs, utterances } = figures;
  const first = Math.max(mark.frames, frames - MAX_KEPT_DELAYS);
  const spoken = utterances.slice(mark.utterances);
  const waitsMs = spoken.flatMap(({ sentMs, speakMs }) =>
    speakMs === undefined ? [] : [speakMs - sentMs],
  );
  // The last one may have been sent a moment ago.
  const unheard = spoken.slice(0, -1).filter(({ speakMs }) => speakMs === undefined).length;
  return {
    fps: (frames - mark.frames) / ((endMs - mark.atMs) / 1000),
    delaysMs: Array.from(
      { length: frames - first },
      (_, index) => delaysMs[(first + index) % MAX_KEPT_DELAYS]!,
    ),
    speakMs: waitsMs,
    unheard,
  };
}

/** The server may need a moment after an attack. @throws Error when it does not recover */
async function scrapePatiently(url: string): Promise<Scrape> {
  for (let tries = 1; ; tries++) {
    try {
      return await scrape(url);
    } catch (error) {
      if (tries === 5) {
        throw error;
      }
      await delay(500);
    }
  }
}

/** What the workers had when somebody was turned away. */
async function occupancy(url: string): Promise<string> {
  try {
    const now = await scrape(url);
    const sessions = ['connecting', 'idle', 'speaking']
      .map((state) => `${now.sum('mouthpiece_worker_sessions', { state })} ${state}`)
      .join(', ');
    const load = now.sum('mouthpiece_worker_load_ratio').toFixed(2);
    return `load ${load}, room ${now.sum('mouthpiece_room_sessions')}, ${sessions}`;
  } catch (error) {
    return reasonOf(error);
  }
}

interface Cpu {
  readonly all: number;
  readonly idle: number;
  readonly ours: number;
}

const elsewhereOf = (from: Cpu, to: Cpu): number =>
  1 - (to.ours - from.ours + to.idle - from.idle) / (to.all - from.all);

const TICKS_PER_SECOND = 100;

/** User and system time of a process, its threads included; 0 when it is gone. */
function cpuSecondsOf(pid: number): number {
  try {
    // After the command's name, which may hold anything: state is field 3, user and system time 14
    // and
    // 15.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
}

/** All time of all cores, and what of it was idle. */
function machineCpuSeconds(): { all: number; idle: number } {
  const [line = ''] = readFileSync('/proc/stat', 'latin1').split('\n', 1);
  const times = line.trim().split(/\s+/).slice(1, 9).map(Number);
  const all = times.reduce((sum, ticks) => sum + ticks, 0);
  return { all: all / TICKS_PER_SECOND, idle: (times[3]! + times[4]!) / TICKS_PER_SECOND };
}

/** Resident size of the whole process, its workers included; NaN when it is gone. */
export function residentMb({ pid }: Server): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * 4096) / MIB;
  } catch {
    return Number.NaN;
  }
}

/** Asks /healthz again and again, on a connection of its own each time, as a balancer does. */
class HealthProbe {
  #answers: { atMs: number; ms: number }[] = [];
  #failures = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  start(url: string): void {
    this.#timer = setInterval(() => {
      this.#ask(url);
    }, HEALTH_EVERY_MS);
  }
  stop(): void {
    clearInterval(this.#timer);
  }

  /** What was seen since the last call. */
  take(): { answers: Seen['health']; failures: Record<string, number> } {
    const seen = { answers: this.#answers, failures: Object.fromEntries(this.#failures) };
    this.#answers = [];
    this.#failures = new Map();
    return seen;
  }

  #ask(url: string): void {
    const startMs = performance.now();
    const answered = (): void => {
      this.#answers.push({ atMs: startMs, ms: performance.now() - startMs });
    };
    const failed = (why: string): void => {
      this.#failures.set(why, (this.#failures.get(why) ?? 0) + 1);
      // A probe that was not answered counts with the time that it waited.
      answered();
    };
    const request = http.get(
      `${url}/healthz`,
      { agent: false, timeout: HEALTH_LIMIT_MS },
      (response) => {
        response.resume();
        response.once('end', () => {
          if (response.statusCode === 200) {
            answered();
          } else {
            failed(String(response.statusCode));
          }
        });
      },
    );
    request.once('timeout', () => {
      request.destroy(new Error('no answer in 5 s'));
    });
    request.once('error', (error) => {
      failed(reasonOf(error));
    });
  }
}
