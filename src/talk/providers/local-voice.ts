// The voice of flite, a Debian package: for development and tests. 30 to 70 ms a sentence.
import { spawn } from 'node:child_process';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { ProviderError } from '../provider-error.ts';

/** The longest text of one call: the rest is left out. */
const MAX_CHARS = 2000;
const WAV_HEADER_BYTES = 44;

/**
 * Speaks a clause.
 * @returns PCM16 at SPEECH_RATE
 * @throws ProviderError when flite is not installed or fails
 */
export async function fliteSpeech(
  voice: string,
  text: string,
  signal: AbortSignal,
): Promise<Int16Array> {
  const wav = await new Promise<Buffer>((resolve, reject) => {
    // flite seeks in its output, and a socket (what Node gives it as stdout) cannot: cat makes a pipe.
    const child = spawn(
      '/bin/sh',
      [
        '-c',
        'exec flite -voice "$1" -t "$2" -o /dev/stdout | cat',
        'sh',
        voice,
        text.slice(0, MAX_CHARS),
      ],
      { stdio: ['ignore', 'pipe', 'ignore'], signal },
    );
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.once('error', reject);
    child.once('close', () => {
      resolve(Buffer.concat(chunks));
    });
  });
  if (wav.length < WAV_HEADER_BYTES || wav.readUInt32LE(24) !== SPEECH_RATE) {
    throw new ProviderError(
      'unreachable',
      'The local voice failed. Install the Debian package flite, or configure another voice',
    );
  }
  const count = (wav.length - WAV_HEADER_BYTES) >> 1;
  const pcm = new Int16Array(count);
  for (let i = 0; i < count; i++) {
    pcm[i] = wav.readInt16LE(WAV_HEADER_BYTES + i * 2);
  }
  return pcm;
}
