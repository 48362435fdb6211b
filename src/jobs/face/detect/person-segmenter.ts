// Tells people from their background (MediaPipe Selfie Segmentation), on one core.
import ort from 'onnxruntime-node';
import { clamp, mix, type Plane, Pyramid, type RgbImage } from '../imaging/image.ts';

/** Input and output side of the network, pixels. */
const SIZE = 256;

/** The network. Load it once per thread. */
export class PersonSegmenter {
  readonly #network: ort.InferenceSession;

  constructor(network: ort.InferenceSession) {
    this.#network = network;
  }

  /**
   * Segments the people in a picture, of any shape: the network sees all of it, stretched to a
   * square.
   * @returns the probability of a person, 0..1, at SIZE x SIZE places of the picture
   */
  async segment(image: RgbImage): Promise<Plane> {
    const outputs = await this.#network.run({
      [this.#network.inputNames[0]!]: new ort.Tensor('float32', stretched(image), [
        1,
        SIZE,
        SIZE,
        3,
      ]),
    });
    const data = outputs[this.#network.outputNames[0]!]!.data as Float32Array;
    return { width: SIZE, height: SIZE, data };
  }
}

/** The picture in the network's size, bilinear, as float RGB 0..1. */
function stretched(picture: RgbImage): Float32Array {
  const { image } = new Pyramid(picture).level(Math.min(picture.width, picture.height) / SIZE);
  const { width, height, data } = image;
  if (width === SIZE && height === SIZE) {
    return Float32Array.from(data, (value) => value / 255);
  }
  const out = new Float32Array(SIZE * SIZE * 3);
  for (let row = 0, at = 0; row < SIZE; row++) {
    const y = clamp(((row + 0.5) * height) / SIZE - 0.5, 0, height - 1);
    const top = Math.floor(y);
    const [upper, lower] = [top * width, Math.min(top + 1, height - 1) * width];
    for (let column = 0; column < SIZE; column++) {
      const x = clamp(((column + 0.5) * width) / SIZE - 0.5, 0, width - 1);
      const left = Math.floor(x);
      const right = Math.min(left + 1, width - 1);
      for (let c = 0; c < 3; c++, at++) {
        const above = mix(data[(upper + left) * 3 + c]!, data[(upper + right) * 3 + c]!, x - left);
        const below = mix(data[(lower + left) * 3 + c]!, data[(lower + right) * 3 + c]!, x - left);
        out[at] = mix(above, below, y - top) / 255;
      }
    }
  }
  return out;
}
