// A route that serves one file which is installed with the server.
import path from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import { file } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { openFile } from '../store/blobs.ts';

/** Content types by file extension. Files of other kinds are not served. */
export const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.mp3': 'audio/mpeg',
};

/** A file and how it is served. */
export interface ServedFile {
  /** The path of its route. */
  readonly path: string;
  /** Where it lies on disk. */
  readonly location: string;
  readonly cacheControl: string;
  readonly headers: Record<string, string>;
  /** Label of all files of this kind in metrics. */
  readonly metricLabel: string;
}

/** @throws Error when the extension of the file is not in CONTENT_TYPES */
export function fileRoute(served: ServedFile): Route {
  const contentType = CONTENT_TYPES[path.extname(served.location)];
  if (contentType === undefined) {
    throw new Error(`${served.location} has no content type. Add its extension to CONTENT_TYPES.`);
  }
  return route({
    method: 'GET',
    path: served.path,
    tag: 'Page',
    auth: 'none',
    summary: 'A file of a web page',
    metricLabel: served.metricLabel,
    responses: { 200: { description: 'The file.' } },
    async handler() {
      const source = await openFile(served.location);
      if (!source) {
        throw new ServiceError('NOT_FOUND');
      }
      return file(source, contentType, served.cacheControl, served.headers);
    },
  });
}
