// Serves the demo page's files from its folder, and nothing else that lies there.
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import { file } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { openFile } from '../store/blobs.ts';

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.mp3': 'audio/mpeg',
};

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'permissions-policy': 'microphone=(self), camera=()',
  'cross-origin-resource-policy': 'same-origin',
};

/** One route per file, `index.html` at `/`. Files of unknown kinds are left out. */
export async function pageRoutes(directory: string): Promise<Route[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
    () => [],
  );
  return entries
    .filter((entry) => entry.isFile() && path.extname(entry.name) in CONTENT_TYPES)
    .map((entry) => {
      const location = path.join(entry.parentPath, entry.name);
      const name = path.relative(directory, location).split(path.sep).join('/');
      return route({
        method: 'GET',
        path: name === 'index.html' ? '/' : `/${name}`,
        tag: 'Page',
        auth: 'none',
        summary: 'The demo page',
        metricLabel: 'page',
        responses: { 200: { description: 'A file of the page.' } },
        async handler() {
          const source = await openFile(location);
          if (!source) {
            throw new ServiceError('NOT_FOUND');
          }
          return file(source, CONTENT_TYPES[path.extname(name)] as string, 'no-cache', HEADERS);
        },
      });
    });
}
