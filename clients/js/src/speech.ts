// Speech from many kinds of sources, in pieces as they are sent.
import { Resampler, SPEECH_RATE } from './resample.ts';
import { readWav } from './wav.ts';

/** Bytes of speech in one message: 187.5 ms. */
export const CHUNK_BYTES = 6000;

/** Bytes, or samples: 16-bit, or floats between -1 and 1. */
export type SpeechChunk = ArrayBuffer | Uint8Array | Int16Array | Float32Array;

/**
 * What a face can speak:
 * - mono PCM16, of 16 kHz unless `rate` says otherwise: a chunk, an iterable or a stream of chunks.
 * - a Blob or a Response: a file that the browser can decode (WAV, MP3, Ogg, M4A; outside of
 *   browsers WAV), or a body of raw PCM16, which is sent while it arrives (content type audio/pcm,
 *   audio/l16 or application/octet-stream).
 * - a MediaStream: its sound, until it ends.
 */
export type SpeechSource =
  | SpeechChunk
  | Iterable<SpeechChunk>
  | AsyncIterable<SpeechChunk>
  | ReadableStream<SpeechChunk>
  | Blob
  | Response
  | MediaStream;

const RAW_TYPES = /^(?:audio\/(?:pcm|l16|raw)|application\/octet-stream)/i;

/** A chunk as bytes of PCM16. */
function bytesOf(chunk: SpeechChunk): Uint8Array<ArrayBuffer> {
  if (chunk instanceof Float32Array) {
    return bytesOf(
      Int16Array.from(chunk, (value) => Math.round(Math.max(-1, Math.min(1, value)) * 32_767)),
    );
  }
  if (chunk instanceof ArrayBuffer) {
    return new Uint8Array(chunk);
  }
  return new Uint8Array(chunk.buffer as ArrayBuffer, chunk.byteOffset, chunk.byteLength);
}

const isChunk = (source: unknown): source is SpeechChunk =>
  source instanceof ArrayBuffer || ArrayBuffer.isView(source);

/** The chunks of a stream. Safari cannot iterate one. */
async function* chunksOf<Chunk>(stream: ReadableStream<Chunk>): AsyncGenerator<Chunk> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/**
 * Decodes any audio that this browser can play, to 16 kHz mono.
 * @throws Error with a message for the user when it is not audio
 */
export async function decodeSpeech(file: ArrayBuffer): Promise<Int16Array<ArrayBuffer>> {
  if (typeof OfflineAudioContext === 'undefined') {
    const { rate, samples } = readWav(file);
    return resampled(samples, rate);
  }
  let decoded: AudioBuffer;
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
  const mono = new Float32Array(decoded.length);
  for (const channel of channels) {
    for (let at = 0; at < mono.length; at++) {
      mono[at] = mono[at]! + channel[at]! / channels.length;
    }
  }
  return new Int16Array(bytesOf(mono).buffer);
}

/** The sound of a MediaStream in blocks of 20 ms, until its tracks end or the signal aborts. */
async function* listen(
  stream: MediaStream,
  signal: AbortSignal,
): AsyncGenerator<Int16Array<ArrayBuffer>> {
  const context = new AudioContext();
  const waiting: Int16Array<ArrayBuffer>[] = [];
  let wake = (): void => {};
  let isOver = signal.aborted;
  const finish = (): void => {
    isOver = true;
    wake();
  };
  try {
    await context.audioWorklet.addModule(new URL('./speech-worklet.js', import.meta.url));
    const node = new AudioWorkletNode(context, 'speech-sender', { numberOfOutputs: 0 });
    node.port.onmessage = ({ data }: MessageEvent<Int16Array<ArrayBuffer>>) => {
      waiting.push(data);
      wake();
    };
    context.createMediaStreamSource(stream).connect(node);
    void context.resume();
    signal.addEventListener('abort', finish);
    for (const track of stream.getAudioTracks()) {
      track.addEventListener('ended', finish);
    }
    while (!isOver) {
      yield* waiting.splice(0);
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (isOver || waiting.length > 0) {
          resolve();
        }
      });
    }
    yield* waiting.splice(0);
  } finally {
    void context.close();
  }
}

/** All of a sound at 16 kHz. */
function resampled(samples: Int16Array<ArrayBuffer>, rate: number): Int16Array<ArrayBuffer> {
  const resampler = new Resampler(rate);
  const [most, rest] = [resampler.push(bytesOf(samples)), resampler.flush()];
  const all = new Int16Array(most.length + rest.length);
  all.set(most);
  all.set(rest, most.length);
  return all;
}

/** A stream of another rate at 16 kHz. */
async function* resampledChunks(
  chunks: AsyncIterable<SpeechChunk> | Iterable<SpeechChunk>,
  rate: number,
): AsyncGenerator<SpeechChunk> {
  if (rate === SPEECH_RATE) {
    yield* chunks;
    return;
  }
  const resampler = new Resampler(rate);
  for await (const chunk of chunks) {
    yield resampler.push(bytesOf(chunk));
  }
  yield resampler.flush();
}

const isMediaStream = (source: unknown): source is MediaStream =>
  typeof MediaStream !== 'undefined' && source instanceof MediaStream;

/**
 * Any source as chunks of 16 kHz.
 * @param signal ends a MediaStream
 * @param rate of PCM, Hz; undefined: what a content type says, or 16 kHz
 */
export async function* speechChunks(
  source: SpeechSource,
  signal: AbortSignal,
  rate?: number,
): AsyncGenerator<SpeechChunk> {
  if (isMediaStream(source)) {
    yield* listen(source, signal);
  } else if (source instanceof Response || source instanceof Blob) {
    yield* fetched(source, rate);
  } else if (isChunk(source)) {
    yield* resampledChunks([source], rate ?? SPEECH_RATE);
  } else if (source instanceof ReadableStream) {
    yield* resampledChunks(chunksOf(source), rate ?? SPEECH_RATE);
  } else {
    yield* resampledChunks(source, rate ?? SPEECH_RATE);
  }
}

/** @throws Error when it could not be fetched, or is no audio */
async function* fetched(
  source: Blob | Response,
  rate: number | undefined,
): AsyncGenerator<SpeechChunk> {
  const type = source instanceof Blob ? source.type : (source.headers.get('content-type') ?? '');
  if (source instanceof Response && !source.ok) {
    throw new Error(`The speech could not be fetched: HTTP status ${source.status}.`);
  }
  const body = source instanceof Blob ? source.stream() : source.body;
  if (RAW_TYPES.test(type) && body !== null) {
    const told = /;\s*rate=(\d+)/i.exec(type)?.[1];
    yield* resampledChunks(chunksOf(body), rate ?? (told ? Number(told) : SPEECH_RATE));
  } else {
    yield await decodeSpeech(await source.arrayBuffer());
  }
}

/** The messages of a chunk: whole packets of Opus, or pieces of PCM16. */
export function* messagesOf(
  chunk: SpeechChunk,
  isPacket: boolean,
): Generator<Uint8Array<ArrayBuffer>> {
  const bytes = bytesOf(chunk);
  if (isPacket) {
    yield bytes;
    return;
  }
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    yield bytes.subarray(at, at + CHUNK_BYTES);
  }
}
