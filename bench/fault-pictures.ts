// A real Prometheus that scrapes servers while faults are made, and a picture for each fault: the
// panels of the dashboards that tell what it is.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DASHBOARDS } from '../grafana/dashboards.ts';
import { drawDashboards } from '../grafana/draw.ts';
import { type Prometheus, startPrometheus } from '../grafana/live.ts';
import type { Dashboard } from '../grafana/panels.ts';
import { ROOT } from './run.ts';
import { type Context, type Server, text } from './scenario.ts';

/** Shown before the fault, and for the rates after it. */
const BEFORE_MS = 12_000;
const AFTER_MS = 9000;

/** Which panels tell of a fault: dashboard → titles. */
const PANELS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  full: { fleet: ['Room left by server', 'Sessions', 'Relayed sessions'] },
  drained: { fleet: ['Not ready', 'Room left by server', 'Sessions'] },
  killed: { fleet: ['Servers lost', 'Room left by server', 'Sessions'] },
  'redis-failover': {
    redis: ['Errors', 'Commands'],
    overview: ['Sessions by state', 'Refused'],
  },
  'redis-away': {
    redis: ['Connected', 'Errors', 'Commands'],
    overview: ['Sessions by state', 'Refused'],
  },
  's3-away': {
    redis: ['Works', 'Storage errors', 'Storage operations'],
    overview: ['Sessions by state'],
  },
  'busy-neighbour': {
    workers: ['Waiting for the core', 'Other work on the core', 'Frame lateness, p99'],
  },
};

/** @returns the dashboards with the named panels only */
function panelsOf(name: string): Dashboard[] {
  return Object.entries(PANELS[name]!).map(([of, titles]) => {
    const dashboard = DASHBOARDS.find(({ uid }) => uid === `mouthpiece-${of}`)!;
    const all = dashboard.rows.flatMap(({ panels }) => panels);
    const panels = titles.flatMap((title) => all.filter((one) => one.title === title));
    const used = dashboard.rows.filter((row) => row.panels.some((one) => panels.includes(one)));
    return { ...dashboard, rows: [{ title: used.map(({ title }) => title).join(', '), panels }] };
  });
}

/** Draws nothing where there is no Prometheus or the option `pictures` is empty. */
export class FaultPictures {
  readonly #context: Context;
  readonly #prometheus: Prometheus | undefined;

  private constructor(context: Context, prometheus: Prometheus | undefined) {
    this.#context = context;
    this.#prometheus = prometheus;
  }

  static async start(context: Context, servers: readonly Server[]): Promise<FaultPictures> {
    if (text(context.options, 'pictures') === '') {
      return new FaultPictures(context, undefined);
    }
    if (spawnSync('prometheus', ['--version'], { stdio: 'ignore' }).status !== 0) {
      context.progress('no pictures: Prometheus is needed (Debian: apt-get install prometheus)');
      return new FaultPictures(context, undefined);
    }
    const targets = servers.map(({ url }, i) => [`server ${i + 1}`, new URL(url).host]);
    const prometheus = await startPrometheus(Object.fromEntries(targets));
    context.defer(() => prometheus.stop());
    await delay(BEFORE_MS);
    return new FaultPictures(context, prometheus);
  }

  /**
   * Makes a fault, and draws what the dashboards show of it.
   * @param name of the picture
   * @param make returns when one looks at them, as Date.now(); default: some seconds later
   */
  readonly fault = async (name: string, make: () => Promise<number | void>): Promise<void> => {
    const from = (Date.now() - BEFORE_MS) / 1000;
    const lookedAtMs = await make();
    if (this.#prometheus === undefined) {
      return;
    }
    if (lookedAtMs === undefined) {
      await delay(AFTER_MS);
    }
    const file = path.resolve(ROOT, text(this.#context.options, 'pictures'), `${name}.webp`);
    const to = (lookedAtMs ?? Date.now()) / 1000;
    await drawDashboards(panelsOf(name), this.#prometheus, { from, to }, file);
    this.#context.progress(`wrote ${path.relative(ROOT, file)}`);
  };
}
