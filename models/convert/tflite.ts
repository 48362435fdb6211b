// Reads a TensorFlow Lite model (a FlatBuffer) and converts it to an ONNX graph with NCHW
// activations.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Initializer, OnnxGraph, OnnxNode } from './onnx.ts';
import { halfToFloat, transpose, type Weight } from './weights.ts';

// Numbers of fields, operators and types are those of schema.fbs in TensorFlow
// (tensorflow/compiler/mlir/lite/schema).
const IDENTIFIER = 'TFL3';
const OPERATORS: Readonly<Record<number, string>> = {
  0: 'ADD',
  1: 'AVERAGE_POOL_2D',
  3: 'CONV_2D',
  4: 'DEPTHWISE_CONV_2D',
  6: 'DEQUANTIZE',
  14: 'LOGISTIC',
  18: 'MUL',
  19: 'RELU',
  23: 'RESIZE_BILINEAR',
  117: 'HARD_SWISH',
};
const CUSTOM = 32;
const FLOAT16 = 1;
/** `Padding` in the options of an operator, and `TfLitePadding` in those of a custom one. */
const PADDINGS = ['SAME_UPPER', 'VALID'];
const CUSTOM_SAME = 1;

/**
 * Reads and converts a model with one input of shape [batch, height, width, channels].
 * @throws Error when the graph uses an operator, or an option of one, that this converter does not
 * know
 */
export function readTfliteModel(file: string): OnnxGraph {
  return convertTflite(readFileSync(file), path.basename(file, '.tflite'));
}

/** The same from the bytes of the file. */
export function convertTflite(bytes: Uint8Array, name: string): OnnxGraph {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (Buffer.from(bytes.subarray(4, 8)).toString('latin1') !== IDENTIFIER) {
    throw new Error(`${name} is not a TensorFlow Lite model`);
  }
  const model = new Table(view, view.getUint32(0, true));
  const subgraphs = model.tables(2);
  if (subgraphs.length !== 1) {
    throw new Error(`${name} has ${subgraphs.length} graphs`);
  }
  const graph = new GraphRewriter(model, subgraphs[0]!);
  return graph.convert(name);
}

/** A table of a FlatBuffer. Its fields are found by their number; absent ones have a default. */
class Table {
  readonly #view: DataView;
  readonly #at: number;

  constructor(view: DataView, at: number) {
    this.#view = view;
    this.#at = at;
  }

  int8(field: number, otherwise = 0): number {
    const at = this.#find(field);
    return at === undefined ? otherwise : this.#view.getInt8(at);
  }

  int32(field: number, otherwise = 0): number {
    const at = this.#find(field);
    return at === undefined ? otherwise : this.#view.getInt32(at, true);
  }

  int32s(field: number): number[] {
    const { at, length } = this.#vector(field);
    return Array.from({ length }, (_, i) => this.#view.getInt32(at + 4 * i, true));
  }

  /** The elements of a vector of bytes. */
  bytes(field: number): Buffer {
    const { at, length } = this.#vector(field);
    return Buffer.from(this.#view.buffer, this.#view.byteOffset + at, length);
  }

  text(field: number): string {
    return this.bytes(field).toString();
  }

  table(field: number): Table | undefined {
    const at = this.#find(field);
    return at === undefined ? undefined : new Table(this.#view, this.#follow(at));
  }

  tables(field: number): Table[] {
    const { at, length } = this.#vector(field);
    return Array.from({ length }, (_, i) => new Table(this.#view, this.#follow(at + 4 * i)));
  }

  #vector(field: number): { at: number; length: number } {
    const found = this.#find(field);
    if (found === undefined) {
      return { at: 0, length: 0 };
    }
    const at = this.#follow(found);
    return { at: at + 4, length: this.#view.getUint32(at, true) };
  }

  /** Where an offset that is stored at `at` leads. */
  #follow(at: number): number {
    return at + this.#view.getUint32(at, true);
  }

  /** Position of a field: tables start with the offset to the list of the fields' offsets. */
  #find(field: number): number | undefined {
    const list = this.#at - this.#view.getInt32(this.#at, true);
    const entry = 4 + 2 * field;
    const offset =
      entry < this.#view.getUint16(list, true) ? this.#view.getUint16(list + entry, true) : 0;
    return offset === 0 ? undefined : this.#at + offset;
  }
}

/** A tensor of the model. */
interface Tensor {
  readonly name: string;
  /** NHWC for activations. */
  readonly shape: readonly number[];
  readonly type: number;
  /** Empty for activations. */
  readonly bytes: Buffer;
}

/** An operator with its tensors. */
interface Operator {
  readonly type: string;
  readonly inputs: readonly Tensor[];
  readonly output: Tensor;
  /** Undefined when the operator has the default options. */
  readonly options: Table | undefined;
  readonly customOptions: Buffer;
}

/**
 * Converts operators in topological order, the order in which TensorFlow Lite stores them.
 * Activations are NCHW inside the graph, and NHWC at its inputs and outputs.
 */
class GraphRewriter {
  readonly #tensors: readonly Tensor[];
  readonly #operators: readonly Operator[];
  readonly #inputs: readonly Tensor[];
  readonly #outputs: readonly Tensor[];
  readonly #weights = new Map<string, Weight>();
  readonly #nodes: OnnxNode[] = [];
  readonly #initializers: Initializer[] = [];
  /** Names of the activations in the ONNX graph, where they differ. */
  readonly #renamed = new Map<string, string>();

  constructor(model: Table, graph: Table) {
    const buffers = model.tables(4);
    this.#tensors = graph.tables(0).map((tensor) => ({
      name: tensor.text(3),
      shape: tensor.int32s(0),
      type: tensor.int8(1),
      bytes: buffers[tensor.int32(2)]!.bytes(0),
    }));
    const types = model.tables(1).map((code) => {
      // Numbers up to 127 are in the older field.
      const number = Math.max(code.int8(0), code.int32(3));
      return number === CUSTOM ? code.text(1) : (OPERATORS[number] ?? `number ${number}`);
    });
    this.#operators = graph.tables(3).map((operator) => ({
      type: types[operator.int32(0)]!,
      inputs: this.#at(operator.int32s(1)),
      output: this.#at(operator.int32s(2))[0]!,
      options: operator.table(4),
      customOptions: operator.bytes(5),
    }));
    this.#inputs = this.#at(graph.int32s(1));
    this.#outputs = this.#at(graph.int32s(2));
  }

  convert(name: string): OnnxGraph {
    for (const { name: input } of this.#inputs) {
      this.#emit('Transpose', [input], `${input}_nchw`, { perm: [0, 3, 1, 2] });
      this.#renamed.set(input, `${input}_nchw`);
    }
    for (const { name: output } of this.#outputs) {
      this.#renamed.set(output, `${output}_nchw`);
    }
    for (const operator of this.#operators) {
      this.#add(operator);
    }
    for (const { name: output } of this.#outputs) {
      this.#emit('Transpose', [`${output}_nchw`], output, { perm: [0, 2, 3, 1] });
    }
    return {
      name,
      nodes: this.#nodes,
      initializers: this.#initializers,
      inputs: this.#inputs.map((input) => ({ name: input.name, dims: input.shape })),
      outputs: this.#outputs.map((output) => ({ name: output.name })),
    };
  }

  #add(operator: Operator): void {
    const { type, inputs, output, options } = operator;
    switch (type) {
      case 'DEQUANTIZE':
        return this.#dequantize(inputs[0]!, output);
      case 'CONV_2D':
        only(operator, { 3: 0 }, { 4: 1, 5: 1 });
        return this.#convolution(operator, 1, [0, 3, 1, 2]);
      case 'DEPTHWISE_CONV_2D':
        only(operator, { 4: 0 }, { 3: 1, 5: 1, 6: 1 });
        return this.#convolution(operator, inputs[0]!.shape[3]!, [3, 0, 1, 2]);
      case 'Convolution2DTransposeBias':
        return this.#transposedConvolution(operator);
      case 'AVERAGE_POOL_2D':
        only(operator, { 5: 0 });
        return this.#emit('AveragePool', [this.#activation(inputs[0]!)], this.#activation(output), {
          kernel_shape: [options?.int32(4) ?? 0, options?.int32(3) ?? 0],
          ...geometry(options),
        });
      case 'RESIZE_BILINEAR':
        return this.#resize(operator);
      case 'ADD':
      case 'MUL':
        only(operator, { 0: 0 });
        return this.#pointwise(type === 'ADD' ? 'Add' : 'Mul', operator);
      case 'RELU':
        return this.#pointwise('Relu', operator);
      case 'LOGISTIC':
        return this.#pointwise('Sigmoid', operator);
      case 'HARD_SWISH':
        return this.#pointwise('HardSwish', operator);
      default:
        throw new Error(`operator ${type} (${output.name}) is not supported`);
    }
  }

  #dequantize({ name, shape, type, bytes }: Tensor, output: Tensor): void {
    if (type !== FLOAT16) {
      throw new Error(`weights of type ${type} (${name}) are not supported`);
    }
    const data = Float32Array.from({ length: bytes.length / 2 }, (_, i) =>
      halfToFloat(bytes.readUInt16LE(2 * i)),
    );
    this.#weights.set(output.name, { shape, data });
  }

  /** @param order axes of the kernel in the order outputs, inputs, height, width */
  #convolution(
    { inputs, output, options }: Operator,
    group: number,
    order: readonly [number, number, number, number],
  ): void {
    this.#emit(
      'Conv',
      [this.#activation(inputs[0]!), this.#kernel(inputs[1]!, order), this.#bias(inputs[2]!)],
      this.#activation(output),
      { group, ...geometry(options) },
    );
  }

  /** MediaPipe's transposed convolution with a bias. Here, the kernel's copies do not overlap. */
  #transposedConvolution({ inputs, output, customOptions }: Operator): void {
    const [, height = 0, width = 0] = inputs[1]!.shape;
    const [pad, across, down] = [0, 4, 8].map((at) => customOptions.readInt32LE(at));
    if (pad !== CUSTOM_SAME || across !== width || down !== height) {
      throw new Error(`the options of ${output.name} are not supported`);
    }
    this.#emit(
      'ConvTranspose',
      [
        this.#activation(inputs[0]!),
        this.#kernel(inputs[1]!, [3, 0, 1, 2]),
        this.#bias(inputs[2]!),
      ],
      this.#activation(output),
      { strides: [height, width] },
    );
  }

  #resize(operator: Operator): void {
    const { inputs, output } = operator;
    // Corners not aligned, centres of pixels at halves.
    only(operator, { 2: 0, 3: 1 });
    const [batch = 1, height = 1, width = 1, channels = 1] = output.shape;
    const sizes = `${output.name}_sizes`;
    this.#initializers.push({
      name: sizes,
      dims: [4],
      data: BigInt64Array.from([batch, channels, height, width], BigInt),
    });
    this.#emit('Resize', [this.#activation(inputs[0]!), '', '', sizes], this.#activation(output), {
      mode: 'linear',
      coordinate_transformation_mode: 'half_pixel',
    });
  }

  #pointwise(opType: string, { inputs, output }: Operator): void {
    this.#emit(
      opType,
      inputs.map((input) => this.#activation(input)),
      this.#activation(output),
    );
  }

  #emit(
    opType: string,
    inputs: string[],
    output: string,
    attributes: NonNullable<OnnxNode['attributes']> = {},
  ): void {
    this.#nodes.push({ opType, inputs, outputs: [output], attributes });
  }

  #at(indices: readonly number[]): Tensor[] {
    return indices.map((index) => this.#tensors[index]!);
  }

  #activation({ name, bytes }: Tensor): string {
    if (bytes.length > 0 || this.#weights.has(name)) {
      throw new Error(`the constant ${name} is not supported`);
    }
    return this.#renamed.get(name) ?? name;
  }

  #weight({ name }: Tensor): Weight {
    const weight = this.#weights.get(name);
    if (!weight) {
      throw new Error(`weight ${name} is missing`);
    }
    return weight;
  }

  #kernel(tensor: Tensor, order: readonly [number, number, number, number]): string {
    const weight = this.#weight(tensor);
    const dims = order.map((axis) => weight.shape[axis]!);
    this.#initializers.push({ name: tensor.name, dims, data: transpose(weight, order) });
    return tensor.name;
  }

  #bias(tensor: Tensor): string {
    const { data } = this.#weight(tensor);
    this.#initializers.push({ name: tensor.name, dims: [data.length], data });
    return tensor.name;
  }
}

/** Padding and strides, which convolutions and pooling store in the same fields. */
const geometry = (options: Table | undefined): { auto_pad: string; strides: number[] } => ({
  auto_pad: PADDINGS[options?.int8(0) ?? 0] ?? '',
  strides: [options?.int32(2) ?? 0, options?.int32(1) ?? 0],
});

/**
 * Other values of options change what an operator computes.
 * @param bytes values of the options that one byte holds, by field
 * @param numbers values of those that four bytes hold
 * @throws Error unless the options have these values
 */
function only(
  { type, output, options }: Operator,
  bytes: Readonly<Record<number, number>>,
  numbers: Readonly<Record<number, number>> = {},
): void {
  const wrong = [
    ...Object.keys(bytes).filter((key) => (options?.int8(+key) ?? 0) !== bytes[+key]),
    // Dilations are 1 when they are absent.
    ...Object.keys(numbers).filter((key) => (options?.int32(+key, 1) ?? 1) !== numbers[+key]),
  ];
  if (wrong.length > 0) {
    throw new Error(`option ${wrong[0]} of ${type} (${output.name}) is not supported`);
  }
}
