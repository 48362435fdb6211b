// Drives the in-browser recorder (probe.js) from a scenario and gives back typed recordings.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Page } from 'puppeteer-core';
import {
  type Impairment,
  ImpairedRelay,
  mediaAddress,
  rerouted,
} from '../../bench/peers/impaired-relay.ts';
import { ROOT, type TestServer, firstFace } from './server.ts';
import type { TestBrowser } from './browser.ts';

const require = createRequire(import.meta.url);
const LIVEKIT_CLIENT = readFileSync(require.resolve('livekit-client'), 'utf8');

export interface ProbeEvent {
  readonly name: string;
  readonly detail: any;
  readonly atMs: number;
}

/** One decoded frame that was shown. Times are the page's `performance.now()`. */
export interface ShownFrame {
  readonly shownMs: number;
  readonly calledMs: number;
  /** When the sender captured it, by its sender reports; undefined before the first. */
  readonly captureMs: number | undefined;
  readonly receiveMs: number | undefined;
  readonly rtp: number | undefined;
  /**
   * Counts all frames handed to the compositor: a step of more than one is a frame that was never
   * looked at.
   */
  readonly presented: number;
  readonly width: number;
  readonly height: number;
  /** `size` x `size` luma. */
  readonly luma: Uint8Array;
}

export interface Recording {
  readonly size: number;
  readonly frames: readonly ShownFrame[];
  /** 16 kHz mono, gapless; sample n is heard at `soundStartMs + n / 16`. */
  readonly sound: Int16Array;
  readonly soundStartMs: number;
  readonly events: readonly ProbeEvent[];
  readonly nowMs: number;
}

export const framesBetween = (
  { frames }: Recording,
  fromMs: number,
  toMs: number,
): readonly ShownFrame[] => frames.filter(({ shownMs }) => shownMs >= fromMs && shownMs < toMs);

/**
 * Whether the browser's jitter buffer left the sound alone between two reports (`Probe.stats`), by
 * its own count. On a machine that stutters it holds sound back and stretches it, and what is then
 * presented does not measure the server: record again.
 */
export function isSoundSteady({ audio: before }: any, { audio: afterwards }: any): boolean {
  const altered = (audio: any): number =>
    audio.insertedSamplesForDeceleration +
    audio.removedSamplesForAcceleration +
    audio.concealedSamples -
    audio.silentConcealedSamples;
  const change = (of: (audio: any) => number): number => of(afterwards) - of(before);
  const heldMs =
    (1000 * change((audio) => audio.jitterBufferDelay)) /
    change((audio) => audio.jitterBufferEmittedCount);
  return heldMs < 70 && change(altered) < 0.01 * change((audio) => audio.totalSamplesReceived);
}

export interface ConnectOptions {
  readonly token?: string;
  readonly codec?: 'vp8' | 'h264';
  readonly withMicrophone?: boolean;
  readonly tokenOptions?: Readonly<Record<string, unknown>>;
}

export class Probe {
  readonly page: Page;
  readonly #server: Pick<TestServer, 'url' | 'apiKey'>;

  private constructor(page: Page, server: Pick<TestServer, 'url' | 'apiKey'>) {
    this.page = page;
    this.#server = server;
  }

  static async open(
    browser: TestBrowser,
    server: Pick<TestServer, 'url' | 'apiKey'>,
  ): Promise<Probe> {
    const page = await browser.newPage({ width: 640, height: 640 });
    await page.setBypassCSP(true);
    await page.goto(`${server.url}/healthz`); // a page of the server's own origin without anything on it
    await page.evaluate(await readFile(path.join(ROOT, 'test/harness/probe.js'), 'utf8'));
    return new Probe(page, server);
  }

  /** Records the video of a page of the service. The page must have been opened past its CSP. */
  static async attach(
    page: Page,
    server: Pick<TestServer, 'url' | 'apiKey'>,
    selector: string,
  ): Promise<Probe> {
    await page.evaluate(await readFile(path.join(ROOT, 'test/harness/probe.js'), 'utf8'));
    await page.evaluate(`probe.attach(document.querySelector(${JSON.stringify(selector)}))`);
    return new Probe(page, server);
  }

  /**
   * Puts a network between the page and the server's media, before it connects; what it does to
   * datagrams can be set on the relay at any time.
   */
  async throughRelay(impairment: Impairment): Promise<() => ImpairedRelay> {
    let relay: ImpairedRelay | undefined;
    await this.page.exposeFunction('reroute', async (sdp: string) => {
      relay = await ImpairedRelay.open(mediaAddress(sdp), impairment);
      return rerouted(sdp, relay.port);
    });
    await this.page.evaluate(`{
      const { setRemoteDescription } = RTCPeerConnection.prototype;
      RTCPeerConnection.prototype.setRemoteDescription = async function ({ type, sdp }) {
        return setRemoteDescription.call(this, { type, sdp: await reroute(sdp) });
      };
    }`);
    return () => relay!;
  }

  /** Makes a token unless one is given, connects, and resolves at the first rendered frame. */
  async connect({ tokenOptions = {}, ...options }: ConnectOptions = {}): Promise<{
    connectMs: number;
  }> {
    const faceId = tokenOptions['faceId'] ?? (await firstFace(this.#server));
    return await this.#run('connect', {
      url: this.#server.url,
      createToken: { apiKey: this.#server.apiKey, ...tokenOptions, faceId },
      ...options,
    });
  }

  /**
   * Joins a LiveKit room with livekit-client, and resolves at the first rendered frame.
   * @param options of livekit-client's Room
   */
  async joinRoom(
    url: string,
    token: string,
    options: Readonly<Record<string, unknown>> = {},
  ): Promise<{ joinMs: number; firstFrameMs: number }> {
    await this.page.evaluate(`typeof LivekitClient === 'undefined' && ${LIVEKIT_CLIENT}`);
    return await this.#run('joinRoom', { url, token, options });
  }

  leaveRoom(): Promise<void> {
    return this.#run('leaveRoom');
  }

  /** @returns when it was sent, on the page's clock. */
  send(pcm: Int16Array, how: 'speak' | 'playImmediate' = 'speak'): Promise<number> {
    return this.#run(
      'send',
      Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength).toString('base64'),
      how,
    );
  }

  command(name: 'skip' | 'done' | 'ping' | 'close'): Promise<number> {
    return this.#run('command', name);
  }
  waitFor(name: string, sinceMs = 0, limitMs = 20_000): Promise<ProbeEvent> {
    return this.#run('waitFor', name, sinceMs, limitMs);
  }
  stats(): Promise<any> {
    return this.#run('stats');
  }
  /** What the latest audio packet tells of its level: 0 to 1; null: nothing. */
  level(): Promise<number | null> {
    return this.#run('level');
  }
  now(): Promise<number> {
    return this.page.evaluate('performance.now()') as Promise<number>;
  }

  /** What was recorded since the last call. */
  async take(): Promise<Recording> {
    const raw = await this.#run<any>('take');
    const luma = Buffer.from(raw.luma, 'base64');
    const area = raw.size * raw.size;
    const bytes = Buffer.from(raw.samples, 'base64');
    const sound = new Int16Array(
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length),
    );
    return {
      size: raw.size,
      frames: raw.frames.map((frame: Omit<ShownFrame, 'luma'>, index: number) => ({
        ...frame,
        luma: luma.subarray(index * area, (index + 1) * area),
      })),
      sound,
      soundStartMs: soundStart(raw.pieces),
      events: raw.events,
      nowMs: raw.nowMs,
    };
  }

  #run<T>(method: string, ...args: unknown[]): Promise<T> {
    return this.page.evaluate(`probe.${method}(...${JSON.stringify(args)})`) as Promise<T>;
  }
}

/**
 * Pieces of 10 ms are told of some milliseconds after the mixer pulled them, never before: the
 * least lag behind an even clock is the true one. @returns when the first sample was pulled.
 */
function soundStart(pieces: readonly { atMs: number; length: number }[]): number {
  let samples = 0;
  const starts = pieces.map(({ atMs, length }) => {
    samples += length;
    return atMs - samples / 16;
  });
  // The tenth percentile instead of the least, so that one odd clock reading does not decide.
  return starts.sort((a, b) => a - b)[Math.floor(starts.length / 10)] ?? 0;
}
