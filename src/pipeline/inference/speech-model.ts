// The speech-to-articulation model: one run of onnxruntime makes one step for many sessions.
// Allocates nothing per step.
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { NativeRuns } from '../../base/native-runs.ts';
import { ARTICULATION_SIZE } from '../../media/articulation.ts';
import { FEATURES_PER_FRAME, MEL_BANDS } from '../../media/timeline.ts';
import { MANIFEST_URL, readModelFile, type ModelEntry } from './model-file.ts';

const MEL_SIZE = FEATURES_PER_FRAME * MEL_BANDS;

/** One session's input, output and state of the model. Made by `SpeechModel.createState`. */
export class ModelState {
  /** FEATURES_PER_FRAME x MEL_BANDS. Fill before each run (`MelFrontEnd.step`). */
  readonly mel = new Float32Array(MEL_SIZE);
  /**
   * ARTICULATION_SIZE channels, 0 to 1, of the instant `lookaheadMs` before the end of the speech
   * so far.
   */
  readonly articulation = new Float32Array(ARTICULATION_SIZE);
  /** The recurrent state of this stream. */
  readonly state: Float32Array;

  constructor(stateSize: number) {
    this.state = new Float32Array(stateSize);
  }

  /** A new stream begins. Call together with `MelFrontEnd.reset`. */
  reset(): void {
    this.state.fill(0);
    this.articulation.fill(0);
  }
}

/** Tensors for one batch size, over the model's buffers. */
interface Bound {
  readonly feeds: InferenceSession.FeedsType;
  readonly fetches: InferenceSession.FetchesType;
}

/** All have defaults. */
export interface SpeechModelOptions {
  /** Most sessions in one run of onnxruntime; a larger batch takes several. Default 64. */
  readonly maxBatch?: number;
  /**
   * Threads of one run. Keep 1 on a pinned worker: a second one spins on the same core (measured:
   * 1.6 to 2.9 times slower).
   */
  readonly threads?: number;
  readonly manifestUrl?: URL;
  /** For a thread that may be terminated. */
  readonly runs?: NativeRuns;
}

/** One per thread. */
export class SpeechModel {
  /** Values of a session's recurrent state. */
  readonly stateSize: number;
  /** `articulation` after step k is that of the speech at (k + 1) / 30 s minus this. */
  readonly lookaheadMs: number;

  readonly #session: InferenceSession;
  readonly #runs: NativeRuns | undefined;
  readonly #maxBatch: number;
  readonly #mel: Float32Array;
  readonly #state: Float32Array;
  readonly #articulation: Float32Array;
  readonly #stateOut: Float32Array;
  readonly #bound: (Bound | undefined)[] = [];

  private constructor(
    session: InferenceSession,
    entry: ModelEntry,
    maxBatch: number,
    runs: NativeRuns | undefined,
  ) {
    this.#session = session;
    this.#runs = runs;
    this.#maxBatch = maxBatch;
    this.stateSize = entry.inputs['state']![1] as number;
    this.lookaheadMs = entry.lookaheadMs!;
    this.#mel = new Float32Array(maxBatch * MEL_SIZE);
    this.#state = new Float32Array(maxBatch * this.stateSize);
    this.#articulation = new Float32Array(maxBatch * ARTICULATION_SIZE);
    this.#stateOut = new Float32Array(maxBatch * this.stateSize);
  }

  /**
   * Reads, checks and warms up the model.
   * @throws Error when the file or its shapes are not what this server needs
   */
  static async load(options: SpeechModelOptions = {}): Promise<SpeechModel> {
    const { maxBatch = 64, threads = 1, manifestUrl = MANIFEST_URL, runs } = options;
    const { entry, bytes } = await readModelFile('speech-articulation', manifestUrl);
    const isAsExpected =
      JSON.stringify(entry.inputs['mel']) ===
        JSON.stringify(['batch', FEATURES_PER_FRAME, MEL_BANDS]) &&
      typeof entry.inputs['state']?.[1] === 'number' &&
      entry.outputs['articulation']?.[1] === ARTICULATION_SIZE &&
      entry.lookaheadMs !== undefined;
    if (!isAsExpected) {
      throw new Error(
        `The model ${entry.file} does not take mel [batch, 3, 40] and state [batch, n] and give ` +
          `articulation [batch, ${ARTICULATION_SIZE}]: it belongs to another version of this ` +
          'server.',
      );
    }
    runs?.begin();
    const session = await InferenceSession.create(bytes, {
      executionProviders: ['cpu'],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
      logSeverityLevel: 3,
    }).finally(() => {
      runs?.end();
    });
    const model = new SpeechModel(session, entry, maxBatch, runs);
    await model.run([model.createState()]); // the first run allocates
    return model;
  }

  /** State for a new session. */
  createState(): ModelState {
    return new ModelState(this.stateSize);
  }

  /**
   * One step of each of the first `count` sessions: reads `mel`, advances `state`, writes
   * `articulation`. No session may occur twice. One run at a time.
   */
  run(sessions: readonly ModelState[], count = sessions.length): Promise<void> {
    return count <= this.#maxBatch
      ? this.#runBatch(sessions, 0, count)
      : this.#runBatches(sessions, count);
  }

  async #runBatches(sessions: readonly ModelState[], count: number): Promise<void> {
    for (let first = 0; first < count; first += this.#maxBatch) {
      await this.#runBatch(sessions, first, Math.min(this.#maxBatch, count - first));
    }
  }

  /** Frees the model. It must not be used afterwards. */
  async close(): Promise<void> {
    await this.#session.release();
  }

  async #runBatch(sessions: readonly ModelState[], first: number, count: number): Promise<void> {
    const { stateSize } = this;
    for (let i = 0; i < count; i++) {
      const session = sessions[first + i]!;
      this.#mel.set(session.mel, i * MEL_SIZE);
      this.#state.set(session.state, i * stateSize);
    }
    const { feeds, fetches } = (this.#bound[count] ??= this.#bind(count));
    this.#runs?.begin();
    try {
      await this.#session.run(feeds, fetches);
    } finally {
      this.#runs?.end();
    }
    for (let i = 0; i < count; i++) {
      const session = sessions[first + i]!;
      for (let c = 0; c < ARTICULATION_SIZE; c++) {
        session.articulation[c] = this.#articulation[i * ARTICULATION_SIZE + c]!;
      }
      copyRow(this.#stateOut, i * stateSize, session.state);
    }
  }

  #bind(count: number): Bound {
    const { stateSize } = this;
    return {
      feeds: {
        mel: new Tensor('float32', this.#mel.subarray(0, count * MEL_SIZE), [
          count,
          FEATURES_PER_FRAME,
          MEL_BANDS,
        ]),
        state: new Tensor('float32', this.#state.subarray(0, count * stateSize), [
          count,
          stateSize,
        ]),
      },
      fetches: {
        articulation: new Tensor(
          'float32',
          this.#articulation.subarray(0, count * ARTICULATION_SIZE),
          [count, ARTICULATION_SIZE],
        ),
        state_out: new Tensor('float32', this.#stateOut.subarray(0, count * stateSize), [
          count,
          stateSize,
        ]),
      },
    };
  }
}

function copyRow(from: Float32Array, offset: number, to: Float32Array): void {
  to.set(from.subarray(offset, offset + to.length));
}
