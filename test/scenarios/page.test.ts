// The demo page as a person uses it: its real buttons, clicked in a real browser, on a desk and on
// a phone.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import type { ElementHandle, Page } from 'puppeteer-core';
import sharp from 'sharp';
import { startBrowser, type TestBrowser } from '../harness/browser.ts';
import { patience } from '../harness/machine.ts';
import { coveredStops, focusOf, misfits, problemsAtEverySize } from '../harness/page-checks.ts';
import { ROOT, startServer, type TestServer } from '../harness/server.ts';
import { concat, OUT, silence, synthesize, toWav } from '../harness/speech.ts';
import { sleep } from '../../src/base/time.ts';

const WAV = path.join(OUT, 'speech', 'page-microphone.wav');
const MUSIC_RATE_WAV = path.join(OUT, 'speech', 'page-44100.wav');

const DESK = { width: 1280, height: 900 };
const PHONE = { width: 360, height: 780, isMobile: true, deviceScaleFactor: 2 };

let server: TestServer;
let browser: TestBrowser;
let lost: Page;

beforeAll(async () => {
  const { pcm } = await synthesize('What I say, the face says.', 'rms');
  await writeFile(WAV, toWav(concat(silence(1500), pcm, silence(1500))));
  const samples = Int16Array.from(
    { length: pcm.length * 2.75625 },
    (_, i) => pcm[Math.floor(i / 2.75625)]!,
  ); // 16 kHz → 44.1 kHz, crudely
  await writeFile(MUSIC_RATE_WAV, toWav(samples, 44_100));
  const env = { MAX_SESSIONS_PER_WORKER: '3' }; // so that a test can fill it
  [server, browser] = await Promise.all([
    startServer({ env }),
    // A Chromium of its own: its microphone is a file, which only a command line flag can name.
    startBrowser({ microphoneWav: WAV }),
  ]);
  lost = await connectWithoutAWay();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
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

async function openPage(size: typeof DESK | typeof PHONE = DESK): Promise<Page> {
  const page = await browser.newPage(size);
  await page.goto(`${server.url}/#key=${server.apiKey}`);
  await page.waitForSelector('#connect:not([disabled])');
  return page;
}

const textOf = (page: Page, selector: string): Promise<string> =>
  page.$eval(selector, (element) => element.textContent ?? '');
const inState = (page: Page, state: string): Promise<ElementHandle | null> =>
  page.waitForSelector(`#player[data-state=${state}]`, { timeout: 20_000 * patience() });
const textBecomes = async (
  page: Page,
  selector: string,
  pattern: RegExp,
  timeoutMs = 20_000,
): Promise<void> => {
  await page
    .waitForFunction(
      `new RegExp(${JSON.stringify(pattern.source)}, ` +
        `'i').test(document.querySelector(${JSON.stringify(selector)}).textContent)`,
      { timeout: timeoutMs * patience() },
    )
    .catch(async () =>
      assert.fail(`'${selector}' never said ${pattern}, but '${await textOf(page, selector)}'`),
    );
};
const screenshot = async (page: Page, file: string): Promise<void> => {
  await mkdir(path.dirname(file), { recursive: true });
  await page.screenshot({ path: `${file.slice(0, -4)}.png` });
};

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

  const other = await openPage();
  assert.equal(other.url(), `${server.url}/`, 'the key is still in the address');
  await other.close();
});

test('by keyboard alone: stops come in the order of reading, and the focus is never lost', async () => {
  const page = await openPage();
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
    'sentence',
    'sentence',
    'sentence',
    'microphone',
    'pick',
    'replace',
    'talk-start',
    'SUMMARY',
    'SUMMARY',
    'SUMMARY',
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
  const page = await openPage();
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
  const page = await openPage();
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
  await checkSessionStats(page);
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
  const drawn = await page.$eval(
    '#spark',
    (canvas) =>
      (canvas as any)
        .getContext('2d')
        .getImageData(0, 0, (canvas as any).width, (canvas as any).height)
        .data.filter((value: number, i: number) => i % 4 === 3 && value > 0).length as number,
  );
  assert.ok(drawn > 500, 'nothing was drawn of sound and lips');

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

/** The panel of GET /sessions/{id}/stats, while the face speaks. */
async function checkSessionStats(page: Page): Promise<void> {
  await textBecomes(page, '#stats-total', /^[\d.]+ ms of the 33 ms/);
  await textBecomes(page, '#stats-legend [data-stage=inference]', /[1-9]/);
  const stages = await page.$$eval('#stats-legend li', (items) =>
    items.map((item) => ({
      name: (item as any).dataset.stage as string,
      ms: Number.parseFloat(item.querySelector('b')!.textContent),
    })),
  );
  assert.deepEqual(
    stages.map(({ name }) => name),
    ['drain', 'features', 'inference', 'render', 'encode', 'packetize', 'send'],
  );
  for (const { name, ms } of stages) {
    assert.ok(ms >= 0 && ms < 33 * patience(), `${name} takes ${ms} ms a frame`);
  }
  assert.ok(
    stages.find(({ name }) => name === 'render')!.ms > 0.02 &&
      stages.find(({ name }) => name === 'encode')!.ms > 0.1,
    JSON.stringify(stages),
  );
  const totalMs = Number.parseFloat(await textOf(page, '#stats-total'));
  assert.ok(
    Math.abs(totalMs - stages.reduce((sum, { ms }) => sum + ms, 0)) < 0.6 + totalMs * 0.1,
    `${totalMs} ms is not the sum of ${JSON.stringify(stages)}`,
  );
  const facts = await textOf(page, '#stats-facts');
  assert.match(facts, /lips out[\d.]+ ms · [\d.]+ ms/);
  assert.match(facts, /lateness[\d.]+ ms · [\d.]+ ms/i);
  assert.match(facts, /skipped[1-9]\d* · \d+/);
  const widths = await page.$$eval('#stats-bar i', (bars) =>
    bars.map((bar) => (bar as any).getBoundingClientRect().width as number),
  );
  assert.ok(Math.max(...widths) > 20, `the bar is empty: ${widths.join(' ')}`);
  const inked = await page.$eval(
    '#stats-chart',
    (canvas) =>
      (canvas as any)
        .getContext('2d')
        .getImageData(0, 0, (canvas as any).width, (canvas as any).height)
        .data.filter((value: number, i: number) => i % 4 === 3 && value > 0).length as number,
  );
  assert.ok(inked > 500, 'nothing was drawn of the last minute');
}

test('refused session statistics say why, and the rest of the page keeps working', async () => {
  const page = await openPage();
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
  const page = await openPage(PHONE);
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

test(
  'an audio file of another rate is picked and spoken; a file that is none is refused in ' +
    'words',
  async () => {
    const page = await openPage();
    const picker = (await page.$('#file')) as ElementHandle<any>;
    await picker.uploadFile(MUSIC_RATE_WAV);
    await inState(page, 'speaking');
    await textBecomes(page, '#speak-status', /s of speech sent/);
    await picker.uploadFile(path.join(ROOT, 'package.json'));
    await textBecomes(page, '#speak-status', /cannot read that file as audio/);
    await page.click('#disconnect');
    await page.close();
  },
);

for (const way of ['pcm', 'opus'] as const) {
  test(`the microphone speaks through the face, as ${way}`, async () => {
    const page = await openPage();
    await page.$eval('details', (element) => {
      (element as unknown as { open: boolean }).open = true;
    });
    await page.click(`input[name=mic][value=${way}] + span`);
    await page.click('#microphone');
    await page.waitForSelector('#microphone[data-on=true]');
    await inState(page, 'speaking');
    assert.equal(
      await textOf(page, '#sound span'),
      'Sound off',
      'loudspeakers would feed the microphone',
    );
    await page.click('#microphone');
    await page.waitForSelector('#microphone[data-on=false]');
    await page.click('#disconnect');
    await page.close();
  });
}

test('a portrait becomes a face and speaks; a picture without a face is refused in words', async () => {
  const portrait = path.join(OUT, 'portrait.jpg');
  const wall = path.join(OUT, 'wall.png');
  await writeFile(
    portrait,
    Buffer.from(
      await (
        await fetch(`${server.url}/faces/ava/preview`, {
          headers: { 'x-service-api-key': server.apiKey },
        })
      ).arrayBuffer(),
    ),
  );
  await sharp({ create: { width: 512, height: 512, channels: 3, background: '#9db' } })
    .png()
    .toFile(wall);
  const page = await openPage();
  const count = (await page.$$('.face[role=radio]')).length;
  const picker = (await page.$('#portrait')) as ElementHandle<any>;
  await page.focus('.face.add');
  await picker.uploadFile(wall);
  await textBecomes(page, '#face-status', /face/);
  await page.waitForSelector('#face-status.bad');
  assert.equal((await page.$$('.face[role=radio]')).length, count);
  await picker.uploadFile(portrait);
  await textBecomes(page, '#face-status', /Ready after [\d.]+ s/, 40_000);
  assert.equal((await page.$$('.face[role=radio]')).length, count + 1);
  assert.equal(await textOf(page, '.face[aria-checked=true] .name'), 'portrait');
  assert.equal(
    await page.evaluate('document.activeElement.ariaLabel'),
    'portrait',
    'the list was drawn again',
  );
  await page.click('.sentence');
  await inState(page, 'speaking');
  await sleep(1500);
  await screenshot(page, path.join(OUT, 'page-portrait.png'));
  await page.click('#disconnect');
  await page.close();
});

test('a video file is rendered, and plays', async () => {
  const page = await openPage();
  await page.$eval('#render', (element) => {
    (element as unknown as { open: boolean }).open = true;
  });
  await page.click('#render-sample');
  await page.waitForSelector('#render-sample[aria-disabled=true]');
  await textBecomes(page, '#render-status', /s of video in [\d.]+ s/, 60_000);
  await page.waitForSelector('#render-sample[aria-disabled=false]');
  assert.equal(await focusOf(page), 'render-sample');
  await page.waitForFunction(
    'document.querySelector("#render-video").readyState >= 2 && ' +
      'Math.abs(document.querySelector("#render-video").duration - 6.1) < 1',
  );
  await screenshot(page, path.join(OUT, 'page-clip.png'));
  await page.close();
});

test('a connection that finds no way says why, and what to do', async () => {
  const page = lost;
  await textBecomes(page, '#error-text', /media path.*ANNOUNCED_IPS/, 40_000);
  await inState(page, 'none');
  await page.close();
});

test('a server that is full says so in words, and the focus is back on Connect', async () => {
  const pages = [await openPage(), await openPage(), await openPage()];
  for (const page of pages) {
    await page.bringToFront();
    await page.click('#connect');
    await inState(page, 'idle');
  }
  const page = await openPage();
  await page.focus('#connect');
  await page.keyboard.press('Enter');
  await textBecomes(page, '#error-text', /server is full/);
  await inState(page, 'none');
  assert.equal(await focusOf(page), 'connect');
  for (const one of [page, ...pages]) {
    await one.close();
  }
});

test('a server that stops says so, one that is gone is missed in words', async () => {
  // Expected refusals: the wrong key's, the full server's, and a video's that is not ready yet.
  assert.deepEqual(
    browser.problems.filter(
      (problem) => !/401 \(|429 \(.*compose\/token|404 \(.*(static\/mp4|\/stats)/.test(problem),
    ),
    [],
    'pages complained',
  );
  const page = await openPage();
  await page.click('#connect');
  await inState(page, 'idle');
  await server.stop();
  await inState(page, 'none');
  assert.match(await textOf(page, '#state'), /server is stopping/);
  await page.click('#connect');
  await textBecomes(page, '#error-text', /server does not answer.*npm start/);
  await screenshot(page, path.join(OUT, 'page-error.png'));
  await page.close();
});
