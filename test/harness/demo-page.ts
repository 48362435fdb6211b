// The demo page as tests use it: opens it, reads it, waits for its states.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { ElementHandle, Page } from 'puppeteer-core';
import type { TestBrowser } from './browser.ts';
import { patience } from './machine.ts';
import type { TestServer } from './server.ts';

export const DESK = { width: 1280, height: 900 };
export const PHONE = { width: 360, height: 780, isMobile: true, deviceScaleFactor: 2 };

/** Opens the page with the server's key, and waits until it can connect. */
export async function openDemo(
  browser: TestBrowser,
  server: TestServer,
  size: typeof DESK | typeof PHONE = DESK,
): Promise<Page> {
  const page = await browser.newPage(size);
  await page.goto(`${server.url}/#key=${server.apiKey}`);
  await page.waitForSelector('#connect:not([disabled])');
  return page;
}

export const textOf = (page: Page, selector: string): Promise<string> =>
  page.$eval(selector, (element) => element.textContent ?? '');

/** Waits for a state of the player. */
export const inState = (page: Page, state: string): Promise<ElementHandle | null> =>
  page.waitForSelector(`#player[data-state=${state}]`, { timeout: 20_000 * patience() });

/** Waits until an element's text matches, whatever its case. */
export async function textBecomes(
  page: Page,
  selector: string,
  pattern: RegExp,
  timeoutMs = 20_000,
): Promise<void> {
  await page
    .waitForFunction(
      `new RegExp(${JSON.stringify(pattern.source)}, ` +
        `'i').test(document.querySelector(${JSON.stringify(selector)}).textContent)`,
      { timeout: timeoutMs * patience() },
    )
    .catch(async () =>
      assert.fail(`'${selector}' never said ${pattern}, but '${await textOf(page, selector)}'`),
    );
}

/** Writes a picture of the page; the ending of `file` becomes .png. */
export async function screenshot(page: Page, file: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  await page.screenshot({ path: `${file.slice(0, -4)}.png` });
}

/** Pixels of a canvas that are not transparent. */
export const inkOf = (page: Page, selector: string): Promise<number> =>
  page.$eval(
    selector,
    (canvas) =>
      (canvas as any)
        .getContext('2d')
        .getImageData(0, 0, (canvas as any).width, (canvas as any).height)
        .data.filter((value: number, i: number) => i % 4 === 3 && value > 0).length as number,
  );

/** The panel of GET /sessions/{id}/stats, while the face speaks. */
export async function checkStatsPanel(page: Page): Promise<void> {
  await textBecomes(page, '#stats-total', /^[\d.]+ ms of the 33 ms/);
  await textBecomes(page, '#stats-legend [data-stage=inference]', /[1-9]/);
  // Read at once: the page changes them together.
  const { stages, totalMs } = await page.evaluate(() => ({
    stages: [...document.querySelectorAll<HTMLElement>('#stats-legend li')].map((item) => ({
      name: item.dataset.stage!,
      ms: Number.parseFloat(item.querySelector('b')!.textContent),
    })),
    totalMs: Number.parseFloat(document.querySelector('#stats-total')!.textContent),
  }));
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
  assert.ok((await inkOf(page, '#stats-chart')) > 500, 'nothing was drawn of the last minute');
}
