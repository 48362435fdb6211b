// Serves the JavaScript client (clients/js) to pages: its sources, from which Node strips the types.
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { empty, text } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';

const JAVASCRIPT = 'text/javascript; charset=utf-8';

/** Pages of any origin may load the client: it has no secrets, and asks for a token. */
const HEADERS = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'cache-control': 'no-cache',
};

/**
 * One route for each source file below `/client/`, under its name as JavaScript.
 * @throws Error when the folder cannot be read, or a file cannot be parsed
 */
export async function clientRoutes(directory: string): Promise<Route[]> {
  const names = (await readdir(directory)).filter((name) => /\.(?:ts|js)$/.test(name));
  return await Promise.all(
    names.map(async (name) => {
      const source = await readFile(path.join(directory, name), 'utf8');
      const script = name.endsWith('.ts') ? asJavaScript(source) : source;
      const etag = `"${createHash('sha256').update(script).digest('base64url')}"`;
      return route({
        method: 'GET',
        path: `/client/${name.replace(/\.ts$/, '.js')}`,
        tag: 'Page',
        auth: 'none',
        summary: 'A file of the JavaScript client',
        metricLabel: 'client',
        responses: { 200: { description: 'The file.' } },
        handler: (request) =>
          request.header('if-none-match') === etag
            ? empty(304, { ...HEADERS, etag })
            : { ...text(JAVASCRIPT, script), headers: { ...HEADERS, etag } },
      });
    }),
  );
}

/** TypeScript without its types. Imports name the files as they are served. */
const asJavaScript = (source: string): string =>
  stripTypeScriptTypes(source)
    .replaceAll(/from '\.\/([\w-]+)\.ts'/g, "from './$1.js'")
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
