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

const file = path.join(import.meta.dirname, '../../scripts/talk/detector.mjs');
const library = (await import(pathToFileURL(file).href)) as DetectorLibrary;
let isStopping = false;
/**
 * Runs of the model that have begun: 50 µs each, and longer on a busy machine. Each keeps its
 * detector and its samples from the garbage collector, also if its stream ends meanwhile.
 */
const runs = new Set<{ readonly vad: Vad; readonly pcm: Int16Array }>();

/** Ends the thread if it is to stop and the model does not run. */
function stopIfQuiet(): void {
  if (isStopping && runs.size === 0) {
    process.exit(0);
  }
}

async function predict(vad: Vad, pcm: Int16Array): Promise<number> {
  const run = { vad, pcm };
  runs.add(run);
  try {
    return await vad.predict(pcm);
  } finally {
    runs.delete(run);
    // The library's own work for this run ends first.
    after(0, 'the end of the detector', stopIfQuiet);
  }
}

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
      const answer: FromDetector = { stream, probability: await predict(vad, pcm) };
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
    stopIfQuiet();
  }),
);
