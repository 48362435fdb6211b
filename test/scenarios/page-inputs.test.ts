// What a person gives the demo page: audio files, a microphone, a portrait, a text to render.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import type { ElementHandle } from 'puppeteer-core';
import sharp from 'sharp';
import { sleep } from '../../src/base/time.ts';
import { startBrowser, type TestBrowser } from '../harness/browser.ts';
import { inState, openDemo, screenshot, textBecomes, textOf } from '../harness/demo-page.ts';
import { focusOf, accessProblems } from '../harness/page-checks.ts';
import { ROOT, startServer, type TestServer } from '../harness/server.ts';
import { concat, OUT, silence, synthesize, toWav } from '../harness/speech.ts';

const WAV = path.join(OUT, 'speech', 'page-microphone.wav');
const MUSIC_RATE_WAV = path.join(OUT, 'speech', 'page-44100.wav');

let server: TestServer;
let browser: TestBrowser;

beforeAll(async () => {
  const { pcm } = await synthesize('What I say, the face says.', 'rms');
  await writeFile(WAV, toWav(concat(silence(1500), pcm, silence(1500))));
  const samples = Int16Array.from(
    { length: pcm.length * 2.75625 },
    (_, i) => pcm[Math.floor(i / 2.75625)]!,
  ); // 16 kHz → 44.1 kHz, crudely
  await writeFile(MUSIC_RATE_WAV, toWav(samples, 44_100));
  [server, browser] = await Promise.all([
    startServer(),
    // A Chromium of its own: its microphone is a file, which only a command line flag can name.
    startBrowser({ microphoneWav: WAV }),
  ]);
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

test(
  'an audio file of another rate is picked and spoken; a file that is none is refused in ' +
    'words',
  async () => {
    const page = await openDemo(browser, server);
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
    const page = await openDemo(browser, server);
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
  const page = await openDemo(browser, server);
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
    'portrait, your own',
    'the list was drawn again',
  );
  await page.click('.sentence');
  await inState(page, 'speaking');
  await sleep(1500);
  await screenshot(page, path.join(OUT, 'page-portrait.png'));
  await page.click('#disconnect');
  assert.deepEqual(await accessProblems(page), []);
  await page.$eval('#own-name', (input) => {
    (input as unknown as { value: string }).value = 'Second name';
  });
  await page.click('#rename-face');
  await textBecomes(page, '#face-status', /called Second name/);
  assert.equal(await textOf(page, '.face[aria-checked=true] .name'), 'Second name');
  page.once('dialog', (dialog) => void dialog.accept());
  await page.click('#delete-face');
  await textBecomes(page, '#face-status', /deleted/);
  assert.equal((await page.$$('.face[role=radio]')).length, count);
  assert.equal(await page.$eval('#own-face', (row) => (row as any).hidden), true);
  await page.close();
});

test('a video file is rendered, and plays', async () => {
  const page = await openDemo(browser, server);
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

test('no page complained, but of a video that was not ready yet', () => {
  const problems = browser.problems.filter((one) => !/404 \(.*static\/mp4/.test(one));
  assert.deepEqual(problems, []);
});
