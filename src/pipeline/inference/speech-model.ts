// The speech-to-articulation model: one video frame of many sessions in one run of onnxruntime, without allocating per frame.
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { ARTICULATION_SIZE } from '../../media/articulation.ts';
import { FEATURES_PER_FRAME, MEL_BANDS } from '../../media/timeline.ts';
import { MANIFEST_URL, readModelFile, type ModelEntry } from './model-file.ts';

const MEL_SIZE = FEATURES_PER_FRAME * MEL_BANDS;

/** What one session gives to the model and gets from it. Make it with `SpeechModel.createSlot`. */
export class ModelState {
  /** FEATURES_PER_FRAME x MEL_BANDS, to be filled before each run (`MelFrontEnd.step`). */
  readonly mel = new Float32Array(MEL_SIZE);
  /** ARTICULATION_SIZE channels, 0..1, of the instant `lookaheadMs` before the end of the audio heard so far. */
  readonly articulation = new Float32Array(ARTICULATION_SIZE);
  /** What the model remembers of this stream. */
  readonly state: Float32Array;

  constructor(stateSize: number) {
    this.state = new Float32Array(stateSize);
  }

  /** The next run hears a new stream. Call together with `MelFrontEnd.reset`. */
  reset(): void {
    this.state.fill(0);
    this.articulation.fill(0);
  }
}

/** Tensors over the model's buffers for one batch size. */
interface Bound {
  readonly feeds: InferenceSession.FeedsType;
  readonly fetches: InferenceSession.FetchesType;
}

export interface SpeechModelOptions {
  /** Most slots in one run of the network; larger batches are cut into several. Default 64. */
  readonly maxBatch?: number;
  /** Threads of one run. Keep 1 on a pinned worker: a second one would spin on the same core (measured 1.6-2.9x slower). */
  readonly threads?: number;
  readonly manifestUrl?: URL;
}

export class SpeechModel {
  /** Floats that a stream's memory takes. */
  readonly stateSize: number;
  /** `articulation` after step k describes the audio at (k + 1) / 30 s minus this. */
  readonly lookaheadMs: number;

  readonly #session: InferenceSession;
  readonly #maxBatch: number;
  readonly #mel: Float32Array;
  readonly #state: Float32Array;
  readonly #articulation: Float32Array;
  readonly #stateOut: Float32Array;
  readonly #bound: (Bound | undefined)[] = [];

  private constructor(session: InferenceSession, entry: ModelEntry, maxBatch: number) {
    this.#session = session;
    this.#maxBatch = maxBatch;
    this.stateSize = entry.inputs['state']![1] as number;
    this.lookaheadMs = entry.lookaheadMs!;
    this.#mel = new Float32Array(maxBatch * MEL_SIZE);
    this.#state = new Float32Array(maxBatch * this.stateSize);
    this.#articulation = new Float32Array(maxBatch * ARTICULATION_SIZE);
    this.#stateOut = new Float32Array(maxBatch * this.stateSize);
  }

  /** Reads, checks and warms up the model. @throws Error in one sentence when the file or its shapes are not what this server needs. */
  static async load(options: SpeechModelOptions = {}): Promise<SpeechModel> {
    const { maxBatch = 64, threads = 1, manifestUrl = MANIFEST_URL } = options;
    const { entry, bytes } = await readModelFile('speech-articulation', manifestUrl);
    const isAsExpected =
      JSON.stringify(entry.inputs['mel']) ===
        JSON.stringify(['batch', FEATURES_PER_FRAME, MEL_BANDS]) &&
      typeof entry.inputs['state']?.[1] === 'number' &&
      entry.outputs['articulation']?.[1] === ARTICULATION_SIZE &&
      entry.lookaheadMs !== undefined;
    if (!isAsExpected) {
      throw new Error(
        `The model ${entry.file} does not take mel [batch, 3, 40] and state [batch, n] and give articulation [batch, ${ARTICULATION_SIZE}]: it belongs to another version of this server.`,
      );
    }
    const session = await InferenceSession.create(bytes, {
      executionProviders: ['cpu'],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
      logSeverityLevel: 3,
    });
    const model = new SpeechModel(session, entry, maxBatch);
    await model.run([model.createState()]); // the first run allocates
    return model;
  }

  createState(): ModelState {
    return new ModelState(this.stateSize);
  }

  /** One step for each slot: reads its `mel`, advances its `state`, writes its `articulation`. Slots must differ. One run at a time. */
  async run(slots: readonly ModelState[]): Promise<void> {
    for (let first = 0; first < slots.length; first += this.#maxBatch) {
      await this.#runBatch(slots, first, Math.min(this.#maxBatch, slots.length - first));
    }
  }

  /** Frees the network's memory. The model is of no use afterwards. */
  async close(): Promise<void> {
    await this.#session.release();
  }

  async #runBatch(slots: readonly ModelState[], first: number, count: number): Promise<void> {
    const { stateSize } = this;
    for (let i = 0; i < count; i++) {
      const slot = slots[first + i]!;
      this.#mel.set(slot.mel, i * MEL_SIZE);
      this.#state.set(slot.state, i * stateSize);
    }
    const { feeds, fetches } = (this.#bound[count] ??= this.#bind(count));
    await this.#session.run(feeds, fetches);
    for (let i = 0; i < count; i++) {
      const slot = slots[first + i]!;
      for (let c = 0; c < ARTICULATION_SIZE; c++) {
        slot.articulation[c] = this.#articulation[i * ARTICULATION_SIZE + c]!;
      }
      copyRow(this.#stateOut, i * stateSize, slot.state);
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
