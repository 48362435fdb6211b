// One Chromium for all scenario files. vitest calls the default export once, before the first file.
import { connect } from 'puppeteer-core';
import { inject } from 'vitest';
import type { TestProject } from 'vitest/node';
import { launchChromium, testBrowser, type TestBrowser } from './browser.ts';

declare module 'vitest' {
  // vitest's own name for the values that a global setup hands to tests.
  interface ProvidedContext {
    /** The WebSocket address of the shared Chromium. */
    chromium: string;
  }
}

/** Starts Chromium in vitest's main process. @returns what stops it */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const { browser, close } = await launchChromium();
  project.provide('chromium', browser.wsEndpoint());
  return close;
}

/**
 * A context of its own in the shared Chromium: own cookies, storage and cache. `close` ends the
 * context.
 */
export async function openBrowser(): Promise<TestBrowser> {
  const browser = await connect({ browserWSEndpoint: inject('chromium') });
  const context = await browser.createBrowserContext();
  return testBrowser(context, async () => {
    await context.close();
    await browser.disconnect();
  });
}
