// The entry of the thread of the voice activity detector. It does nothing else: its library aborts the
// process when the thread ends during a run of the model, so this thread must never have to be ended.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { after, guarded } from '../base/guard.ts';
import type { FromDetector, ToDetector } from './detector-client.ts';

interface Vad {
  predict(pcm: Int16Array): Promise<number>;
}
interface DetectorLibrary {
  createVad(): Vad;
}

/** Runs of the model take 50 µs; those that have begun end well within this time. */
const QUIET_MS = 100;

const file = path.join(import.meta.dirname, '../../scripts/talk/detector.mjs');
const library = (await import(pathToFileURL(file).href)) as DetectorLibrary;
let isStopping = false;

/** Serves the streams of one thread of conversations. */
function serve(port: MessagePort): void {
  const streams = new Map<number, Vad>();
  port.on(
    'message',
    guarded('a window of speech', async ({ stream, pcm }: ToDetector) => {
      if (pcm === undefined) {
        streams.delete(stream);
        return;
      }
      if (isStopping) {
        return;
      }
      let vad = streams.get(stream);
      if (vad === undefined) {
        vad = library.createVad();
        streams.set(stream, vad);
      }
      const answer: FromDetector = { stream, probability: await vad.predict(pcm) };
      port.postMessage(answer);
    }),
  );
  port.once('close', () => {
    streams.clear();
  });
}

parentPort!.on(
  'message',
  guarded('a message of the front', (port: MessagePort | 'stop') => {
    if (port !== 'stop') {
      serve(port);
      return;
    }
    isStopping = true;
    after(QUIET_MS, 'the end of the detector', () => process.exit(0));
  }),
);
