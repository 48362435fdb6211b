// Opens the audio of a static video, whichever of the formats it came in.
import { openPcm } from './pcm.ts';
import { AudioError, limitDuration, type PcmStream } from './pcm-stream.ts';
import { openWav } from './wav.ts';

export interface AudioInput {
  readonly bytes: Uint8Array;
  readonly format: 'pcm16' | 'pcm32' | 'wav' | 'mp3' | 'ogg';
  /** Of pcm16 and pcm32; the other formats say it themselves. */
  readonly rate: number;
  readonly channels: number;
}

/** The sound, checked while it is read: its pieces may end in an AudioError as well. @throws AudioError */
export async function openAudio({ bytes, format, rate, channels }: AudioInput): Promise<PcmStream> {
  if (bytes.length === 0) {
    throw new AudioError('The audio is empty.');
  }
  const stream = await open();
  return { ...stream, pieces: limitDuration(stream) };

  // The WebAssembly decoders are loaded by threads that need them only.
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

/** Decodes all of it and keeps nothing. @returns its length in samples per channel, at `rate` a second @throws AudioError */
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
