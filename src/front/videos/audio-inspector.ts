// Inspects uploaded audio before it is queued: whether it can be decoded, and how long it is.
import { createJobPool, type JobPool, type NamedThread } from '../../jobs/job-pool.ts';
import { inspectAudio, type AudioInput } from '../../jobs/video/audio/open-audio.ts';
import { AudioError } from '../../jobs/video/audio/pcm-stream.ts';
import type { InspectResult } from '../../jobs/video/inspect-audio-task.ts';

/** Inspecting less than this takes less time than handing it to a thread. */
const INLINE_BYTES = 256 * 1024;
/** Less than a request may take. */
const INSPECT_DEADLINE_MS = 50_000;
/** Uploads that are inspected or wait for it: each holds up to 64 MiB. */
const MAX_INSPECTIONS = 8;

/** Inspects short audio at once, and other audio on a thread. */
export class AudioInspector {
  readonly #pool: JobPool;
  #inspections = 0;

  /** @param cpus where its thread may run; empty: anywhere */
  constructor(cpus: readonly number[]) {
    this.#pool = createJobPool('audio-job', 1, cpus);
  }

  /** The thread that inspects, while it runs. */
  get threads(): readonly NamedThread[] {
    return this.#pool.threads;
  }

  /** Whether audio of any format would be inspected now. */
  get isFull(): boolean {
    return this.#inspections >= MAX_INSPECTIONS;
  }

  /** Whether this audio is inspected at once, without a thread. */
  isInline({ bytes, format }: AudioInput): boolean {
    return bytes.length <= INLINE_BYTES && ['pcm16', 'pcm32', 'wav'].includes(format);
  }

  /** @throws AudioError, in words for whoever sent the audio, when it cannot be used */
  async inspect(input: AudioInput): Promise<{ samples: number; rate: number }> {
    if (this.isInline(input)) {
      return await inspectAudio(input);
    }
    this.#inspections++;
    try {
      const result = await this.#pool.run<InspectResult>('staticAudio', input, {
        timeoutMs: INSPECT_DEADLINE_MS,
      });
      if ('rejected' in result) {
        throw new AudioError(result.rejected);
      }
      return result;
    } catch (error) {
      throw (error as Error).name === 'AbortError'
        ? new AudioError('The audio took too long to decode. Send it as WAV or PCM.')
        : error;
    } finally {
      this.#inspections--;
    }
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}
