/// <reference lib="dom" />
// A headless browser with one page that can offer a connection and report what it receives.
import { existsSync } from 'node:fs';
import { launch, type Browser, type Page } from 'puppeteer-core';

export const CHROMIUM = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => existsSync(path));
export const FIREFOX = ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find((path) =>
  existsSync(path),
);

export interface InboundStats {
  readonly framesDecoded: number;
  readonly packetsReceived: number;
  readonly packetsLost: number;
  readonly estimatedPlayoutTimestamp?: number;
  readonly freezeCount?: number;
  readonly nackCount?: number;
  readonly pliCount?: number;
  readonly keyFramesDecoded?: number;
  readonly retransmittedPacketsReceived?: number;
  readonly totalAudioEnergy?: number;
  readonly totalSamplesReceived?: number;
  readonly concealedSamples?: number;
  readonly jitterBufferDelay: number;
  readonly jitterBufferEmittedCount: number;
  readonly decoderImplementation?: string;
  readonly frameWidth?: number;
}

export interface PageStats {
  readonly state: string;
  readonly channel: string;
  readonly video: InboundStats | undefined;
  readonly audio: InboundStats | undefined;
}

export interface OfferWish {
  readonly codec?: string;
  readonly microphone?: boolean;
  readonly dataChannel?: boolean;
  readonly withoutRtx?: boolean;
}

/* eslint-disable no-undef -- the functions below run in the page */
export async function openBrowser(): Promise<Browser> {
  if (CHROMIUM === undefined) {
    throw new Error('Chromium is not installed.');
  }
  return await launch({
    executablePath: CHROMIUM,
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--autoplay-policy=no-user-gesture-required',
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
    ],
  });
}

export async function openFirefox(): Promise<Browser> {
  if (FIREFOX === undefined) {
    throw new Error('Firefox is not installed.');
  }
  // Puppeteer's own preferences keep it from calling home; these add what it leaves out.
  return await launch({
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
}

export async function openPage(browser: Browser): Promise<Page> {
  const page = await browser.newPage();
  await page.goto('about:blank');
  return page;
}

/** The page's offer, with all its candidates left out as clients do. */
export const offerOf = (page: Page, wish: OfferWish): Promise<string> =>
  page.evaluate(async (wanted) => {
    const pc = new RTCPeerConnection();
    Object.assign(globalThis, { pc });
    const video = pc.addTransceiver('video', { direction: 'recvonly' });
    if (wanted.codec !== undefined) {
      const all = RTCRtpReceiver.getCapabilities('video')?.codecs ?? [];
      const wantedFirst = all.filter(({ mimeType }) => mimeType.toLowerCase() === wanted.codec);
      const rest = all.filter(
        ({ mimeType }) =>
          mimeType.toLowerCase() !== wanted.codec &&
          !(wanted.withoutRtx === true && mimeType === 'video/rtx'),
      );
      video.setCodecPreferences([...wantedFirst, ...rest]);
    }
    if (wanted.microphone === true) {
      const context = new AudioContext();
      const tone = context.createOscillator();
      const out = context.createMediaStreamDestination();
      tone.connect(out);
      tone.start();
      pc.addTransceiver(out.stream.getAudioTracks()[0] ?? 'audio', { direction: 'sendrecv' });
    } else {
      pc.addTransceiver('audio', { direction: 'recvonly' });
    }
    if (wanted.dataChannel === true) {
      Object.assign(globalThis, { channel: pc.createDataChannel('events') });
    }
    const element = document.createElement('video');
    element.autoplay = true;
    element.playsInline = true;
    document.body.append(element);
    pc.addEventListener('track', ({ streams }) => {
      element.srcObject = streams[0] ?? null;
    });
    await pc.setLocalDescription(await pc.createOffer());
    return pc.localDescription?.sdp ?? '';
  }, wish);

export const acceptAnswer = (page: Page, sdp: string): Promise<void> =>
  page.evaluate(async (answer) => {
    await (globalThis as unknown as { pc: RTCPeerConnection }).pc.setRemoteDescription({
      type: 'answer',
      sdp: answer,
    });
  }, sdp);

export const statsOf = (page: Page): Promise<PageStats> =>
  page.evaluate(async () => {
    const { pc, channel } = globalThis as unknown as {
      pc: RTCPeerConnection;
      channel?: RTCDataChannel;
    };
    const found: { state: string; channel: string; video: unknown; audio: unknown } = {
      state: pc.connectionState,
      channel: channel?.readyState ?? 'none',
      video: undefined,
      audio: undefined,
    };
    for (const [, report] of (await pc.getStats()) as unknown as Map<
      string,
      { type: string; kind: 'video' | 'audio' }
    >) {
      if (report.type === 'inbound-rtp') {
        found[report.kind] = report;
      }
    }
    return found;
  }) as Promise<PageStats>;
