// A real Prometheus on the rules of this folder, scraping a server that is being used: for the test
// of the queries, and for pictures of the dashboards.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [seconds: number, value: number])[];
}

export interface Prometheus {
  readonly url: string;
  /** @throws Error with Prometheus' own words for a bad query */
  query(expr: string): Promise<Sample[]>;
  queryRange(
    expr: string,
    fromSeconds: number,
    toSeconds: number,
    stepSeconds: number,
  ): Promise<Sample[]>;
  rules(): Promise<
    readonly {
      readonly name: string;
      readonly health: string;
      readonly lastError?: string;
      readonly query: string;
      readonly type: string;
    }[]
  >;
  /** Whether the last scrape of the target went well. */
  isUp(): Promise<boolean>;
  stop(): Promise<void>;
}

export const SCRAPE_SECONDS = 1;
/** Stands in for Grafana's $__rate_interval, which is at least four scrapes. */
export const RATE_INTERVAL = '8s';

/** A panel's expression as Grafana would send it, for all instances. */
export const resolved = (expr: string): string =>
  expr.replaceAll('$__rate_interval', RATE_INTERVAL).replaceAll('"$instance"', '".*"');

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** A Prometheus that somebody else runs. */
export function connectPrometheus(url: string): Prometheus {
  const get = async <T>(route: string, parameters: Record<string, string> = {}): Promise<T> => {
    const response = await fetch(`${url}${route}?${new URLSearchParams(parameters)}`, {
      signal: AbortSignal.timeout(20_000),
    });
    const body = (await response.json()) as { status: string; data: T; error?: string };
    if (body.status !== 'success') {
      throw new Error(body.error ?? `Prometheus answered ${response.status}`);
    }
    return body.data;
  };
  interface Raw {
    readonly resultType: string;
    readonly result:
      | readonly {
          readonly metric: Record<string, string>;
          readonly value?: [number, string];
          readonly values?: [number, string][];
        }[]
      | [number, string];
  }
  const toSamples = ({ resultType, result }: Raw): Sample[] => {
    if (resultType === 'scalar') {
      return [
        {
          metric: {},
          values: [[(result as [number, string])[0], Number((result as [number, string])[1])]],
        },
      ];
    }
    return (result as Exclude<Raw['result'], [number, string]>).map(
      ({ metric, value, values }) => ({
        metric,
        values: (values ?? [value!]).map(([at, text]) => [at, Number(text)]),
      }),
    );
  };
  return {
    url,
    query: async (expr) => toSamples(await get('/api/v1/query', { query: expr })),
    queryRange: async (expr, from, to, step) =>
      toSamples(
        await get('/api/v1/query_range', {
          query: expr,
          start: String(from),
          end: String(to),
          step: String(step),
        }),
      ),
    rules: async () =>
      (
        await get<{ groups: { rules: Awaited<ReturnType<Prometheus['rules']>> }[] }>(
          '/api/v1/rules',
        )
      ).groups.flatMap(({ rules }) => rules),
    isUp: async () =>
      (await get<{ activeTargets: { health: string }[] }>('/api/v1/targets')).activeTargets.some(
        ({ health }) => health === 'up',
      ),
    stop: () => Promise.resolve(),
  };
}

/**
 * @param targets host:port of the /metrics of a server, or of several, by the names that they shall
 * have as instances
 * @throws Error when Prometheus is absent or does not come up.
 */
export async function startPrometheus(
  targets: string | Readonly<Record<string, string>>,
): Promise<Prometheus> {
  const scraped =
    typeof targets === 'string'
      ? [{ targets: [targets] }]
      : Object.entries(targets).map(([instance, target]) => ({
          targets: [target],
          labels: { instance },
        }));
  const folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-prometheus-'));
  await cp(path.join(import.meta.dirname, 'prometheus/rules'), path.join(folder, 'rules'), {
    recursive: true,
  });
  await writeFile(
    path.join(folder, 'prometheus.yml'),
    JSON.stringify({
      global: { scrape_interval: `${SCRAPE_SECONDS}s`, evaluation_interval: '2s' },
      rule_files: ['rules/*.yml'],
      scrape_configs: [{ job_name: 'mouthpiece', static_configs: scraped }],
    }),
  );
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      `--web.user-assets=${import.meta.dirname}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, GOMAXPROCS: '1' } },
  );
  let words = '';
  child.stderr.on('data', (chunk: Buffer) => {
    words = (words + chunk.toString()).slice(-4000);
  });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      resolve();
    });
    child.once('error', (error) => {
      words += String(error);
      resolve();
    });
  });

  const prometheus: Prometheus = {
    ...connectPrometheus(url),
    async stop() {
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
  const deadline = Date.now() + 30_000;
  for (;;) {
    if (child.exitCode !== null || child.pid === undefined) {
      await prometheus.stop();
      throw new Error(`prometheus (Debian package of that name) did not start: ${words}`);
    }
    if (
      await fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      )
    ) {
      return prometheus;
    }
    if (Date.now() > deadline) {
      await prometheus.stop();
      throw new Error(`prometheus was not ready in time: ${words}`);
    }
    await delay(100);
  }
}
