// The API reference at /docs: Swagger UI, served from its npm package, on the document at
// /openapi.json.
import { createRequire } from 'node:module';
import path from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import { text } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { fileRoute } from './file-route.ts';
import { PROTOCOL_PAGE } from './protocol-page.ts';

const require = createRequire(import.meta.url);

/**
 * Where Swagger UI is installed; undefined when it is not: a server without it serves all the rest.
 */
const VIEWER = findViewer();

function findViewer(): { readonly version: string; readonly directory: string } | undefined {
  try {
    const file = require.resolve('swagger-ui-dist/package.json');
    const { version } = require(file) as { version: string };
    return { version, directory: path.dirname(file) };
  } catch {
    return undefined;
  }
}

/**
 * Everything comes from this server, except icons in the style sheet of Swagger UI, which are data:
 * URLs. Swagger UI sets styles through the DOM, so it needs no 'unsafe-inline'.
 */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
};

/** Files of the npm package. Their addresses name its version, so browsers keep them for a year. */
const VIEWER_FILES = ['swagger-ui-bundle.js', 'swagger-ui.css', 'favicon-32x32.png'] as const;
const VIEWER_CACHE_CONTROL = 'public, max-age=31536000, immutable';
/** Files of the pages themselves, in src/front/api/docs. Browsers ask each time whether they changed. */
const PAGE_FILES = ['start.js', 'style.css', 'protocol.css'] as const;

const viewerFile = (name: (typeof VIEWER_FILES)[number]): string =>
  `/docs/${VIEWER?.version ?? 'none'}/${name}`;

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Mouthpiece API</title>
    <link rel="icon" type="image/png" href="${viewerFile('favicon-32x32.png')}">
    <link rel="stylesheet" href="${viewerFile('swagger-ui.css')}">
    <link rel="stylesheet" href="/docs/style.css">
    <script defer src="${viewerFile('swagger-ui-bundle.js')}"></script>
    <script defer src="/docs/start.js"></script>
  </head>
  <body>
    <div id="swagger-ui"></div>
    <noscript>
      This page needs JavaScript. The document itself is at
      <a href="/openapi.json">/openapi.json</a>.
    </noscript>
  </body>
</html>
`;

/** The page at `/docs`. */
export const docsRoute = (): Route =>
  route({
    method: 'GET',
    path: '/docs',
    tag: 'Operation',
    auth: 'none',
    summary: 'This document as a page, from which requests can be sent',
    responses: { 200: { description: 'HTML.', contentType: 'text/html' } },
    refusals: ['NOT_FOUND'],
    handler: () => {
      if (VIEWER === undefined) {
        throw new ServiceError(
          'NOT_FOUND',
          'The npm package swagger-ui-dist is not installed on this server. Run npm ci, or read ' +
            '/openapi.json.',
        );
      }
      return {
        ...text('text/html; charset=utf-8', PAGE),
        headers: { ...HEADERS, 'cache-control': 'no-cache' },
      };
    },
  });

/** The chapter on the WebSockets at `/docs/protocol`. */
export const protocolRoute = (): Route =>
  route({
    method: 'GET',
    path: '/docs/protocol',
    tag: 'Operation',
    auth: 'none',
    summary: 'The WebSocket protocol: sequences, messages, reasons and errors',
    responses: { 200: { description: 'HTML.', contentType: 'text/html' } },
    handler: () => ({
      ...text('text/html; charset=utf-8', PROTOCOL_PAGE),
      headers: { ...HEADERS, 'cache-control': 'no-cache' },
    }),
  });

/** The scripts, styles and icons of the pages. They are not part of the API document. */
export const docsFileRoutes = (viewer = VIEWER): Route[] => [
  ...(viewer === undefined
    ? []
    : VIEWER_FILES.map((name) =>
        fileRoute({
          path: viewerFile(name),
          location: path.join(viewer.directory, name),
          cacheControl: VIEWER_CACHE_CONTROL,
          headers: HEADERS,
          metricLabel: 'docs',
        }),
      )),
  ...PAGE_FILES.map((name) =>
    fileRoute({
      path: `/docs/${name}`,
      location: path.join(import.meta.dirname, 'docs', name),
      cacheControl: 'no-cache',
      headers: HEADERS,
      metricLabel: 'docs',
    }),
  ),
];
