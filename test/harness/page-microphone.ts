/// <reference lib="dom" />
// A microphone that a test speaks into, in place of the one that a page asks the browser for.
import type { Page } from 'puppeteer-core';
import { SPEECH_RATE } from '../../src/media/timeline.ts';

/** What `speakInto` leaves in the page. */
interface PageGlobals {
  sayIntoMicrophone: (base64: string, rate: number) => Promise<void>;
}

/**
 * Gives a page such a microphone, from its next navigation on.
 * @returns what says something into it: 16 kHz mono. Resolves when the last sample was said.
 */
export async function speakInto(page: Page): Promise<(pcm: Int16Array) => Promise<void>> {
  await page.evaluateOnNewDocument(() => {
    const context = new AudioContext();
    const microphone = context.createMediaStreamDestination();
    // Without any source a browser may send nothing at all instead of silence.
    const silence = new ConstantSourceNode(context, { offset: 0 });
    silence.connect(microphone);
    silence.start();
    // A page outside of a secure context has no devices.
    if (navigator.mediaDevices !== undefined) {
      navigator.mediaDevices.getUserMedia = () => Promise.resolve(microphone.stream.clone());
    }
    const globals: PageGlobals = {
      sayIntoMicrophone: async (base64, rate) => {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        const samples = Float32Array.from(
          new Int16Array(bytes.buffer),
          (sample) => sample / 2 ** 15,
        );
        const buffer = new AudioBuffer({ length: samples.length, sampleRate: rate });
        buffer.copyToChannel(samples, 0);
        const source = new AudioBufferSourceNode(context, { buffer });
        source.connect(microphone);
        await new Promise((resolve) => {
          source.addEventListener('ended', resolve);
          source.start();
        });
      },
    };
    Object.assign(globalThis, globals);
  });
  return (pcm) =>
    page.evaluate(
      (base64, rate) => (globalThis as unknown as PageGlobals).sayIntoMicrophone(base64, rate),
      Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength).toString('base64'),
      SPEECH_RATE,
    );
}
