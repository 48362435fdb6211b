// The demo page as a person uses it: its real buttons, clicked in a real browser, on a desk and on
// a phone.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import type { Page } from 'puppeteer-core';
import sharp from 'sharp';
import { startBrowser, type TestBrowser } from '../harness/browser.ts';
import {
  checkStatsPanel,
  DESK,
  inkOf,
  inState,
  openDemo,
  PHONE,
  screenshot,
  textBecomes,
  textOf,
} from '../harness/demo-page.ts';
import { patience } from '../harness/machine.ts';
import { coveredStops, focusOf, misfits, problemsAtEverySize } from '../harness/page-checks.ts';
import { ROOT, startServer, type TestServer } from '../harness/server.ts';
import { OUT } from '../harness/speech.ts';
import { until } from '../harness/until.ts';
import { sleep } from '../../src/base/time.ts';

/** A page of somebody else that shows the demo page in a frame. */
const framing = createServer((_request, response) => {
  response.setHeader('content-type', 'text/html').end(`<iframe src="${server.url}/"></iframe>`);
});
let server: TestServer;
let browser: TestBrowser;
let lost: Page;

beforeAll(async () => {
  await new Promise<void>((resolve) => {
    framing.listen(0, '127.0.0.1', resolve);
  });
  const env = {
    MAX_SESSIONS_PER_WORKER: '3', // so that a test can fill it
    FRAME_ORIGINS: `http://127.0.0.1:${portOf(framing)}`,
  };
  [server, browser] = await Promise.all([startServer({ env }), startBrowser()]);
  lost = await connectWithoutAWay();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  framing.close();
});

const portOf = (listener: Server): number => (listener.address() as AddressInfo).port;

test('it may be shown in a frame by the origins of FRAME_ORIGINS only', async () => {
  const page = await browser.newPage(DESK);
  await page.goto(`http://127.0.0.1:${portOf(framing)}/`);
  const frame = await (await page.waitForSelector('iframe'))!.contentFrame();
  await frame.waitForSelector('#connect');
  await page.goto(`http://localhost:${portOf(framing)}/`);
  await until(() => browser.problems.some((text) => /frame-ancestors/.test(text)), 10_000);
  await page.close();
});

/**
 * A page that may use TURN servers only, and knows of none. It takes 15 s to give up, so it is
 * begun before all other tests.
 */
async function connectWithoutAWay(): Promise<Page> {
  const page = await browser.newPage(DESK);
  await page.evaluateOnNewDocument(() => {
    const scope = globalThis as any;
    const Real = scope.RTCPeerConnection;
    scope.RTCPeerConnection = class extends Real {
      constructor(options: object) {
        super({ ...options, iceServers: [], iceTransportPolicy: 'relay' });
      }
    };
  });
  await page.goto(`${server.url}/#key=${server.apiKey}`);
  await page.waitForSelector('#connect:not([disabled])');
  await page.click('#connect');
  await inState(page, 'connecting');
  return page;
}

test('the page and its modules pass the type checker', () => {
  execFileSync(
    process.execPath,
    [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', path.join(ROOT, 'src/page')],
    { encoding: 'utf8' },
  );
});

test('asks for the key, refuses a wrong one in words, takes the right one and hides it', async () => {
  const page = await browser.newPage(DESK);
  await page.goto(`${server.url}/`);
  await page.waitForSelector('#key-form:not([hidden])');
  assert.deepEqual(await problemsAtEverySize(page, 'key'), []);
  await page.type('#key', 'not-the-key-of-this-server');
  await page.keyboard.press('Enter');
  await textBecomes(page, '#error-text', /does not know this API key/);
  assert.doesNotMatch(
    await textOf(page, '#error-text'),
    /Change key/,
    'names a control that is not shown',
  );
  await page.waitForSelector('#key[aria-invalid=true]');
  assert.equal(await focusOf(page), 'key');
  assert.deepEqual(await problemsAtEverySize(page, 'wrong-key'), []);
  await page.type('#key', server.apiKey); // the wrong one is selected: typing replaces it
  await page.keyboard.press('Enter');
  await page.waitForSelector('#connect:not([disabled])');
  await page.waitForSelector('#key-form', { hidden: true });
  assert.equal(await focusOf(page), 'connect');
  await page.close();

  const other = await openDemo(browser, server);
  assert.equal(other.url(), `${server.url}/`, 'the key is still in the address');
  await other.close();
});

test('by keyboard alone: stops come in the order of reading, and the focus is never lost', async () => {
  const page = await openDemo(browser, server);
  const press = async (key: 'Tab' | 'Enter', times = 1): Promise<void> => {
    for (let n = 0; n < times; n++) {
      await page.keyboard.press(key);
    }
  };
  const stops: string[] = [];
  for (;;) {
    await press('Tab');
    const stop = await focusOf(page);
    if (stop === 'BODY' || stops.length > 40) {
      break;
    }
    stops.push(stop);
  }
  assert.deepEqual(stops, [
    'brand',
    'key-change',
    'theme',
    'connect',
    'face',
    'face',
    'change-picture',
    'INPUT',
    'sentence',
    'sentence',
    'sentence',
    'microphone',
    'pick',
    'replace',
    'talk-start',
    ...Array.from({ length: 5 }, () => 'SUMMARY'),
    'A',
  ]);

  await page.setViewport({ width: 320, height: 640 });
  assert.deepEqual(
    await coveredStops(page, stops.length),
    [],
    'something lies on what has the focus',
  );
  await page.setViewport(DESK);
  await page.focus('#key-change');
  await press('Enter');
  assert.equal(await focusOf(page), 'key');
  await press('Tab', 2);
  await press('Enter');
  assert.equal(await focusOf(page), 'key-change', 'after Cancel');
  await page.focus('#connect');
  await press('Enter');
  assert.equal(
    await focusOf(page),
    'player',
    'Connect is gone: the picture that it was on has the focus',
  );
  await inState(page, 'idle');
  assert.equal(await focusOf(page), 'player');
  await press('Tab', 4);
  assert.equal(await focusOf(page), 'disconnect');
  await press('Enter');
  await inState(page, 'none');
  assert.equal(await focusOf(page), 'connect', 'after Disconnect');

  await page.evaluate('document.querySelector("#unmute").hidden = false');
  await press('Enter');
  await inState(page, 'idle');
  await page.focus('#unmute');
  await press('Enter');
  assert.equal(await focusOf(page), 'sound', 'after Turn the sound on');
  await page.focus('#finish');
  await press('Enter');
  await inState(page, 'none');
  assert.equal(await focusOf(page), 'connect', 'after the end of the session');
  await page.close();
});

test('at every size, in light and dark: all fits, and axe-core finds nothing wrong', async () => {
  const page = await openDemo(browser, server);
  const problems = await problemsAtEverySize(page, 'before');
  await page.click('#connect');
  await inState(page, 'idle');
  problems.push(...(await problemsAtEverySize(page, 'connected')));
  for (let n = 0; n < 5; n++) {
    await page.click('.sentence');
  }
  await inState(page, 'speaking');
  await textBecomes(page, '#latency-badge', /\d+ ms to lips/);
  await page.$$eval('details', (all) => {
    for (const one of all) {
      (one as any).open = true;
    }
  });
  problems.push(...(await problemsAtEverySize(page, 'speaking')));
  assert.equal(await textOf(page, '#state'), 'Speaking', 'the checks took longer than the speech');
  assert.equal(
    await page.evaluate('document.getAnimations().length'),
    0,
    'moves despite reduced motion',
  );
  await page.$eval('#latency-badge', (badge) => {
    badge.textContent = '12345 ms to lips';
  });
  await page.setViewport({ width: 320, height: 568 });
  problems.push(...(await misfits(page)));
  await page.click('#disconnect');
  await inState(page, 'none');
  assert.deepEqual(problems, []);
  await page.close();
});

test('on a desk: connect, speak, watch the numbers, interrupt, replace, finish', async () => {
  const page = await openDemo(browser, server);
  assert.ok((await page.$$('.face[role=radio]')).length >= 1, 'no face to choose');
  await page.waitForSelector('.face[role=radio] img.thumb');
  await page.focus('#connect');
  await page.keyboard.press('Enter');
  await inState(page, 'idle');
  await sleep(2000); // idle long enough for the page to know what stillness looks like

  await page.click('.sentence');
  await inState(page, 'speaking');
  await textBecomes(page, '#latency-badge', /\d+ ms to lips/);
  const lipsMs = Number.parseInt(await textOf(page, '#m-lips'), 10);
  assert.ok(
    lipsMs >= 0 && lipsMs < 400 * patience(),
    `the server reports ${lipsMs} ms from speech to lips`,
  );
  await checkStatsPanel(page);
  await sleep(1300);
  await screenshot(
    page,
    process.env['UPDATE_SCREENSHOT'] === '1'
      ? path.join(ROOT, 'docs/demo.png')
      : path.join(OUT, 'page-desk.png'),
  ); // the README's picture
  for (const [id, pattern] of [
    ['m-fps', /^[23]\d \/s/],
    ['m-rtt', /\d ms/],
    ['m-rate', /\d+ kbit\/s/],
    ['m-skew', /-?\d+ ms/],
    ['m-picture', /512×512 (VP8|H\.264)/],
    ['m-start', /\d+ ms/],
  ] as const) {
    await textBecomes(page, `#${id}`, pattern);
  }
  assert.ok((await inkOf(page, '#spark')) > 500, 'nothing was drawn of sound and lips');

  await page.keyboard.press('Escape');
  await inState(page, 'idle');
  await page.click('.sentence');
  await inState(page, 'speaking');
  await page.click('#replace');
  await page.click('.sentence:nth-of-type(2)');
  await sleep(1000);
  assert.equal(await textOf(page, '#state'), 'Speaking');
  await page.click('#interrupt');
  await inState(page, 'idle');
  await page.click('.sentence:nth-of-type(3)');
  await inState(page, 'speaking');
  await page.click('#finish');
  await inState(page, 'none');
  assert.equal(await textOf(page, '#state'), 'Finished');
  assert.equal(await focusOf(page), 'connect', 'the session ended while Finish had the focus');
  assert.ok(await page.$('#error[hidden]'), await textOf(page, '#error-text'));
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  await sleep(300);
  await screenshot(page, path.join(OUT, 'page-dark.png'));
  await page.close();
});

test('refused session statistics say why, and the rest of the page keeps working', async () => {
  const page = await openDemo(browser, server);
  await page.setRequestInterception(true);
  page.on(
    'request',
    (request) =>
      void (request.url().endsWith('/stats')
        ? request.respond({
            status: 404,
            contentType: 'application/json',
            body:
              '{"error":"No live session of yours has this id on this ' +
              'server.","code":"NOT_FOUND"}',
          })
        : request.continue()),
  );
  await page.click('#connect');
  await inState(page, 'idle');
  await textBecomes(page, '#stats-message', /owner of the session only/);
  assert.ok(await page.$('#stats-body[hidden]'));
  await textBecomes(page, '#m-fps', /^[23]\d \/s/);
  await page.click('#disconnect');
  await inState(page, 'none');
  await page.close();
});

test('on a phone: one tap connects and speaks, and everything fits', async () => {
  const page = await openDemo(browser, server, PHONE);
  await page.tap('.sentence');
  await inState(page, 'speaking');
  await sleep(1500);
  await screenshot(page, path.join(OUT, 'page-phone.png'));
  await page.$eval('details', (element) => {
    (element as unknown as { open: boolean }).open = true;
  });
  assert.equal(
    await page.evaluate('document.documentElement.scrollWidth'),
    360,
    'the page is wider than the phone',
  );
  const small = await page.$$eval('button, summary, .segmented span', (elements) =>
    elements
      .map((element) => ({
        what: `${element.id || element.className} '${element.textContent?.trim().slice(0, 20)}'`,
        box: (element as any).getBoundingClientRect(),
      }))
      .filter(({ box }) => box.width > 0 && (box.height < 40 || box.width < 40))
      .map(({ what }) => what),
  );
  assert.deepEqual(small, [], 'too small for a thumb');
  await page.evaluate('scrollTo(0, 0)'); // the controls may lie beneath the face that stays in sight
  await page.tap('#disconnect');
  await inState(page, 'none');
  await page.close();
});

test('on a phone in the dark: what scrolls beneath the face shows at no edge of it', async () => {
  const page = await browser.newPage(PHONE);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  await page.goto(`${server.url}/#key=${server.apiKey}`);
  await page.waitForSelector('.face[role=radio] img.thumb');
  await page.$$eval('details', (all) => {
    for (const one of all) {
      (one as any).open = true;
    }
  });
  for (const down of [420, 640, 860]) {
    // faces, sentences and cards pass beneath
    await page.evaluate(`scrollTo(0, ${down})`);
    await sleep(200);
    const edge = await sharp(await page.screenshot({ path: path.join(OUT, 'page-phone-dark.png') }))
      .extract({ left: 32, top: 0, width: 2 * PHONE.width - 64, height: 14 })
      .toBuffer();
    const { channels } = await sharp(edge).stats();
    for (const { stdev } of channels) {
      assert.ok(
        stdev < 5,
        `${down} px down something shows above the face (${stdev.toFixed(1)} grey levels)`,
      );
    }
  }
  await page.close();
});

test('a connection that finds no way says why, and what to do', async () => {
  const page = lost;
  await textBecomes(page, '#error-text', /media path.*ANNOUNCED_IPS/, 40_000);
  await inState(page, 'none');
  await page.close();
});

test('a server that is full says so in words, and the focus is back on Connect', async () => {
  const pages = [
    await openDemo(browser, server),
    await openDemo(browser, server),
    await openDemo(browser, server),
  ];
  for (const page of pages) {
    await page.bringToFront();
    await page.click('#connect');
    await inState(page, 'idle');
  }
  const page = await openDemo(browser, server);
  await page.focus('#connect');
  await page.keyboard.press('Enter');
  await textBecomes(page, '#error-text', /server is full/);
  await inState(page, 'none');
  assert.equal(await focusOf(page), 'connect');
  for (const one of [page, ...pages]) {
    await one.close();
  }
});

test('a lost connection comes back; a server that stops says so, one that is gone is missed', async () => {
  // Expected refusals: the wrong key's, the full server's, refused statistics, and a frame's.
  assert.deepEqual(
    browser.problems.filter(
      (problem) =>
        !/401 \(|429 \(.*compose\/token|404 \(.*\/stats|frame-ancestors|BLOCKED_BY_RESPONSE/.test(
          problem,
        ),
    ),
    [],
    'pages complained',
  );
  const page = await openDemo(browser, server);
  await page.evaluate(
    'WebSocket = class extends WebSocket { constructor(url) { super(url); globalThis.last = this; } }',
  );
  await page.click('#connect');
  await inState(page, 'idle');
  await page.evaluate('last.close()');
  await textBecomes(page, '#state', /connecting again/);
  await inState(page, 'idle');
  assert.equal(await page.$eval('#disconnect', (one) => (one as any).disabled), false);
  await server.stop();
  await inState(page, 'none');
  assert.match(await textOf(page, '#state'), /server is stopping/);
  await page.click('#connect');
  await textBecomes(page, '#error-text', /server does not answer.*npm start/);
  await screenshot(page, path.join(OUT, 'page-error.png'));
  await page.close();
});
