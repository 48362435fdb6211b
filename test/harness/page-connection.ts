/// <reference lib="dom" />
// An RTCPeerConnection inside a page of a real browser: offers, takes the answer, reports what it
// receives.
import type { Page } from 'puppeteer-core';

/**
 * The fields of Chromium's and Firefox's `inbound-rtp` report (W3C webrtc-stats) that tests read.
 */
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

/** State of the page's connection and data channel, and the reports of its streams. */
export interface PageStats {
  readonly state: string;
  readonly channel: string;
  readonly video: InboundStats | undefined;
  readonly audio: InboundStats | undefined;
}

/** What the page offers. */
export interface OfferOptions {
  readonly codec?: string;
  readonly microphone?: boolean;
  readonly dataChannel?: boolean;
  readonly withoutRtx?: boolean;
}

/** Makes the page create a connection and an offer. Its candidates are left out, as clients do. */
export const offerOf = (page: Page, options: OfferOptions): Promise<string> =>
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
  }, options);

/** Gives the page the server's answer. */
export const acceptAnswer = (page: Page, sdp: string): Promise<void> =>
  page.evaluate(async (answer) => {
    await (globalThis as unknown as { pc: RTCPeerConnection }).pc.setRemoteDescription({
      type: 'answer',
      sdp: answer,
    });
  }, sdp);

/** Reads the page's connection state and its `inbound-rtp` reports. */
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
