// WAV files, for programs that have no decoder of a browser.

/** Sound of one channel. */
export interface WavSound {
  /** Hz */
  readonly rate: number;
  readonly samples: Int16Array<ArrayBuffer>;
}

const PCM = 1;
const EXTENSIBLE = 0xff_fe;

/** Reads PCM16; channels are mixed to one. @throws Error with a message for the user */
export function readWav(file: ArrayBuffer): WavSound {
  const view = new DataView(file);
  const isAt = (at: number, name: string): boolean =>
    String.fromCharCode(...new Uint8Array(file, at, name.length)) === name;
  if (file.byteLength < 12 || !isAt(0, 'RIFF') || !isAt(8, 'WAVE')) {
    throw new Error('This is no WAV file. Outside of browsers give WAV, or PCM16 as it comes.');
  }
  let format: { channels: number; rate: number } | undefined;
  for (let at = 12; at + 8 <= file.byteLength;) {
    // A file that was streamed has no true length: its data go on to its end.
    const length = Math.min(view.getUint32(at + 4, true), file.byteLength - at - 8);
    const start = at + 8;
    if (isAt(at, 'fmt ') && length >= 16) {
      const [kind, channels] = [view.getUint16(start, true), view.getUint16(start + 2, true)];
      if ((kind !== PCM && kind !== EXTENSIBLE) || view.getUint16(start + 14, true) !== 16) {
        throw new Error('Only WAV files of PCM with 16 bits a sample can be read.');
      }
      format = { channels: Math.max(1, channels), rate: view.getUint32(start + 4, true) };
    } else if (isAt(at, 'data') && format) {
      const { channels, rate } = format;
      const samples = new Int16Array(Math.floor(length / 2 / channels));
      for (let index = 0; index < samples.length; index++) {
        let sum = 0;
        for (let channel = 0; channel < channels; channel++) {
          sum += view.getInt16(start + (index * channels + channel) * 2, true);
        }
        samples[index] = Math.round(sum / channels);
      }
      return { rate, samples };
    }
    at = start + length + (length % 2);
  }
  throw new Error('The WAV file has no sound.');
}
