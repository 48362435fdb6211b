// What a person gives the demo page: audio files, a microphone, a portrait, a text to render.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import type { ElementHandle, Page } from 'puppeteer-core';
import sharp from 'sharp';
import { sleep } from '../../src/base/time.ts';
import { startBrowser, type TestBrowser } from '../harness/browser.ts';
import { inState, openDemo, screenshot, textBecomes, textOf } from '../harness/demo-page.ts';
import { freePorts } from '../harness/free-ports.ts';
import { accessProblems, focusOf, problemsAtEverySize } from '../harness/page-checks.ts';
import { createToken, ROOT, startServer, type TestServer } from '../harness/server.ts';
import { until } from '../harness/until.ts';
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
    await picker.uploadFile(path.join(ROOT, 'package.json'));
    await textBecomes(page, '#speak-status', /cannot read that file as audio/);
    assert.equal(await page.$eval('#player', (player: any) => player.dataset.state), 'none');
    await picker.uploadFile(MUSIC_RATE_WAV);
    await inState(page, 'speaking');
    await textBecomes(page, '#speak-status', /s of speech sent/);
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

/** The preview of a default face. */
const previewOf = async (face: string): Promise<Buffer> =>
  Buffer.from(
    await (
      await fetch(`${server.url}/faces/${face}/preview`, {
        headers: { 'x-service-api-key': server.apiKey },
      })
    ).arrayBuffer(),
  );

const DIALOG = '#portrait-dialog';

test('the client lists microphones and loudspeakers, and takes the ones that are chosen', async () => {
  const page = await browser.newPage();
  await page.goto(`${server.url}/auto/room/none`);
  const told = await page.evaluate(
    async (sessionToken) => {
      const address = '/client/index.js';
      const { connect, listDevices, openMicrophone } = await import(address);
      const { microphones, speakers } = await listDevices(true);
      const named = [...microphones, ...speakers].every(
        ({ id, label }) => id !== '' && label !== '',
      );
      const microphone = await openMicrophone();
      const video = document.body.appendChild(document.createElement('video'));
      const session = await connect({ sessionToken, microphone, video });
      const sent = () =>
        session.peer.getSenders().find((one: RTCRtpSender) => one.track?.kind === 'audio').track;
      const idOf = (track: MediaStreamTrack) => track.getSettings().deviceId;
      const refusal = (promise: Promise<void>): Promise<string> =>
        promise.then(
          () => '',
          (error: Error) => error.name,
        );
      const unknown = [
        await refusal(session.setMicrophone('nobody')),
        await refusal(session.setSpeaker('nobody')),
      ];
      const kept = sent() === microphone;
      const chosen: [string, string][] = [];
      const opened: MediaStreamTrack[] = [];
      for (const { id } of microphones.slice(-2)) {
        await session.setMicrophone(id);
        opened.push(sent());
        chosen.push([id, idOf(sent())!]);
      }
      await session.setSpeaker(speakers.at(-1).id);
      chosen.push([speakers.at(-1).id, video.sinkId]);
      const other = document.createElement('video');
      session.attach(other);
      await new Promise((resolve) => {
        setTimeout(resolve, 200);
      });
      chosen.push([speakers.at(-1).id, other.sinkId]);
      const before = opened.map(({ readyState }) => readyState);
      session.close();
      const states = [before, opened.map(({ readyState }) => readyState), microphone.readyState];
      return {
        counts: [microphones.length, speakers.length],
        named,
        unknown,
        kept,
        chosen,
        states,
      };
    },
    await createToken(server),
  );
  const { counts, chosen, ...rest } = told;
  assert.ok(
    counts.every((count) => count >= 2),
    `${counts.join(', ')} devices`,
  );
  for (const [wanted, got] of chosen) {
    assert.equal(got, wanted);
  }
  assert.deepEqual(rest, {
    named: true,
    unknown: ['OverconstrainedError', 'NotFoundError'],
    kept: true,
    // What it opened it stops: when another is chosen, and at the end. The page's own stays.
    states: [['ended', 'live'], ['ended', 'ended'], 'live'],
  });
  await page.close();
});

test('a portrait becomes a face and speaks; a picture without a face is refused in words', async () => {
  const portrait = path.join(OUT, 'portrait.jpg');
  const wall = path.join(OUT, 'wall.png');
  await writeFile(portrait, await previewOf('ava'));
  await sharp({ create: { width: 512, height: 512, channels: 3, background: '#9db' } })
    .png()
    .toFile(wall);
  const page = await openDemo(browser, server);
  const count = (await page.$$('.face[role=radio]')).length;
  const picker = (await page.$('#portrait')) as ElementHandle<any>;
  await page.focus('.face.add');
  await picker.uploadFile(path.join(ROOT, 'package.json'));
  await textBecomes(page, '#face-status', /cannot read that file as a picture/);
  await picker.uploadFile(wall);
  await page.waitForSelector(`${DIALOG}[open]`);
  await page.click(`${DIALOG} .create`);
  await page.waitForSelector(`${DIALOG} .status.bad`);
  await textBecomes(page, `${DIALOG} .status`, /face/);
  await picker.uploadFile(portrait);
  await page.waitForFunction(
    `document.querySelector('${DIALOG} [name=name]').value === 'portrait'`,
  );
  assert.deepEqual(await problemsAtEverySize(page, 'dialog'), []);
  await page.click(`${DIALOG} .create`);
  await textBecomes(page, '#face-status', /Ready after [\d.]+ s/, 40_000);
  assert.equal((await page.$$('.face[role=radio]')).length, count + 1);
  assert.equal(await textOf(page, '.face[aria-checked=true] .name'), 'portrait');
  await page.waitForFunction("document.activeElement.ariaLabel === 'portrait, your own'");
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

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Two fingers beside each other, `apartPx` from one to the other. */
const fingers = ({ x, y }: Point, apartPx: number): Point[] => [
  { x: x - apartPx / 2, y },
  { x: x + apartPx / 2, y },
];

/** Puts the fingers on the page, moves them to each of the places, and lifts them. */
async function touch(page: Page, places: readonly Point[][]): Promise<void> {
  const session = await page.createCDPSession();
  for (const [n, points] of places.entries()) {
    await session.send('Input.dispatchTouchEvent', {
      type: n === 0 ? 'touchStart' : 'touchMove',
      touchPoints: points.map((point, id) => ({ ...point, id })),
    });
  }
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  await session.detach();
}

test('a photo is cropped by keys, mouse and fingers: the face beside is left out', async () => {
  const two = path.join(OUT, 'two.jpg');
  await sharp({ create: { width: 1100, height: 512, channels: 3, background: '#9db' } })
    .composite([
      { input: await previewOf('ava'), left: 0, top: 0 },
      { input: await previewOf('noah'), left: 588, top: 0 },
    ])
    .jpeg()
    .toFile(two);
  const page = await openDemo(browser, server);
  const crop = `${DIALOG} canvas`;
  await ((await page.$('#portrait')) as ElementHandle<any>).uploadFile(two);
  await page.waitForSelector(`${DIALOG}[open]`);
  await textBecomes(page, `${DIALOG} .where`, /100 % of the width/);
  await page.select(`${DIALOG} [name=size]`, '1024x576');
  await textBecomes(page, `${DIALOG} .where`, /100 % of the width/);
  await page.select(`${DIALOG} [name=size]`, '512x512');
  await page.focus(crop);
  for (let n = 0; n < 20; n++) {
    await page.keyboard.press('+');
  }
  await textBecomes(page, `${DIALOG} .where`, /Shows [1-3]?\d % of the width/);
  await page.keyboard.press('0');
  await textBecomes(page, `${DIALOG} .where`, /100 % of the width, from 0 % of the left/);
  // The largest square inside the photo.
  await page.$eval(`${DIALOG} [name=zoom]`, (slider: any) => {
    slider.value = '0';
    slider.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await textBecomes(page, `${DIALOG} .where`, /47 % of the width, from 27 % of the left/);
  for (let n = 0; n < 20; n++) {
    await page.keyboard.press('ArrowLeft');
  }
  await textBecomes(page, `${DIALOG} .where`, /47 % of the width, from 0 % of the left/);
  const { x, y, width } = (await (await page.$(crop))!.boundingBox())!;
  await page.mouse.move(x + width / 2, y + 100);
  await page.mouse.down();
  await page.mouse.move(x + width / 2 - 1000, y + 100, { steps: 5 });
  await page.mouse.up();
  await textBecomes(page, `${DIALOG} .where`, /from 53 % of the left/);
  await page.mouse.move(x + width / 2, y + 100);
  await page.mouse.wheel({ deltaY: -100 });
  await textBecomes(page, `${DIALOG} .where`, /42 % of the width/);
  // Two fingers: apart, together, and side by side to the right.
  const middle = { x: x + width / 2, y: y + 100 };
  await touch(page, [fingers(middle, 60), fingers(middle, 90), fingers(middle, 120)]);
  await textBecomes(page, `${DIALOG} .where`, /21 % of the width/);
  await touch(page, [fingers(middle, 120), fingers(middle, 90), fingers(middle, 60)]);
  await textBecomes(page, `${DIALOG} .where`, /42 % of the width/);
  // Side by side, in one step that is longer than the photo: the zoom stays.
  const far = { ...middle, x: middle.x + 1000 };
  await touch(page, [fingers(middle, 60), fingers(far, 60)]);
  await textBecomes(page, `${DIALOG} .where`, /42 % of the width, from 0 % of the left/);
  await screenshot(page, path.join(OUT, 'page-crop.png'));
  await page.click(`${DIALOG} .create`);
  await textBecomes(page, '#face-status', /Ready after/, 40_000);
  assert.doesNotMatch(await textOf(page, '#face-status'), /other faces/);
  await page.close();
});

test('the face on the screen gets another background, and another size', async () => {
  const page = await openDemo(browser, server);
  await page.click('#connect');
  await inState(page, 'idle');
  await page.click('#change-picture');
  await page.waitForSelector(`${DIALOG}[open]`);
  await page.select(`${DIALOG} [name=background]`, 'green');
  await page.click(`${DIALOG} .create`);
  await textBecomes(page, '#face-status', /Ready after/, 40_000);
  await page.waitForFunction(
    `(() => {
      const context = new OffscreenCanvas(512, 512).getContext('2d');
      context.drawImage(document.querySelector('#video'), 0, 0, 512, 512);
      const [r, g, b] = context.getImageData(8, 8, 1, 1).data;
      return g > 140 && r < 60 && b < 110;
    })()`,
  );
  await textBecomes(page, '#integrate .snippets', /chroma-key/);
  const alphas = await keyedAlphas(page);
  assert.ok(alphas.corner < 8 && alphas.face === 255, JSON.stringify(alphas));
  assert.ok(alphas.green < 20, `${alphas.green} green pixels`);
  await page.click('#change-picture');
  await page.waitForSelector(`${DIALOG}[open]`);
  await page.select(`${DIALOG} [name=size]`, '576x1024');
  await page.click(`${DIALOG} .create`);
  await textBecomes(page, '#face-status', /Ready after/, 40_000);
  await textBecomes(page, '#m-picture', /576×1024/);
  await page.click('#disconnect');
  await page.close();
});

/**
 * In the element with `chroma-key`: the opacity, 0..255, of a corner and of the nose, and how many
 * pixels that are seen are green.
 */
async function keyedAlphas(page: Page): Promise<{ corner: number; face: number; green: number }> {
  const faceId = await page.$eval('.face[aria-checked=true]', (face) => (face as any).dataset.id);
  const token = await createToken(server, { faceId });
  return (await page.evaluate(`(async () => {
    await import('/client/element.js');
    const element = document.createElement('mouthpiece-avatar');
    element.setAttribute('chroma-key', '');
    element.setAttribute('token', '${token}');
    document.querySelector('#player').after(element);
    const canvas = element.shadowRoot.querySelector('canvas');
    const copy = new OffscreenCanvas(512, 512).getContext('2d', { willReadFrequently: true });
    const alphaOf = (x, y) => copy.getImageData(x, y, 1, 1).data[3];
    const video = element.shadowRoot.querySelector('video');
    for (;;) {
      // What WebGL drew is there until the frame is shown.
      await new Promise((resolve) => video.requestVideoFrameCallback(resolve));
      copy.clearRect(0, 0, 512, 512);
      copy.drawImage(canvas, 0, 0);
      if (alphaOf(256, 256) > 0) {
        break;
      }
    }
    const pixels = copy.getImageData(0, 0, 512, 512).data;
    let green = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const [r, g, b, alpha] = pixels.subarray(i, i + 4);
      green += alpha > 64 && g > Math.max(r, b) + 24 ? 1 : 0;
    }
    const told = { corner: alphaOf(8, 8), face: alphaOf(256, 256), green };
    element.remove();
    return told;
  })()`)) as { corner: number; face: number; green: number };
}

test('the code of the integrate panel has no key, and runs in an empty folder', async () => {
  const page = await openDemo(browser, server);
  await page.click('.face[data-id=ava]');
  await page.click('#integrate summary');
  await page.click('input[name=emotion][value=happy]');
  for (const language of ['javascript', 'react', 'python', 'curl', 'html']) {
    await page.click(`#integrate input[value=${language}]`);
    const code = await textOf(page, '#integrate .snippets');
    assert.ok(!code.includes(server.apiKey), language);
    assert.match(code, new RegExp(server.url), language);
    assert.match(code, /ava\/happy/, language);
  }
  const files = await page.$$eval('#integrate pre', (all) => all.map((pre) => pre.textContent));
  await page.close();

  const folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-integrate-'));
  await writeFile(path.join(folder, 'page.html'), files[0]!);
  await writeFile(path.join(folder, 'server.mjs'), files[1]!);
  const [port] = await freePorts(1);
  const own = spawn(process.execPath, ['server.mjs'], {
    cwd: folder,
    env: { PORT: String(port), MOUTHPIECE_KEY: server.apiKey },
    stdio: 'inherit',
  });
  try {
    await untilAnswers(`http://127.0.0.1:${port}/`);
    const visitor = await browser.newPage();
    await visitor.goto(`http://127.0.0.1:${port}/`);
    await visitor.waitForSelector('mouthpiece-avatar[state=idle]');
    await ((await visitor.$('input')) as ElementHandle<any>).uploadFile(MUSIC_RATE_WAV);
    await visitor.waitForSelector('mouthpiece-avatar[state=speaking]');
    await visitor.close();
  } finally {
    own.kill();
    await rm(folder, { recursive: true });
  }
});

const untilAnswers = (url: string): Promise<void> =>
  until(async () => {
    try {
      return (await fetch(url)).ok;
    } catch {
      return false;
    }
  }, 10_000);

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

test('no page complained, but of a video not ready yet and of figures of a session just over', () => {
  const problems = browser.problems.filter((one) => !/404 \(.*(static\/mp4|\/stats$)/.test(one));
  assert.deepEqual(problems, []);
});
