// A small network with a Wav2Lip's signature: it answers the unmasked reference, brightened by the loudness of the mel window.
import { encodeOnnx } from '../../../models/convert/onnx.ts';

const floats = (name: string, ...values: number[]) => ({ name, dims: [values.length], data: Float32Array.from(values) });
const integers = (name: string, ...values: number[]) => ({ name, dims: [values.length], data: BigInt64Array.from(values.map(BigInt)) });

/** @param gain brightness per unit of the mel's mean, which is -4 in silence */
export const smallNetwork = (side: number, { gain = 0.1, outputChannels = 3, melRows = 80 } = {}): Buffer => encodeOnnx({
  name: 'small-wav2lip',
  inputs: [{ name: 'picture_in', dims: [1, 6, side, side] }, { name: 'sound_in', dims: [1, 1, melRows, 16] }],
  outputs: [{ name: 'picture_out', dims: [1, outputChannels, side, side] }],
  initializers: [integers('starts', 6 - outputChannels), integers('ends', 6), integers('axes', 1), floats('gain', gain), floats('four', 4), { name: 'zero', dims: [], data: Float32Array.of(0) }, { name: 'one', dims: [], data: Float32Array.of(1) }],
  nodes: [
    { opType: 'Slice', inputs: ['picture_in', 'starts', 'ends', 'axes'], outputs: ['reference'] },
    { opType: 'ReduceMean', inputs: ['sound_in'], outputs: ['loudness'], attributes: { axes: [1, 2, 3], keepdims: 1 } },
    { opType: 'Add', inputs: ['loudness', 'four'], outputs: ['above'] },
    { opType: 'Mul', inputs: ['above', 'gain'], outputs: ['light'] },
    { opType: 'Add', inputs: ['reference', 'light'], outputs: ['bright'] },
    { opType: 'Clip', inputs: ['bright', 'zero', 'one'], outputs: ['picture_out'] },
  ],
});
