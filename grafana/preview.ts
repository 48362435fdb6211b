// `npm run dashboards:preview`: draws the dashboards' panels from a real Prometheus to one picture,
// without Grafana. With no --prometheus it starts a server and uses it for a while.
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { exerciseServer } from '../bench/exercise.ts';
import { readArguments } from '../scripts/command-line.ts';
import { startServer } from '../test/harness/server.ts';
import { DASHBOARDS } from './dashboards.ts';
import { drawDashboards } from './draw.ts';
import { type Prometheus, connectPrometheus, startPrometheus } from './live.ts';

/** A server of our own, used in every way for a while. */
async function ownPrometheus(
  seconds: number,
  cleanUps: (() => Promise<unknown> | void)[],
): Promise<Prometheus> {
  const server = await startServer({ env: { MAX_WORKER_LOAD: '1' } });
  cleanUps.push(() => server.stop());
  const prometheus = await startPrometheus(`127.0.0.1:${server.port}`);
  cleanUps.push(() => prometheus.stop());
  console.error(`using a server for ${seconds} s`);
  await exerciseServer(server, seconds, (cleanUp) => {
    cleanUps.push(cleanUp);
  });
  await delay(2500);
  return prometheus;
}

const USAGE = `npm run dashboards:preview -- [options]

Draws the dashboards as a picture, from a running Prometheus, or from a server that it starts and uses
for a while.

  --prometheus URL   whose data is drawn
  --minutes N        of it (60)
  --seconds N        for which a server of its own is used (75)
  --only NAME,...    the dashboards whose names end so
  --out FILE         the picture (bench/out/dashboards.png)`;

const { values: given } = readArguments(USAGE, {
  prometheus: { type: 'string' },
  minutes: { type: 'string', default: '60' },
  seconds: { type: 'string', default: '75' },
  only: { type: 'string', default: '' },
  out: { type: 'string', default: path.join(import.meta.dirname, '../bench/out/dashboards.png') },
});
const cleanUps: (() => Promise<unknown> | void)[] = [];
try {
  const prometheus =
    given.prometheus === undefined
      ? await ownPrometheus(Number(given.seconds), cleanUps)
      : connectPrometheus(given.prometheus);
  const to = Date.now() / 1000;
  const from =
    to - (given.prometheus === undefined ? Number(given.seconds) - 5 : Number(given.minutes) * 60);
  const shown = DASHBOARDS.filter(
    ({ uid }) => given.only === '' || given.only.split(',').some((name) => uid.endsWith(name)),
  );
  await drawDashboards(shown, prometheus, { from, to }, path.resolve(given.out));
  console.error(`wrote ${path.relative(process.cwd(), path.resolve(given.out))}`);
} finally {
  for (const cleanUp of cleanUps.toReversed()) {
    await cleanUp();
  }
}
