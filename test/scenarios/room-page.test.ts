// The page of a room in each of its states, with a session that the test drives: at every size, in
// light and dark, with keyboard alone. conversation.test.ts holds a real conversation in it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, test } from 'vitest';
import type { TestBrowser } from '../harness/browser.ts';
import { accessProblems, misfits, SIZES } from '../harness/page-checks.ts';
import { ROOT, type TestServer, startServer } from '../harness/server.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { OUT } from '../harness/speech.ts';

/** Takes the place of client.js: the test dispatches what the server would send. */
const CLIENT = `
  export class RequestError extends Error {}
  export const request = () => Promise.resolve({
    session_token: 't', name: 'Ava', scripted: true, ice_servers: [],
  });
  export class Session extends EventTarget {
    calls = [];
    constructor() {
      super();
      window.session = this;
      const canvas = document.createElement('canvas');
      canvas.width = canvas.height = 512;
      const image = new Image();
      image.onload = () => canvas.getContext('2d').drawImage(image, 0, 0, 512, 512);
      image.src = '/face.jpg';
      this.stream = canvas.captureStream(10);
      this.peer = { getSenders: () => [] };
    }
    on(name, listener) {
      this.addEventListener(name, ({ detail }) => listener(detail));
    }
    interrupt() { this.calls.push('interrupt'); }
    finish() { this.calls.push('finish'); }
  }`;
/** Before the page: a microphone without a device. */
const MICROPHONE = `
  navigator.mediaDevices.getUserMedia = async () => {
    if (window.isBlocked) throw new DOMException('no', 'NotAllowedError');
    return new AudioContext().createMediaStreamDestination().stream;
  };
  navigator.mediaDevices.enumerateDevices = async () => ['Headset', 'Built-in'].map((label) => (
    { kind: 'audioinput', deviceId: label, label }));`;

const PICTURE = readFileSync(path.join(ROOT, 'models/build/faces/ava.jpg'));

let server: TestServer;
let browser: TestBrowser;

beforeAll(async () => {
  server = await startServer();
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

async function openRoom(): Promise<Page> {
  const page = await browser.newPage();
  await page.evaluateOnNewDocument(MICROPHONE);
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    switch (new URL(request.url()).pathname) {
      case '/client.js':
        void request.respond({ contentType: 'text/javascript', body: CLIENT });
        return;
      case '/face.jpg':
        void request.respond({ contentType: 'image/jpeg', body: PICTURE });
        return;
      default:
        void request.continue();
    }
  });
  await page.goto(`${server.url}/auto/room/r1#secret`);
  return page;
}

const tell = (page: Page, name: string, detail: unknown = null): Promise<unknown> =>
  page.evaluate(
    `session.dispatchEvent(new CustomEvent('${name}', { detail: ${JSON.stringify(detail)} }))`,
  );
const say = (page: Page, role: string, text: string, final = true): Promise<unknown> =>
  tell(page, 'conversation', { caption: { role, text, final } });
const LINE =
  'Your voice comes over WebRTC, a recogniser writes it down, and a voice reads my line to you.';

/** Controls below the window of a phone upright or a desk, and badges over one another. */
const covered = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const found: string[] = [];
    const [state, label] = [...document.querySelectorAll('.state, .label')]
      .filter((element) => element.checkVisibility())
      .map((element) => element.getBoundingClientRect());
    if (
      state !== undefined &&
      label !== undefined &&
      state.right > label.left &&
      label.right > state.left &&
      state.bottom > label.top
    ) {
      found.push('the badges overlap');
    }
    for (const element of document.querySelectorAll('button')) {
      const isBelow = element.getBoundingClientRect().bottom > innerHeight;
      if (element.checkVisibility() && innerHeight > 600 && isBelow) {
        found.push(`${element.id} is below the window`);
      }
    }
    return found;
  });

/** Brings the page into each state, one after another. */
const STATES: readonly (readonly [string, (page: Page) => Promise<unknown>])[] = [
  ['start', () => Promise.resolve()],
  ['connecting', (page) => page.click('#start')],
  ['listening', (page) => tell(page, 'started')],
  [
    'hearing',
    async (page) => {
      await tell(page, 'conversation', { state: 'hearing' });
      await say(page, 'user', 'How does all of this', false);
    },
  ],
  ['thinking', (page) => tell(page, 'conversation', { state: 'thinking' })],
  [
    'speaking',
    async (page) => {
      await tell(page, 'conversation', { state: 'speaking' });
      await say(page, 'user', 'How does all of this work?', false);
      await say(page, 'assistant', LINE, false);
    },
  ],
  ['muted', (page) => page.click('#mute')],
  [
    'problem',
    (page) => tell(page, 'conversation', { problem: 'The voice did not answer in time' }),
  ],
  [
    'failed',
    (page) =>
      tell(page, 'end', {
        reason: 'conversation_failed',
        error: { code: 'CONNECTION_LOST', message: 'CONNECTION_LOST' },
      }),
  ],
];

test('each state, at every size, in light and dark: all fits, and axe-core finds nothing', async () => {
  const page = await openRoom();
  for (const [state, enter] of STATES) {
    await enter(page);
    for (const scheme of ['light', 'dark']) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      for (const [width, height] of SIZES) {
        await page.setViewport({ width, height });
        const at = `${state}, ${width} x ${height}, ${scheme}`;
        assert.deepEqual(await misfits(page), [], at);
        assert.deepEqual(await covered(page), [], at);
        if (width === 1280 || height > width) {
          assert.deepEqual(await accessProblems(page), [], at);
        }
        const isShown =
          (width === 390 && scheme === 'dark') || (width === 1280 && scheme === 'light');
        if (isShown) {
          await page.screenshot({ path: path.join(OUT, `room-${state}-${width}.png`) });
        }
      }
    }
  }
  assert.deepEqual(browser.problems, []);
});

test('with the keyboard alone, from start to hang up, and what is announced', async () => {
  const page = await openRoom();
  const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.id ?? '');
  const announced = (): Promise<string | null> =>
    page.$eval('#announcement', (element) => element.textContent);
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'start');
  await page.keyboard.press('Enter');
  await page.waitForFunction('window.session !== undefined');
  assert.equal(await focused(), 'mute');
  await tell(page, 'started');
  assert.equal(await announced(), 'Connected. You can speak now.');
  await tell(page, 'conversation', { state: 'speaking' });
  assert.equal(await announced(), 'Connected. You can speak now.', 'turns are not read out');
  const order: string[] = [];
  for (let i = 0; i < 4; i++) {
    await page.keyboard.press('Tab');
    order.push(await focused());
  }
  assert.deepEqual(order, ['interrupt', 'captions-toggle', 'device', 'hang-up']);
  await page.focus('#mute');
  await page.keyboard.press('m');
  assert.equal(await page.$eval('#mute', (one) => one.getAttribute('aria-pressed')), 'true');
  await page.keyboard.press('c');
  assert.equal(await page.$eval('#captions', (one) => (one as HTMLElement).hidden), true);
  await page.keyboard.press('Escape');
  await page.focus('#hang-up');
  await page.keyboard.press('Enter');
  assert.deepEqual(await page.evaluate('session.calls'), ['interrupt', 'finish']);
  await tell(page, 'end', { reason: 'done', error: null });
  assert.equal(await announced(), 'The conversation is over');
  assert.equal(await page.$eval('#controls', (one) => (one as HTMLElement).hidden), true);
});

test('a microphone that is blocked is told in words, and can be tried again', async () => {
  const page = await openRoom();
  await page.evaluate('window.isBlocked = true');
  await page.click('#start');
  await page.waitForFunction("document.getElementById('notice').hidden === false");
  assert.match(await page.$eval('#notice-text', (one) => one.textContent), /microphone is blocked/);
  await page.evaluate('window.isBlocked = false');
  await page.click('#start');
  await page.waitForFunction('window.session !== undefined');
  assert.equal(await page.$eval('#notice', (one) => (one as HTMLElement).hidden), true);
});
