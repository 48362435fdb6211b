// The demo page's list of faces, and what becomes of pictures and names that cannot be used.
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { ElementHandle, Page } from 'puppeteer-core';
import sharp, { type Sharp } from 'sharp';
import { afterAll, beforeAll, test } from 'vitest';
import { startBrowser, type TestBrowser } from '../harness/browser.ts';
import { DESK, openDemo, textBecomes } from '../harness/demo-page.ts';
import { ROOT, startServer, type TestServer } from '../harness/server.ts';
import { OUT } from '../harness/speech.ts';
import { until } from '../harness/until.ts';

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

const DIALOG = '#portrait-dialog';

/** Picks a file for a new face, and sends what the dialog makes of it. */
async function send(page: Page, file: string): Promise<void> {
  await ((await page.$('#portrait')) as ElementHandle<any>).uploadFile(file);
  await page.waitForFunction(
    `document.querySelector('${DIALOG} [name=name]').value === '${path.parse(file).name}'`,
  );
  await page.click(`${DIALOG} .create`);
}

async function written(name: string, picture: Sharp): Promise<string> {
  const file = path.join(OUT, name);
  await mkdir(OUT, { recursive: true });
  await picture.toFile(file);
  return file;
}

test('a photo is sent whole as it is: a face at its side is found', async () => {
  const ava = await sharp(path.join(ROOT, 'models/faces/ava.webp')).resize(512, 512).toBuffer();
  const wide = await written(
    'face-at-the-side.jpg',
    sharp({ create: { width: 1500, height: 512, channels: 3, background: '#9db' } }).composite([
      { input: ava, left: 0, top: 0 },
    ]),
  );
  const page = await openDemo(browser, server);
  await page.evaluate(`
    const real = globalThis.fetch;
    globalThis.fetch = async (address, options) => {
      const image = options?.body?.get?.('image');
      if (image) {
        globalThis.sent = image.size;
      }
      return await real(address, options);
    };`);
  await send(page, wide);
  await textBecomes(page, '#face-status', /Ready after/, 40_000);
  assert.equal(await page.evaluate('sent'), (await readFile(wide)).length);
  await page.close();
});

test('an empty name is refused, and a portrait that fails leaves no face', async () => {
  const page = await openDemo(browser, server);
  const name = await page.$eval('#own-name', (input: any) => {
    const { value } = input;
    input.value = ' ';
    return value as string;
  });
  await page.click('#rename-face');
  await textBecomes(page, '#face-status', /Enter a name/);
  assert.equal(await page.$eval('#own-name', (input: any) => input.value), name);
  const wall = sharp({ create: { width: 400, height: 400, channels: 3, background: '#9db' } });
  await send(page, await written('wall.png', wall));
  await textBecomes(page, `${DIALOG} .status`, /No face was found/);
  await until(async () => {
    const headers = { 'x-service-api-key': server.apiKey };
    const faces = await (await fetch(`${server.url}/faces`, { headers })).json();
    return !(faces as { status: string }[]).some(({ status }) => status === 'failed');
  }, 10_000);
  await page.close();
});

test('a photo that the server does not take as it is becomes a JPEG before it is sent', async () => {
  const page = await openDemo(browser, server);
  await page.evaluate(`
    const real = globalThis.fetch;
    globalThis.fetch = async (address, options) => {
      const image = options?.body?.get?.('image');
      if (!image) {
        return await real(address, options);
      }
      const { width, height } = await createImageBitmap(image);
      globalThis.sent = [image.type, width, height];
      return Response.json({ error: 'Seen.', code: 'SEEN' }, { status: 400 });
    };`);
  const plain = (width: number, height: number): Sharp =>
    sharp({ create: { width, height, channels: 3, background: '#9db' } });
  for (const [name, picture, size] of [
    ['moving.gif', plain(600, 400), [600, 400]],
    ['modern.avif', plain(500, 400), [500, 400]],
    ['large.jpg', plain(7400, 7100), [3072, 2947]],
  ] as const) {
    await send(page, await written(name, picture));
    await textBecomes(page, `${DIALOG} .status`, /Seen/);
    assert.deepEqual(await page.evaluate('sent'), ['image/jpeg', ...size], name);
  }
  await page.close();
});
