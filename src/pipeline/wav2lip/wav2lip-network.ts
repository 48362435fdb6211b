// A user's own Wav2Lip-type network (WAV2LIP_MODEL). Its inputs and output are found by rank and
// shape; it runs one frame of one session at a time.
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { WAV2LIP_COLUMNS, WAV2LIP_MELS } from './wav2lip-mel.ts';

/** Sides of the square picture: 96 is the published network's. */
const MIN_SIDE = 96;
const MAX_SIDE = 384;

/** The network cannot be used. The message says why, with the figures. */
export class Wav2LipRefused extends Error {}

/** Names of the inputs and the output, and the side of the pictures. */
export interface Wav2LipShape {
  readonly mel: string;
  readonly image: string;
  readonly output: string;
  readonly side: number;
}

type Dimensions = readonly (number | string)[];

/**
 * Finds the mel input [B,1,80,16], the image input [B,6,S,S] and the picture output [B,3,S,S] by
 * rank and size, whatever their names. An S that is a dynamic axis is 96, that of the published
 * network.
 * @throws Wav2LipRefused that names the shapes found
 */
export function bindShapes(
  inputs: readonly { name: string; shape: Dimensions }[],
  outputs: readonly { name: string; shape: Dimensions }[],
): Wav2LipShape {
  const found = `found inputs ${describe(inputs)} and outputs ${describe(outputs)}`;
  const fits = (value: number | string | undefined, wanted: number): boolean =>
    value === wanted || typeof value === 'string';
  const mel =
    inputs.find(
      ({ shape }) =>
        shape.length === 4 &&
        fits(shape[1], 1) &&
        shape[2] === WAV2LIP_MELS &&
        shape[3] === WAV2LIP_COLUMNS,
    ) ??
    inputs.find(
      ({ shape }) =>
        shape.length === 4 &&
        fits(shape[1], 1) &&
        fits(shape[2], WAV2LIP_MELS) &&
        fits(shape[3], WAV2LIP_COLUMNS),
    );
  const image = inputs.find(
    (input) => input !== mel && input.shape.length === 4 && input.shape[1] === 6,
  );
  const output =
    outputs.find(({ shape }) => shape.length === 4 && fits(shape[1], 3)) ??
    outputs.find(({ shape }) => shape.length === 0);
  if (inputs.length !== 2 || mel === undefined || image === undefined || output === undefined) {
    throw new Wav2LipRefused(
      `WAV2LIP_MODEL must take mel [B,1,80,16] and image [B,6,S,S] and give [B,3,S,S]; ${found}`,
    );
  }
  const side =
    [image.shape[2], image.shape[3], output.shape[2], output.shape[3]].find(
      (value) => typeof value === 'number',
    ) ?? MIN_SIDE;
  const isSquare = [image.shape[2], image.shape[3]].every((value) => fits(value, side));
  if (!isSquare || side < MIN_SIDE || side > MAX_SIDE) {
    throw new Wav2LipRefused(
      `WAV2LIP_MODEL must take a square picture of ${MIN_SIDE} to ${MAX_SIDE} pixels a side; ` +
        found,
    );
  }
  return { mel: mel.name, image: image.name, output: output.name, side };
}

const describe = (values: readonly { name: string; shape: Dimensions }[]): string =>
  values.map(({ name, shape }) => `${name} [${shape.join(',')}]`).join(', ') || 'none';

const metadata = (
  values: InferenceSession['inputMetadata'],
): { name: string; shape: Dimensions }[] =>
  values.map((value) => ({ name: value.name, shape: value.isTensor ? value.shape : [] }));

/** Not for two runs at once: `mel` and `picture` belong to the run. */
export class Wav2LipNetwork {
  readonly side: number;
  /** Threads of one run. */
  readonly threads: number;
  /** Input of `run`: [WAV2LIP_MELS][WAV2LIP_COLUMNS]. */
  readonly mel = new Float32Array(WAV2LIP_MELS * WAV2LIP_COLUMNS);
  /** Output of `run`: [3][side][side], BGR, 0 to 1. */
  readonly picture: Float32Array;

  readonly #session: InferenceSession;
  readonly #shape: Wav2LipShape;
  readonly #melTensor: Tensor;

  private constructor(session: InferenceSession, shape: Wav2LipShape, threads: number) {
    this.#session = session;
    this.#shape = shape;
    this.side = shape.side;
    this.threads = threads;
    this.picture = new Float32Array(3 * shape.side * shape.side);
    this.#melTensor = new Tensor('float32', this.mel, [1, 1, WAV2LIP_MELS, WAV2LIP_COLUMNS]);
  }

  /**
   * Loads the network and binds its shapes.
   * @param providers execution providers of onnxruntime, in order of preference
   * @throws Wav2LipRefused when onnxruntime cannot read the file, or its shapes do not fit
   */
  static async load(
    file: string,
    providers: readonly string[],
    threads = 1,
  ): Promise<Wav2LipNetwork> {
    const session = await InferenceSession.create(file, {
      executionProviders: [...providers],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
      logSeverityLevel: 3,
      // Threads that spin while they wait would take a core that others need.
      extra: { session: { intra_op: { allow_spinning: '0' } } },
    }).catch((error: unknown) => {
      const why = error instanceof Error ? error.message.split('\n')[0]! : String(error);
      throw new Wav2LipRefused(`WAV2LIP_MODEL ${file} cannot be loaded: ${why}`);
    });
    return new Wav2LipNetwork(
      session,
      bindShapes(metadata(session.inputMetadata), metadata(session.outputMetadata)),
      threads,
    );
  }

  /** @param values [6][side][side], as `Wav2LipFace.image`; the tensor is a view of them */
  imageTensor(values: Float32Array): Tensor {
    return new Tensor('float32', values, [1, 6, this.side, this.side]);
  }

  /**
   * Runs one frame on the calling thread and blocks it: onnxruntime-node has no thread of its own.
   * @throws Wav2LipRefused when the output is not a picture
   */
  async run(image: Tensor): Promise<void> {
    const results = await this.#session.run({
      [this.#shape.mel]: this.#melTensor,
      [this.#shape.image]: image,
    });
    const output = results[this.#shape.output]!;
    if (output.type !== 'float32' || output.data.length !== this.picture.length) {
      throw new Wav2LipRefused(
        `WAV2LIP_MODEL gave ${output.type} [${output.dims.join(',')}] instead of ` +
          `float32 [1,3,${this.side},${this.side}]`,
      );
    }
    this.picture.set(output.data as Float32Array);
  }
}
