// Reads a TensorFlow.js graph model (topology JSON and weight shards) and converts it to an ONNX
// graph with NCHW activations.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Initializer, OnnxGraph, OnnxNode } from './onnx.ts';
import { halfToFloat, transpose, type Weight } from './weights.ts';

interface Attribute {
  s?: string;
  list?: { i?: (string | number)[]; s?: string[] };
  shape?: { dim?: { size: string }[] };
}
interface TfNode {
  name: string;
  op: string;
  input?: string[];
  attr?: Record<string, Attribute>;
}
interface WeightSpec {
  name: string;
  shape: number[];
  dtype: string;
  quantization?: { dtype: string; scale?: number; min?: number };
}
interface GraphModel {
  modelTopology: { node: TfNode[] };
  weightsManifest: { paths: string[]; weights: WeightSpec[] }[];
}

/**
 * Reads and converts a model.
 * @throws Error when the graph uses an operator that this converter does not know, or when the
 * weights do not fill the shards exactly
 */
export function readTfjsModel(jsonFile: string): OnnxGraph {
  const model = JSON.parse(readFileSync(jsonFile, 'utf8')) as GraphModel;
  const graph = new GraphRewriter(readWeights(model, path.dirname(jsonFile)));
  for (const node of model.modelTopology.node) {
    graph.add(node);
  }
  return graph.finish(path.basename(jsonFile, '.json'));
}

function readWeights(model: GraphModel, folder: string): Map<string, Weight> {
  const weights = new Map<string, Weight>();
  for (const group of model.weightsManifest) {
    const shards = Buffer.concat(group.paths.map((file) => readFileSync(path.join(folder, file))));
    let offset = 0;
    for (const spec of group.weights) {
      const count = spec.shape.reduce((product, dim) => product * dim, 1);
      const stored = spec.quantization?.dtype ?? spec.dtype;
      const { data, byteLength } = decode(stored, shards, offset, count);
      const { scale, min = 0 } = spec.quantization ?? {};
      weights.set(spec.name, {
        shape: spec.shape,
        data: scale === undefined ? data : data.map((value) => value * scale + min),
      });
      offset += byteLength;
    }
    if (offset !== shards.length) {
      throw new Error(
        `the weight shards hold ${shards.length} bytes, the manifest describes ${offset}`,
      );
    }
  }
  return weights;
}

function decode(
  dtype: string,
  shards: Buffer,
  offset: number,
  count: number,
): { data: Float32Array; byteLength: number } {
  const read = (
    {
      float32: [4, (at: number) => shards.readFloatLE(at)],
      float16: [2, (at: number) => halfToFloat(shards.readUInt16LE(at))],
      uint8: [1, (at: number) => shards.readUInt8(at)],
      uint16: [2, (at: number) => shards.readUInt16LE(at)],
      int32: [4, (at: number) => shards.readInt32LE(at)],
    } as const satisfies Record<string, readonly [number, (at: number) => number]>
  )[dtype as 'float32'];
  if (!read) {
    throw new Error(`weights of type ${dtype} are not supported`);
  }
  const [size, at] = read;
  return {
    data: Float32Array.from({ length: count }, (_, index) => at(offset + index * size)),
    byteLength: count * size,
  };
}

/**
 * Converts nodes in topological order, the order in which TensorFlow.js stores them. Activations
 * are NCHW inside the graph, and NHWC at its inputs and outputs.
 */
class GraphRewriter {
  readonly #weights: Map<string, Weight>;
  readonly #nodes: OnnxNode[] = [];
  readonly #initializers = new Map<string, Initializer>();
  readonly #renamed = new Map<string, string>();
  readonly #inputs: { name: string; dims: number[] }[] = [];
  readonly #outputs: { name: string }[] = [];

  constructor(weights: Map<string, Weight>) {
    this.#weights = weights;
  }

  finish(name: string): OnnxGraph {
    return {
      name,
      nodes: this.#nodes,
      initializers: [...this.#initializers.values()],
      inputs: this.#inputs,
      outputs: this.#outputs,
    };
  }

  add(node: TfNode): void {
    const inputs = (node.input ?? [])
      .filter((input) => !input.startsWith('^'))
      .map((input) => input.split(':')[0] ?? input);
    const [first = '', second = ''] = inputs;
    switch (node.op) {
      case 'Const':
        return;
      case 'Placeholder':
        return this.#placeholder(node);
      case '_FusedConv2D':
      case 'DepthwiseConv2dNative':
        return this.#convolution(node, first, second, inputs.slice(2));
      case 'AddV2':
        return this.#emit(
          'Add',
          [
            this.#activation(first),
            this.#weights.has(second) ? this.#channels(second) : this.#activation(second),
          ],
          node.name,
        );
      case 'Prelu':
        return this.#emit('PRelu', [this.#activation(first), this.#channels(second)], node.name);
      case 'Relu':
      case 'Sigmoid':
        return this.#emit(node.op, [this.#activation(first)], node.name);
      case 'MaxPool':
        return this.#emit('MaxPool', [this.#activation(first)], node.name, {
          kernel_shape: integers(node, 'ksize').slice(1, 3),
          strides: integers(node, 'strides').slice(1, 3),
          auto_pad: padding(node),
        });
      case 'Pad':
        return this.#pad(node.name, first, second);
      case 'Reshape':
        return this.#reshape(node.name, first, second);
      case 'Identity':
        this.#outputs.push({ name: node.name });
        return this.#emit('Identity', [this.#activation(first)], node.name);
      default:
        throw new Error(`operator ${node.op} (${node.name}) is not supported`);
    }
  }

  #placeholder(node: TfNode): void {
    // Fix a batch size of -1 (any) to 1: the landmark search is sequential.
    const dims = (node.attr?.shape?.shape?.dim ?? []).map((dim) => Math.max(1, Number(dim.size)));
    this.#inputs.push({ name: node.name, dims });
    this.#emit('Transpose', [node.name], `${node.name}_nchw`, { perm: [0, 3, 1, 2] });
    this.#renamed.set(node.name, `${node.name}_nchw`);
  }

  #convolution(node: TfNode, input: string, filter: string, extra: string[]): void {
    const depthwise = node.op === 'DepthwiseConv2dNative';
    const [height = 1, width = 1, channels = 1, multiplier = 1] = this.#weight(filter).shape;
    const kernel = depthwise
      ? this.#constant(
          `${node.name}_w`,
          [channels * multiplier, 1, height, width],
          transpose(this.#weight(filter), [2, 3, 0, 1]),
        )
      : this.#constant(
          `${node.name}_w`,
          [multiplier, channels, height, width],
          transpose(this.#weight(filter), [3, 2, 0, 1]),
        );
    const fused = (node.attr?.fused_ops?.list?.s ?? []).map(text);
    const operands = [this.#activation(input), kernel];
    if (fused.includes('BiasAdd')) {
      const bias = this.#weight(extra.shift() ?? '');
      operands.push(this.#constant(`${node.name}_b`, [bias.data.length], bias.data));
    }
    const activation = fused.find((name) => name !== 'BiasAdd');
    this.#emit('Conv', operands, activation ? `${node.name}_linear` : node.name, {
      strides: integers(node, 'strides').slice(1, 3),
      group: depthwise ? channels : 1,
      auto_pad: padding(node),
    });
    if (activation === undefined) {
      return;
    }
    if (activation === 'Relu' || activation === 'Sigmoid') {
      return this.#emit(activation, [`${node.name}_linear`], node.name);
    }
    if (activation === 'Prelu') {
      return this.#emit(
        'PRelu',
        [`${node.name}_linear`, this.#channels(extra.shift() ?? '')],
        node.name,
      );
    }
    throw new Error(`fused activation ${activation} (${node.name}) is not supported`);
  }

  #pad(name: string, input: string, paddings: string): void {
    const pairs = this.#weight(paddings).data;
    const order = [0, 3, 1, 2];
    const pads = [
      ...order.map((axis) => pairs[axis * 2] ?? 0),
      ...order.map((axis) => pairs[axis * 2 + 1] ?? 0),
    ];
    this.#emit('Pad', [this.#activation(input), this.#integerConstant(`${name}_pads`, pads)], name);
  }

  #reshape(name: string, input: string, shape: string): void {
    this.#emit('Transpose', [this.#activation(input)], `${name}_nhwc`, { perm: [0, 2, 3, 1] });
    this.#emit(
      'Reshape',
      [`${name}_nhwc`, this.#integerConstant(`${name}_shape`, [...this.#weight(shape).data])],
      name,
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

  #activation(name: string): string {
    return this.#renamed.get(name) ?? name;
  }

  #weight(name: string): Weight {
    const weight = this.#weights.get(name);
    if (!weight) {
      throw new Error(`weight ${name} is missing`);
    }
    return weight;
  }

  /** A weight with one value per channel, shaped to broadcast over height and width. */
  #channels(name: string): string {
    const { data } = this.#weight(name);
    return this.#constant(`${name}_c`, [data.length, 1, 1], data);
  }

  #constant(name: string, dims: number[], data: Float32Array): string {
    this.#initializers.set(name, { name, dims, data });
    return name;
  }

  #integerConstant(name: string, values: number[]): string {
    this.#initializers.set(name, {
      name,
      dims: [values.length],
      data: BigInt64Array.from(values, BigInt),
    });
    return name;
  }
}

const text = (base64: string): string => Buffer.from(base64, 'base64').toString();
const integers = (node: TfNode, name: string): number[] =>
  (node.attr?.[name]?.list?.i ?? []).map(Number);
const padding = (node: TfNode): string =>
  text(node.attr?.padding?.s ?? '') === 'SAME' ? 'SAME_UPPER' : 'VALID';
