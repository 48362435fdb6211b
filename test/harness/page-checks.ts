// Checks that a page must pass at every window size, in light and dark mode.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Page } from 'puppeteer-core';
import { OUT } from './speech.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * CSS pixels: phones upright and on their side, down to the 320 px of WCAG 2.2 (1.4.10); a desk.
 */
export const SIZES = [
  [320, 640],
  [390, 844],
  [667, 375],
  [844, 390],
  [1280, 900],
] as const;

/** The violations that axe-core finds, including best practices: each a rule and the element. */
export async function accessProblems(page: Page): Promise<string[]> {
  await page.evaluate(`typeof axe === 'undefined' && ${AXE}`);
  return (await page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, any }) =>
      [id, target, any[0]?.data?.contrastRatio ?? ''].join(' '))))`)) as string[];
}

/** Elements that overflow the window or their own box, and badges that overlap. */
export async function misfits(page: Page): Promise<string[]> {
  return (await page.evaluate(`(() => {
    const name = (element) => element.id || element.className || element.textContent.trim().slice(0, 30);
    const seen = (selector) =>
      [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
    const found = [];
    const { scrollWidth } = document.documentElement;
    if (scrollWidth > innerWidth) {
      found.push('scrolls sideways: ' + scrollWidth + ' of ' + innerWidth + ' px');
      for (const element of seen('body *')) {
        const { right } = element.getBoundingClientRect();
        if (right > innerWidth + 0.5) found.push('outside: ' + name(element));
      }
    }
    for (const element of seen('button, dd, .chip, .badge, .segmented span')) {
      const isTooWide = element.scrollWidth > element.clientWidth + 1;
      if (isTooWide) found.push('wider than its box: ' + name(element));
    }
    const badges = seen('.chip, .badge').map((element) => element.getBoundingClientRect());
    const player = document.querySelector('.player')?.getBoundingClientRect();
    badges.forEach((one, at) => {
      const isInside = one.left >= player.left && one.right <= player.right;
      if (!isInside) found.push('a badge reaches out of the picture');
      for (const two of badges.slice(at + 1)) {
        const isApart = one.right <= two.left || two.right <= one.left
          || one.bottom <= two.top || two.bottom <= one.top;
        if (!isApart) found.push('badges overlap');
      }
    });
    return found;
  })()`)) as string[];
}

/**
 * Runs both checks at each size, in light and dark, without motion: colours that fade cannot be
 * measured.
 * @param state Names what the page shows, for the messages.
 * @returns What is wrong, each with its state, size and scheme. A screenshot of each is left in
 * `OUT`.
 */
export async function problemsAtEverySize(page: Page, state: string): Promise<string[]> {
  const found: string[] = [];
  for (const scheme of ['light', 'dark']) {
    await page.emulateMediaFeatures([
      { name: 'prefers-color-scheme', value: scheme },
      { name: 'prefers-reduced-motion', value: 'reduce' },
    ]);
    for (const [width, height] of SIZES) {
      await page.setViewport({ width, height });
      await page.evaluate('scrollTo(0, 0)');
      const here = [...(await misfits(page)), ...(await accessProblems(page))];
      if (here.length === 0) {
        continue;
      }
      const where = `${state}-${width}x${height}-${scheme}`;
      found.push(...here.map((problem) => `${where}: ${problem}`));
      await page.screenshot({ path: path.join(OUT, `page-wrong-${where}.png`) });
    }
  }
  return found;
}

/**
 * The id of the element with the focus; else its class, or its tag's name: BODY where there is
 * none.
 */
export const focusOf = async (page: Page): Promise<string> =>
  (await page.evaluate(
    '(({ id, classList, tagName }) => id || classList[0] || tagName)(document.activeElement)',
  )) as string;

/**
 * Goes up by Shift+Tab.
 * @returns The stops whose middle is out of sight or covered (WCAG 2.2, 2.4.11).
 */
export async function coveredStops(page: Page, count: number): Promise<string[]> {
  const covered: string[] = [];
  for (let n = 0; n < count; n++) {
    await page.keyboard.down('Shift');
    await page.keyboard.press('Tab');
    await page.keyboard.up('Shift');
    const isSeen = await page.evaluate(`(() => {
      const at = document.activeElement;
      const { left, top, width, height } = at.getBoundingClientRect();
      return at.contains(document.elementFromPoint(left + width / 2, top + height / 2));
    })()`);
    if (isSeen !== true) {
      covered.push(await focusOf(page));
    }
  }
  return covered;
}
