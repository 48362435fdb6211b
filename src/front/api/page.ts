// Serves the files of the demo page from its folder.
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Route } from '../http/route.ts';
import { CONTENT_TYPES, fileRoute } from './file-route.ts';

/** The page loads everything from this server and asks for the microphone only. */
const headersFor = (frameOrigins: readonly string[]): Record<string, string> => ({
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; " +
    "media-src 'self' blob:; connect-src 'self'; worker-src 'self'; base-uri 'none'; " +
    `form-action 'none'; frame-ancestors ${frameOrigins.join(' ') || "'none'"}`,
  'referrer-policy': 'no-referrer',
  'permissions-policy': 'microphone=(self), camera=()',
  'cross-origin-resource-policy': 'same-origin',
});

/**
 * One route for each file below `directory`; `index.html` is at the path of its folder. Files whose
 * extension has no content type are left out.
 * @param frameOrigins of pages that may show it in a frame
 * @throws Error when the directory cannot be read
 */
export async function pageRoutes(
  directory: string,
  frameOrigins: readonly string[] = [],
): Promise<Route[]> {
  const headers = headersFor(frameOrigins);
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && path.extname(entry.name) in CONTENT_TYPES)
    .map((entry) => {
      const location = path.join(entry.parentPath, entry.name);
      const name = path.relative(directory, location).split(path.sep).join('/');
      return fileRoute({
        path: `/${name.replace(/\/?index\.html$/, '')}`,
        location,
        cacheControl: 'no-cache',
        headers,
        metricLabel: 'page',
      });
    });
}
