// Speech input: an audio file or the microphone, as 16 kHz mono PCM16.
// @ts-check

/** Hz. */
export const SPEECH_RATE = 16_000;

/**
 * Decodes any audio that this browser can play, to 16 kHz mono.
 * @param {ArrayBuffer} file
 * @returns {Promise<Int16Array>}
 * @throws {Error} with a message for the user when the file is not audio.
 */
export async function decodeSpeech(file) {
  let decoded;
  try {
    // decodeAudioData resamples to the rate of its context.
    decoded = await new OfflineAudioContext(1, 1, SPEECH_RATE).decodeAudioData(file);
  } catch {
    throw new Error(
      'This browser cannot read that file as audio. WAV, MP3, OGG and M4A usually work.',
    );
  }
  const channels = Array.from({ length: decoded.numberOfChannels }, (_, index) =>
    decoded.getChannelData(index),
  );
  const pcm = new Int16Array(decoded.length);
  for (let at = 0; at < pcm.length; at++) {
    let sum = 0;
    for (const channel of channels) {
      sum += channel[at] ?? 0;
    }
    pcm[at] = Math.round(Math.max(-1, Math.min(1, sum / channels.length)) * 32767);
  }
  return pcm;
}

/** An open microphone. After `start`, `onSpeech` gets blocks of 20 ms at 16 kHz until `stop`. */
export class Microphone {
  /** @type {AudioContext | null} */
  #context = null;
  /** @param {MediaStream} stream */
  constructor(stream) {
    this.stream = stream;
  }

  /** @throws {Error} with a message for the user when no microphone is available. */
  static async open() {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new Error(
        'Browsers allow the microphone on secure pages only. Open this page as ' +
          'http://localhost or over HTTPS.',
      );
    }
    try {
      return new Microphone(
        await navigator.mediaDevices.getUserMedia({
          audio: { echoCancellation: true, noiseSuppression: true, channelCount: 1 },
        }),
      );
    } catch (error) {
      const name = /** @type {DOMException} */ (error).name;
      if (name === 'NotAllowedError') {
        throw new Error(
          'The microphone is blocked for this page. Allow it in the address bar and try again.',
          { cause: error },
        );
      }
      if (name === 'NotFoundError') {
        throw new Error('No microphone was found. Plug one in and try again.', { cause: error });
      }
      throw new Error('The microphone could not be opened. Another program may be using it.', {
        cause: error,
      });
    }
  }

  /** @param {(pcm: Int16Array) => void} onSpeech */
  async start(onSpeech) {
    this.#context = new AudioContext();
    await this.#context.audioWorklet.addModule(new URL('microphone-worklet.js', import.meta.url));
    const node = new AudioWorkletNode(this.#context, 'speech-sender', { numberOfOutputs: 0 });
    node.port.onmessage = ({ data }) => onSpeech(data);
    this.#context.createMediaStreamSource(this.stream).connect(node);
  }

  stop() {
    for (const track of this.stream.getTracks()) {
      track.stop();
    }
    void this.#context?.close();
    this.#context = null;
  }
}
