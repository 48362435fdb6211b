// One real browser among the light peers: what Chromium itself decodes, conceals, freezes on and
// measures.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startBrowser } from '../test/harness/browser.ts';
import { type Impairment, ImpairedRelay, mediaAddress, rerouted } from './peers/impaired-relay.ts';
import type { Context, Target } from './scenario.ts';

export interface JudgeFigures {
  readonly framesDecoded: number;
  readonly framesDropped: number;
  readonly freezeCount: number;
  readonly totalFreezesDuration: number;
  /** The longest of its freezes; a freeze is counted once the next frame is shown. */
  readonly longestFreezeMs: number;
  readonly packetsLost: number;
  readonly nackCount: number;
  readonly pliCount: number;
  readonly jitterBufferMs: number;
  readonly bytesReceived: number;
  readonly concealedShare: number;
  readonly roundTripMs: number;
}

/** Runs inside the page. */
interface PageApi {
  open(url: string): Promise<string>;
  answer(sdp: string): Promise<number>;
  send(bytes: string): void;
  stats(): Promise<JudgeFigures>;
}

/** A page with one video element and judge-page.js, which defines `window.judge`. */
const PAGE =
  '<!doctype html><video id="v" autoplay playsinline muted></video>' +
  `<script>${readFileSync(path.join(import.meta.dirname, 'judge-page.js'), 'utf8')}</script>`;

export interface Judge {
  /** From opening the socket to the first frame on the screen, in ms. */
  readonly firstFrameMs: number;
  readonly relay: ImpairedRelay | undefined;
  speak(pcm: Int16Array): Promise<void>;
  stats(): Promise<JudgeFigures>;
  close(): Promise<void>;
}

/**
 * A browser's start makes a small machine stutter, and placement pauses for it: worth a second try.
 */
async function requestToken(target: Target, faceId: string): Promise<string> {
  for (let tries = 1; ; tries++) {
    const response = await fetch(`${target.url}/compose/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-api-key': target.apiKey },
      body: JSON.stringify({ faceId }),
    });
    const body = (await response.json()) as { session_token: string; detail?: string };
    if (response.ok) {
      return body.session_token;
    }
    if (tries === 20 || body.detail !== 'SERVER_OVERLOADED') {
      throw new Error(`token: ${response.status} ${JSON.stringify(body)}`);
    }
    await delay(500);
  }
}

/** @throws Error when Chromium is absent or the session does not come up */
export async function openJudge(
  context: Context,
  target: Target,
  faceId: string,
  impairment: Impairment | undefined,
): Promise<Judge> {
  const browser = await startBrowser();
  context.defer(() => browser.close());
  const page = await browser.newPage();
  // A page of the server's own origin would do as well, but it need not be there.
  await page.setContent(PAGE);
  const token = await requestToken(target, faceId);
  const url = `${target.url.replace(/^http/, 'ws')}/compose/webrtc/p2p?session_token=${token}`;
  const sdp = await page.evaluate(
    (socketUrl) => (window as unknown as { judge: PageApi }).judge.open(socketUrl),
    url,
  );
  const relay =
    impairment === undefined ? undefined : await ImpairedRelay.open(mediaAddress(sdp), impairment);
  if (relay !== undefined) {
    context.defer(() => {
      relay.close();
    });
  }
  const firstFrameMs = await page.evaluate(
    (answer) => (window as unknown as { judge: PageApi }).judge.answer(answer),
    relay === undefined ? sdp : rerouted(sdp, relay.port),
  );
  return {
    firstFrameMs,
    relay,
    speak: (pcm) =>
      page.evaluate(
        (base64) => {
          (window as unknown as { judge: PageApi }).judge.send(base64);
        },
        Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength).toString('base64'),
      ),
    stats: () => page.evaluate(() => (window as unknown as { judge: PageApi }).judge.stats()),
    close: async () => {
      await browser.close();
      relay?.close();
    },
  };
}
