// Real browsers for tests: Chromium and Firefox without a window. They contact nothing but the
// test's own server.
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { launch, type Browser, type BrowserContext, type Page } from 'puppeteer-core';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (file) => existsSync(file),
);
/** FIREFOX names another one. */
export const FIREFOX = [process.env['FIREFOX'], '/usr/bin/firefox-esr', '/usr/bin/firefox'].find(
  (file) => file !== undefined && existsSync(file),
);

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--mute-audio',
  '--force-color-profile=srgb',
  '--disable-dev-shm-usage', // containers often have 64 MiB of it
  // A hidden page would get one timer a second and no frames.
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
  '--autoplay-policy=no-user-gesture-required',
];

/** Pages of one test file. */
export interface TestBrowser {
  /** Opens a page. Its console errors, exceptions and failed requests go to `problems`. */
  newPage(options?: PageOptions): Promise<Page>;
  /**
   * Console errors, exceptions and failed requests of all pages. Most scenarios assert that it is
   * empty.
   */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** CSS pixels; by default a desktop window. */
export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly isMobile?: boolean;
  readonly deviceScaleFactor?: number;
}

/** What a Chromium of its own is started with. */
export interface BrowserOptions {
  /** A WAV file that Chromium plays once as its microphone. */
  readonly microphoneWav?: string;
}

/** Wraps a browser, or a context of it, for the pages of one test file. */
export function testBrowser(
  pages: Browser | BrowserContext,
  close: () => Promise<void>,
): TestBrowser {
  const problems: string[] = [];
  return {
    problems,
    close,
    async newPage({ width = 1280, height = 900, isMobile = false, deviceScaleFactor = 1 } = {}) {
      const page = await pages.newPage();
      await page.setViewport({ width, height, isMobile, hasTouch: isMobile, deviceScaleFactor });
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('console', (message) => {
        const address = message.location().url ?? '';
        if (message.type() === 'error' && !address.endsWith('/favicon.ico')) {
          problems.push(`${message.text()} ${address}`);
        }
      });
      page.on('requestfailed', (request) => {
        const why = request.failure()?.errorText ?? '';
        if (why !== 'net::ERR_ABORTED') {
          problems.push(`${request.url()}: ${why}`);
        }
      });
      return page;
    },
  };
}

/**
 * Launches Chromium with a profile of its own.
 * @throws Error when Chromium is not installed or does not start
 */
export async function launchChromium({ microphoneWav }: BrowserOptions = {}): Promise<{
  browser: Browser;
  close: () => Promise<void>;
}> {
  if (CHROMIUM === undefined) {
    throw new Error('Chromium is not installed (Debian package: chromium).');
  }
  const profile = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-chromium-'));
  const browser = await launch({
    executablePath: CHROMIUM,
    userDataDir: profile,
    env: { ...process.env, HOME: profile, DBUS_SESSION_BUS_ADDRESS: 'disabled:' },
    args: [
      ...FLAGS,
      ...(microphoneWav === undefined
        ? []
        : [
            '--use-fake-device-for-media-stream',
            '--use-fake-ui-for-media-stream',
            `--use-file-for-fake-audio-capture=${microphoneWav}%noloop`,
          ]),
    ],
  });
  return {
    browser,
    async close() {
      await browser.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

/**
 * A Chromium of its own, for programs outside vitest and for tests that need other flags. Scenarios
 * use `openBrowser` (shared-browser.ts).
 */
export async function startBrowser(options: BrowserOptions = {}): Promise<TestBrowser> {
  const { browser, close } = await launchChromium(options);
  return testBrowser(browser, close);
}

/** Firefox. @throws Error when it is not installed */
export async function startFirefox(): Promise<TestBrowser> {
  if (FIREFOX === undefined) {
    throw new Error('Firefox is not installed (Debian package: firefox-esr).');
  }
  // Puppeteer's own preferences switch most background requests off; these add what they leave out.
  const browser = await launch({
    browser: 'firefox',
    executablePath: FIREFOX,
    headless: true,
    extraPrefsFirefox: {
      'media.autoplay.default': 0,
      'media.gmp-manager.updateEnabled': false,
      'network.connectivity-service.enabled': false,
      'network.trr.mode': 5,
    },
  });
  return testBrowser(browser, () => browser.close());
}
