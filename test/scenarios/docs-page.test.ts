// The API reference at /docs in a browser: complete without the internet, usable with a key, accessible.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, test } from 'vitest';
import { startTestFront, type TestFront } from '../front/harness.ts';
import type { TestBrowser } from '../harness/browser.ts';
import { problemsAtEverySize } from '../harness/page-checks.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { OUT } from '../harness/speech.ts';

let front: TestFront;
let browser: TestBrowser;

beforeAll(async () => {
  await mkdir(OUT, { recursive: true });
  [front, browser] = await Promise.all([startTestFront(), openBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await front?.close();
});

interface OpenedPage {
  readonly page: Page;
  /** Addresses of all requests of the page. */
  readonly requests: string[];
  /** Requests that failed, or got an error status. */
  readonly failures: string[];
}

async function openDocs(): Promise<OpenedPage> {
  const page = await browser.newPage({ width: 1280, height: 900 });
  const [requests, failures]: [string[], string[]] = [[], []];
  page.on('request', (request) => requests.push(request.url()));
  page.on('requestfailed', (request) => failures.push(request.url()));
  page.on('response', (response) => {
    if (response.status() >= 400) {
      failures.push(`${response.status()} ${response.url()}`);
    }
  });
  await page.goto(`${front.url}/docs`);
  await page.waitForSelector('.opblock');
  return { page, requests, failures };
}

test('everything comes from this server, without an error', async () => {
  const { page, requests, failures } = await openDocs();
  assert.ok(requests.length >= 5, String(requests));
  for (const address of requests) {
    assert.ok(address.startsWith(`${front.url}/`) || address.startsWith('data:'), address);
  }
  assert.deepEqual(failures, []);
  assert.deepEqual(browser.problems, []);
  await page.close();
});

test('a request is sent with the key that was entered once', async () => {
  const { page } = await openDocs();
  await page.click('button.authorize');
  await page.waitForSelector('.auth-container input');
  await page.type('.auth-container input', front.key);
  await page.click('.auth-container button.authorize');
  await page.reload();
  await page.waitForSelector('.opblock');
  const block = '#operations-Accounting-getRatelimiterSessions';
  await page.click(`${block} .opblock-summary-control`);
  await page.click(
    await page.waitForSelector(`${block} .try-out__btn`).then(() => `${block} .try-out__btn`),
  );
  await page.waitForSelector(`${block} .execute`);
  const replied = page.waitForResponse((response) =>
    response.url().endsWith('/ratelimiter/sessions'),
  );
  await page.click(`${block} .execute`);
  assert.equal((await replied).status(), 200);
  await page.waitForSelector(`${block} .live-responses-table`);
  await page.close();
});

/** Findings of axe-core in the markup of Swagger UI itself, which a style sheet cannot change. */
const VIEWER_FAULTS = [
  'nested-interactive', // the summary of an operation is a button that contains a link
  'heading-order', // the title is an h1, the groups of operations are h3
  'region', // the title and the description are outside of its <main>
];

test('the chapter on the WebSockets: all fits, and axe-core finds nothing wrong', async () => {
  const page = await browser.newPage({ width: 1280, height: 900 });
  await page.goto(`${front.url}/docs/protocol`);
  await page.waitForSelector('h3');
  await page.screenshot({ path: `${OUT}/protocol-page.png`, fullPage: true });
  assert.deepEqual(await problemsAtEverySize(page, 'protocol'), []);
  assert.deepEqual(browser.problems, []);
  await page.close();
});

test('at every size, in light and dark: all fits, and axe-core finds nothing wrong', async () => {
  const { page } = await openDocs();
  const found = await problemsAtEverySize(page, 'docs');
  const ours = found.filter(
    (problem) => !VIEWER_FAULTS.some((rule) => problem.includes(`: ${rule} `)),
  );
  assert.deepEqual(ours, []);
  await page.close();
});
