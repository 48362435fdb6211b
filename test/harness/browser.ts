// Starts Chromium, without a window and without a line to anywhere, for scenarios that need a real WebRTC client.
import { mkdtemp, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { launch, type Browser, type Page } from 'puppeteer-core';

const EXECUTABLE =
  ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync) ??
  '/usr/bin/chromium';

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
];

export interface TestBrowser {
  readonly browser: Browser;
  /** A fresh page whose console errors and exceptions are kept in `problems`. */
  newPage(options?: {
    width?: number;
    height?: number;
    isMobile?: boolean;
    deviceScaleFactor?: number;
  }): Promise<Page>;
  /** What pages complained about: a scenario ends by finding this empty. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

export interface BrowserOptions {
  /** A WAV file that Chromium hears as its microphone, once. */
  readonly microphoneWav?: string;
  /** false: the browser's own rule, which wants a gesture before there is sound. */
  readonly allowAutoplay?: boolean;
}

export async function startBrowser({
  microphoneWav,
  allowAutoplay = true,
}: BrowserOptions = {}): Promise<TestBrowser> {
  const profile = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-chromium-'));
  const browser = await launch({
    executablePath: EXECUTABLE,
    userDataDir: profile,
    env: { ...process.env, HOME: profile, DBUS_SESSION_BUS_ADDRESS: 'disabled:' },
    args: [
      ...FLAGS,
      ...(allowAutoplay ? ['--autoplay-policy=no-user-gesture-required'] : []),
      ...(microphoneWav
        ? [
            '--use-fake-device-for-media-stream',
            '--use-fake-ui-for-media-stream',
            `--use-file-for-fake-audio-capture=${microphoneWav}%noloop`,
          ]
        : []),
    ],
  });
  const problems: string[] = [];
  return {
    browser,
    problems,
    async newPage({ width = 1280, height = 900, isMobile = false, deviceScaleFactor = 1 } = {}) {
      const page = await browser.newPage();
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
    async close() {
      await browser.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}
