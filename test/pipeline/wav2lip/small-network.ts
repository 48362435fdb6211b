// A small network with the signature of Wav2Lip: it outputs the unmasked reference, brightened by
// the loudness of the mel window.
import { encodeOnnx } from '../../../models/convert/onnx.ts';

const floats = (name: string, ...values: number[]) => ({
  name,
  dims: [values.length],
  data: Float32Array.from(values),
});
const integers = (name: string, ...values: number[]) => ({
  name,
  dims: [values.length],
  data: BigInt64Array.from(values.map(BigInt)),
});

/** Channels of the layers that only cost time. */
const WIDTH = 32;
const still = (name: string, outputs: number, inputs: number) => ({
  name,
  dims: [outputs, inputs, 3, 3],
  data: new Float32Array(outputs * inputs * 9),
});
const layer = (from: string, weights: string, to: string) => ({
  opType: 'Conv',
  inputs: [from, weights],
  outputs: [to],
  attributes: { kernel_shape: [3, 3], pads: [1, 1, 1, 1] },
});

/**
 * @param gain brightness per unit of the mel's mean, which is -4 in silence
 * @param isHalved the output has half the side, which is wrong
 * @param layers convolutions of zeros that make a run longer: at side 96 each takes about 1.6 ms on
 *   a core
 */
export const smallNetwork = (
  side: number,
  { gain = 0.1, outputChannels = 3, melRows = 80, layers = 0, isHalved = false } = {},
): Buffer =>
  encodeOnnx({
    name: 'small-wav2lip',
    inputs: [
      { name: 'picture_in', dims: [1, 6, side, side] },
      { name: 'sound_in', dims: [1, 1, melRows, 16] },
    ],
    outputs: [
      {
        name: 'picture_out',
        dims: [1, outputChannels, ...(isHalved ? [side / 2, side / 2] : [side, side])],
      },
    ],
    initializers: [
      integers('starts', 6 - outputChannels),
      integers('ends', 6),
      integers('axes', 1),
      floats('gain', gain),
      floats('four', 4),
      { name: 'zero', dims: [], data: Float32Array.of(0) },
      { name: 'one', dims: [], data: Float32Array.of(1) },
      still('first', WIDTH, outputChannels),
      still('middle', WIDTH, WIDTH),
      still('last', outputChannels, WIDTH),
    ],
    nodes: [
      { opType: 'Slice', inputs: ['picture_in', 'starts', 'ends', 'axes'], outputs: ['reference'] },
      {
        opType: 'ReduceMean',
        inputs: ['sound_in'],
        outputs: ['loudness'],
        attributes: { axes: [1, 2, 3], keepdims: 1 },
      },
      { opType: 'Add', inputs: ['loudness', 'four'], outputs: ['above'] },
      { opType: 'Mul', inputs: ['above', 'gain'], outputs: ['light'] },
      layer('reference', 'first', 'work0'),
      ...Array.from({ length: layers }, (_, i) => layer(`work${i}`, 'middle', `work${i + 1}`)),
      layer(`work${layers}`, 'last', 'nothing'),
      { opType: 'Add', inputs: ['reference', 'nothing'], outputs: ['picture'] },
      { opType: 'Add', inputs: ['picture', 'light'], outputs: ['bright'] },
      { opType: 'Clip', inputs: ['bright', 'zero', 'one'], outputs: ['clipped'] },
      isHalved
        ? {
            opType: 'AveragePool',
            inputs: ['clipped'],
            outputs: ['picture_out'],
            attributes: { kernel_shape: [2, 2], strides: [2, 2] },
          }
        : { opType: 'Identity', inputs: ['clipped'], outputs: ['picture_out'] },
    ],
  });
