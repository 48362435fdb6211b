// Opens the audio of a static video in any supported format.
import { openPcm } from './pcm.ts';
import { AudioError, limitDuration, type PcmStream } from './pcm-stream.ts';
import { openWav } from './wav.ts';

/** Audio as a client sent it. */
export interface AudioInput {
  readonly bytes: Uint8Array;
  readonly format: 'pcm16' | 'pcm32' | 'wav' | 'mp3' | 'ogg';
  /** Hz, and number of channels, of pcm16 and pcm32. The other formats contain them. */
  readonly rate: number;
  readonly channels: number;
}

/**
 * Opens audio. It is checked while it is read, so its pieces may throw an AudioError as well.
 * @throws AudioError when the audio cannot be used
 */
export async function openAudio({ bytes, format, rate, channels }: AudioInput): Promise<PcmStream> {
  if (bytes.length === 0) {
    throw new AudioError('The audio is empty.');
  }
  const stream = await open();
  return { ...stream, pieces: limitDuration(stream) };

  // Load the WebAssembly decoders on first use.
  async function open(): Promise<PcmStream> {
    switch (format) {
      case 'pcm16':
        return openPcm(bytes, 's16', rate, channels);
      case 'pcm32':
        return openPcm(bytes, 's32', rate, channels);
      case 'wav':
        return openWav(bytes);
      case 'mp3':
        return await (await import('./mp3.ts')).openMp3(bytes);
      case 'ogg':
        return (await import('./ogg.ts')).openOgg(bytes);
      default:
        throw new TypeError(`no such audio format: ${String(format)}`);
    }
  }
}

/**
 * Decodes all of the audio to check it and to measure its length.
 * @returns the length in samples per channel, and their rate in Hz
 * @throws AudioError when the audio cannot be used
 */
export async function inspectAudio(
  input: AudioInput,
): Promise<{ readonly samples: number; readonly rate: number; readonly channels: 1 | 2 }> {
  const { rate, channels, pieces } = await openAudio(input);
  let samples = 0;
  for await (const piece of pieces) {
    samples += piece.length / channels;
  }
  if (samples === 0) {
    throw new AudioError('The audio holds no sound: not a single sample.');
  }
  return { samples, rate, channels };
}
