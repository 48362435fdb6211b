// The demo page's list of faces, and what becomes of pictures and names that cannot be used.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { startBrowser, type TestBrowser } from '../harness/browser.ts';
import { DESK } from '../harness/demo-page.ts';
import { startServer, type TestServer } from '../harness/server.ts';

let server: TestServer;
let browser: TestBrowser;

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

/**
 * In the page: 300 faces, with the picture of one. Each picture is refused with 429 once, and
 * `previews` tells how often one was asked for, and how many at once.
 */
const MANY_FACES = `
  globalThis.previews = { asked: {}, running: 0, most: 0 };
  const real = globalThis.fetch;
  globalThis.fetch = async (address, options) => {
    const { pathname } = new URL(address, location.href);
    if (pathname === '/faces') {
      const faces = await (await real(address, options)).json();
      const many = Array.from({ length: 300 }, (_, n) => ({
        ...faces[0],
        id: 'face-' + n,
        thumbnail_url: '/faces/' + n + '/preview?of=' + faces[0].thumbnail_url,
      }));
      return Response.json(many);
    }
    const which = /^\\/faces\\/(\\d+)\\/preview/.exec(pathname)?.[1];
    if (which === undefined) {
      return await real(address, options);
    }
    const { asked } = previews;
    asked[which] = (asked[which] ?? 0) + 1;
    previews.most = Math.max(previews.most, ++previews.running);
    await new Promise((resolve) => setTimeout(resolve, 20));
    previews.running--;
    return asked[which] === 1
      ? new Response('', { status: 429, headers: { 'retry-after': '1' } })
      : await real(new URL(address, location.href).searchParams.get('of'), options);
  };`;

test('of many faces the pictures in sight are fetched, a few at once, and again after 429', async () => {
  const page = await browser.newPage(DESK);
  await page.evaluateOnNewDocument(MANY_FACES);
  await page.goto(`${server.url}/#key=${server.apiKey}`);
  await page.waitForSelector('#connect:not([disabled])');
  await page.waitForSelector('.face[data-id="face-0"] img.thumb');
  await page.waitForSelector('.face[data-id="face-8"] img.thumb');
  await page.waitForSelector('#poster[src^=blob]');
  const before = (await page.evaluate('previews')) as {
    asked: Record<string, number>;
    most: number;
  };
  assert.equal(before.asked[0], 2, 'again after 429');
  assert.equal(before.most, 4);
  const asked = Object.keys(before.asked).length;
  assert.ok(asked < 100, `${asked} of 300 pictures`);
  assert.equal(before.asked[299], undefined);
  await page.evaluate(`document.querySelector('.face.add').scrollIntoView()`);
  await page.waitForSelector('.face[data-id="face-299"] img.thumb');
  await page.close();
});
