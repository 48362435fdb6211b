// The list of dashboards, and the JSON files that Grafana reads. Each has a file in `source`.
import { toGrafana, type Dashboard } from './panels.ts';
import { conversations } from './source/conversations.ts';
import { fleet } from './source/fleet.ts';
import { live } from './source/live.ts';
import { overview } from './source/overview.ts';
import { redis } from './source/redis.ts';
import { rest } from './source/rest.ts';
import { workers } from './source/workers.ts';

export const DASHBOARDS: readonly Dashboard[] = [
  overview,
  fleet,
  live,
  workers,
  conversations,
  rest,
  redis,
];

/** What lies in grafana/dashboards/. */
export const dashboardFiles = (): { path: URL; text: string }[] =>
  DASHBOARDS.map((dashboard) => ({
    path: new URL(`./dashboards/${dashboard.uid}.json`, import.meta.url),
    text: `${JSON.stringify(toGrafana(dashboard, DASHBOARDS), null, 1)}\n`,
  }));
