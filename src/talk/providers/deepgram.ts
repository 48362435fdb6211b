// Deepgram's /v1/listen over a WebSocket: the microphone goes in all the time, words come back while
// they are spoken. https://developers.deepgram.com/reference/speech-to-text/listen-streaming
import type { RecogniserSpec } from '../../link/talk-messages.ts';
import { every } from '../../base/guard.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { ProviderError, toProviderError } from '../provider-error.ts';
import type { RecognitionEvent } from '../turn-types.ts';
import { ProviderSocket } from './socket.ts';

const WHO = 'The recogniser';
/** The service closes a socket that gets nothing for ten seconds. */
const KEEP_ALIVE_MS = 4000;
/** Longest wait for the words of an utterance that has ended. */
const ANSWER_MS = 4000;
/** How often it is looked whether an answer is due. */
const LOOK_MS = 250;
/** Pauses before another connection; the last one repeats. */
const RETRY_MS: readonly number[] = [100, 1000, 3000];
/** After failures for this long the conversation ends: nobody is left unheard. */
const LOST_MS = 12_000;
/** Speech without its final words that is kept for another connection. */
const MAX_KEPT_SAMPLES = 20 * SPEECH_RATE;

/** What the recogniser tells. */
export interface DeepgramListener {
  /** An utterance has its words. @param seconds since its end */
  onAnswer(seconds: number): void;
  /** A connection failed. @param isLost none worked for a while: the conversation cannot go on */
  onFault(error: ProviderError, isLost: boolean): void;
}

/** A connection at a time, for one conversation. */
export class DeepgramEar {
  readonly #spec: Extract<RecogniserSpec, { kind: 'deepgram' }>;
  readonly #language: string;
  readonly #listener: DeepgramListener;
  #socket: ProviderSocket | undefined = undefined;
  /** Samples that have no final words yet, and the place of the first within the connection. */
  #kept: Int16Array[] = [];
  #keptSamples = 0;
  #keptFrom = 0;
  #sentMs = 0;
  /** When the last message came. */
  #heardMs = 0;
  /** When the utterance ended whose words are awaited; 0: none. */
  #endedMs = 0;
  #isOver = false;

  constructor(
    spec: Extract<RecogniserSpec, { kind: 'deepgram' }>,
    language: string,
    listener: DeepgramListener,
  ) {
    this.#spec = spec;
    this.#language = language;
    this.#listener = listener;
  }

  /** Yields what is understood, until the signal aborts or the key is refused. */
  async *listen(
    pcm: AsyncIterable<Int16Array>,
    signal: AbortSignal,
  ): AsyncGenerator<RecognitionEvent> {
    const onAbort = (): void => {
      this.close();
    };
    signal.addEventListener('abort', onAbort);
    void this.#pump(pcm);
    try {
      let awayMs = 0;
      for (let failures = 0; !this.#isOver; failures++) {
        const startMs = monotonicMs();
        try {
          for await (const event of this.#connected()) {
            failures = 0;
            yield event;
          }
        } catch (error) {
          const failure = toProviderError(WHO, error);
          const nowMs = monotonicMs();
          // A connection that lasted did work: the person may have said nothing.
          if (failures === 0 || nowMs - startMs > LOST_MS) {
            failures = 0;
            awayMs = nowMs;
          }
          const isLost = nowMs - awayMs > LOST_MS;
          this.#listener.onFault(failure, isLost);
          if (isLost || failure.fault === 'unauthorised') {
            return;
          }
          await sleep(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]!);
        }
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.close();
    }
  }

  /** The utterance has ended: its words are wanted now, not after the service's own silence. */
  finalise(nowMs: number): void {
    this.#socket?.send({ type: 'Finalize' });
    this.#endedMs ||= nowMs;
  }

  /** Idempotent. */
  close(): void {
    this.#isOver = true;
    this.#socket?.send({ type: 'CloseStream' });
    this.#socket?.close();
    this.#socket = undefined;
  }

  async *#connected(): AsyncGenerator<RecognitionEvent> {
    const { baseUrl, apiKey } = this.#spec;
    const socket = await ProviderSocket.open({
      who: WHO,
      url: `${baseUrl}/v1/listen?${this.#query()}`,
      headers: { authorization: `Token ${apiKey}` },
    });
    if (this.#isOver) {
      socket.close();
      return;
    }
    this.#begin(socket);
    const watch = every(LOOK_MS, 'the recogniser', () => {
      this.#look(socket, monotonicMs());
    });
    try {
      for (;;) {
        const message = await socket.next(Infinity);
        if (message === undefined) {
          if (!this.#isOver) {
            throw new ProviderError('timeout', `${WHO} did not answer in time`);
          }
          return;
        }
        this.#heardMs = monotonicMs();
        const event = this.#read(message);
        if (event !== undefined) {
          yield event;
        }
      }
    } finally {
      clearInterval(watch);
      this.#socket = undefined;
      socket.close();
    }
  }

  #query(): string {
    return new URLSearchParams({
      model: this.#spec.model,
      language: this.#language,
      encoding: 'linear16',
      sample_rate: String(SPEECH_RATE),
      channels: '1',
      interim_results: 'true',
      smart_format: 'true',
      no_delay: 'true',
      endpointing: '300',
      utterance_end_ms: '1000',
      vad_events: 'true',
    }).toString();
  }

  /** Says again what the connection before has not understood to its end. */
  #begin(socket: ProviderSocket): void {
    this.#socket = socket;
    this.#keptFrom = 0;
    for (const pcm of this.#kept) {
      socket.sendPcm(pcm);
    }
    this.#sentMs = monotonicMs();
    if (this.#endedMs > 0) {
      this.#endedMs = this.#sentMs;
      socket.send({ type: 'Finalize' });
    }
  }

  async #pump(pcm: AsyncIterable<Int16Array>): Promise<void> {
    for await (const samples of pcm) {
      if (this.#isOver) {
        return;
      }
      this.#kept.push(samples);
      this.#keptSamples += samples.length;
      while (this.#keptSamples > MAX_KEPT_SAMPLES) {
        this.#forgetFirst();
      }
      this.#socket?.sendPcm(samples);
      this.#sentMs = monotonicMs();
    }
  }

  #look(socket: ProviderSocket, nowMs: number): void {
    // It may have had nothing to say; but then it says that.
    const isSilent = this.#endedMs > this.#heardMs && nowMs - this.#endedMs > ANSWER_MS;
    if (isSilent) {
      socket.close();
    } else if (nowMs - this.#sentMs > KEEP_ALIVE_MS) {
      this.#sentMs = nowMs;
      socket.send({ type: 'KeepAlive' });
    }
  }

  /** @throws ProviderError */
  #read(message: Record<string, unknown>): RecognitionEvent | undefined {
    const { type, is_final: isFinal, start, duration, channel } = message;
    if (type === 'Error') {
      throw new ProviderError('server_error', `${WHO} sent an error`);
    }
    if (type !== 'Results') {
      return undefined;
    }
    const { alternatives } = (channel ?? {}) as { alternatives?: { transcript?: unknown }[] };
    const text = alternatives?.[0]?.transcript;
    if (typeof text !== 'string' || typeof start !== 'number' || typeof duration !== 'number') {
      throw new ProviderError('malformed', `${WHO} sent something else than a transcript`);
    }
    if (isFinal === true) {
      this.#forget(Math.round((start + duration) * SPEECH_RATE));
      if (this.#endedMs > 0) {
        this.#listener.onAnswer((monotonicMs() - this.#endedMs) / 1000);
        this.#endedMs = 0;
      }
    }
    return text.trim() === ''
      ? undefined
      : { kind: isFinal === true ? 'final' : 'interim', text: text.trim() };
  }

  /** Forgets what lies before a sample of this connection. */
  #forget(before: number): void {
    while (this.#kept[0] !== undefined && this.#keptFrom + this.#kept[0].length <= before) {
      this.#forgetFirst();
    }
  }

  #forgetFirst(): void {
    const length = this.#kept.shift()?.length ?? 0;
    this.#keptSamples -= length;
    this.#keptFrom += length;
  }
}
