// Writes grafana/dashboards/*.json from dashboards.ts: `npm run node -- grafana/build.ts` (a test
// fails while they differ).
import { writeFileSync } from 'node:fs';
import { dashboardFiles } from './dashboards.ts';

for (const { path, text } of dashboardFiles()) {
  writeFileSync(path, text);
}
