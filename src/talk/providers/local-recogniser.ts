// The recogniser of pocketsphinx, a Debian package: for development and tests. English only; it
// misses 7 to 11 % of the words of flite's voices and 37 % of people's (measured).
import { type ChildProcess, spawn } from 'node:child_process';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { ProviderError } from '../provider-error.ts';

/** Silence after the utterance, so that pocketsphinx sees its end. */
const TAIL_SAMPLES = SPEECH_RATE / 2;

/**
 * Recognises one utterance after another. The process of the next one is started ahead: it takes
 * half a second to load its dictionary.
 */
export class LocalRecogniser {
  #next: ChildProcess | undefined = undefined;

  /** Starts the process of the next utterance. */
  prepare(): void {
    if (this.#next !== undefined) {
      return;
    }
    // pocketsphinx opens its input by name, and a socket (what Node gives it as stdin) has none: cat
    // makes a pipe.
    const child = spawn(
      '/bin/sh',
      ['-c', 'cat | pocketsphinx_continuous -infile /dev/stdin -logfn /dev/null'],
      { stdio: ['pipe', 'pipe', 'ignore'], detached: true },
    );
    child.on('error', () => {});
    child.stdin?.on('error', () => {});
    this.#next = child;
  }

  /** @throws ProviderError when pocketsphinx is not installed */
  async transcribe(pcm: Int16Array, signal: AbortSignal): Promise<string> {
    this.prepare();
    const child = this.#next!;
    this.#next = undefined;
    const onAbort = () => {
      kill(child);
    };
    signal.addEventListener('abort', onAbort);
    try {
      return await new Promise<string>((resolve, reject) => {
        let text = '';
        child.once('error', reject);
        child.stdout!.on('data', (chunk: Buffer) => {
          text += chunk.toString('utf8');
        });
        child.once('close', (code) => {
          if (code !== 0 && !signal.aborted) {
            reject(new Error(`it ended with ${code}`));
          } else {
            resolve(text.trim().replaceAll(/\s+/g, ' '));
          }
        });
        child.stdin!.write(Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength));
        child.stdin!.end(Buffer.alloc(TAIL_SAMPLES * 2));
      });
    } catch {
      throw new ProviderError(
        'unreachable',
        'The local recogniser failed. Install the Debian packages pocketsphinx and ' +
          'pocketsphinx-en-us, or configure another recogniser',
      );
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Ends the process that waits. */
  close(): void {
    kill(this.#next);
    this.#next = undefined;
  }
}

/** Ends a process and its pipe. */
function kill(child: ChildProcess | undefined): void {
  if (child?.pid !== undefined) {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
}
