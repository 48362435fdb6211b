// Writes ONNX files: the messages of onnx.proto that a float convolutional network needs, in the
// wire format of Protocol Buffers.

/** A tensor stored in the file. Integer tensors hold shapes and paddings. */
export interface Initializer {
  readonly name: string;
  readonly dims: readonly number[];
  readonly data: Float32Array | BigInt64Array;
}

/** INT, STRING or INTS. */
export type AttributeValue = number | string | readonly number[];

/** An operator with the names of its tensors. */
export interface OnnxNode {
  readonly opType: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Numbers are written as INT, arrays as INTS: no operator used here has a float attribute. */
  readonly attributes?: Readonly<Record<string, AttributeValue>>;
}

/** A float input or output of the graph. Without `dims` the runtime infers them. */
export interface ValueInfo {
  readonly name: string;
  readonly dims?: readonly number[];
}

/** A graph with nodes in topological order. */
export interface OnnxGraph {
  readonly name: string;
  readonly nodes: readonly OnnxNode[];
  readonly initializers: readonly Initializer[];
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
}

// Enumerations and field numbers are those of
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto (IR version 8).
const IR_VERSION = 8;
const OPSET = 14;
const FLOAT = 1;
const INT64 = 7;
const ATTRIBUTE_INT = 2;
const ATTRIBUTE_STRING = 3;
const ATTRIBUTE_INTS = 7;

const WIRE_VARINT = 0;
const WIRE_BYTES = 2;

function varint(value: number | bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

const int = (field: number, value: number): Buffer =>
  Buffer.concat([varint((field << 3) | WIRE_VARINT), varint(value)]);
const bytes = (field: number, value: Uint8Array): Buffer =>
  Buffer.concat([varint((field << 3) | WIRE_BYTES), varint(value.length), value]);
const text = (field: number, value: string): Buffer => bytes(field, Buffer.from(value));
const message = (field: number, ...parts: readonly Buffer[]): Buffer =>
  bytes(field, Buffer.concat(parts));

function attribute(name: string, value: AttributeValue): Buffer {
  if (typeof value === 'number') {
    return message(5, text(1, name), int(3, value), int(20, ATTRIBUTE_INT));
  }
  if (typeof value === 'string') {
    return message(5, text(1, name), text(4, value), int(20, ATTRIBUTE_STRING));
  }
  return message(5, text(1, name), ...value.map((item) => int(8, item)), int(20, ATTRIBUTE_INTS));
}

const node = ({ opType, inputs, outputs, attributes = {} }: OnnxNode): Buffer =>
  message(
    1,
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(3, outputs[0] ?? ''),
    text(4, opType),
    ...Object.entries(attributes).map(([name, value]) => attribute(name, value)),
  );

const initializer = ({ name, dims, data }: Initializer): Buffer =>
  message(
    5,
    ...dims.map((dim) => int(1, dim)),
    int(2, data instanceof Float32Array ? FLOAT : INT64),
    text(8, name),
    bytes(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)),
  );

function valueInfo(field: number, { name, dims }: ValueInfo): Buffer {
  const shape = dims ? [message(2, ...dims.map((dim) => message(1, int(1, dim))))] : [];
  return message(field, text(1, name), message(2, message(1, int(1, FLOAT), ...shape)));
}

/** Encodes a ModelProto. The same graph gives the same bytes. */
export function encodeOnnx(graph: OnnxGraph): Buffer {
  return Buffer.concat([
    int(1, IR_VERSION),
    text(2, 'mouthpiece'),
    message(
      7,
      ...graph.nodes.map(node),
      text(2, graph.name),
      ...graph.initializers.map(initializer),
      ...graph.inputs.map((value) => valueInfo(11, value)),
      ...graph.outputs.map((value) => valueInfo(12, value)),
    ),
    message(8, text(1, ''), int(2, OPSET)),
  ]);
}
