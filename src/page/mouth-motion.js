// Measures how much the mouth moves from frame to frame in the decoded video.
// @ts-check

/**
 * The region of the mouth, as shares of the picture. It begins below the eyes, so that blinks do
 * not count.
 */
const REGION = { left: 0.28, top: 0.48, width: 0.44, height: 0.38 };
/** Resolution of the measurement, pixels. */
const WIDTH = 44;
const HEIGHT = 38;
/**
 * Share of pixels, those that change most, that are averaged: the mouth is a small part of the
 * region.
 */
const TOP_SHARE = 0.08;

/** Calls back with the motion of each frame of a video. */
export class MouthMotionMeter {
  /** Mean change of those pixels between the last two frames, 0..255. */
  motion = 0;
  #canvas = new OffscreenCanvas(WIDTH, HEIGHT);
  #context = /** @type {OffscreenCanvasRenderingContext2D} */ (
    this.#canvas.getContext('2d', { willReadFrequently: true })
  );
  #previous = new Uint8Array(WIDTH * HEIGHT);
  #histogram = new Uint32Array(256);
  #isFirst = true;
  #video;
  #onFrame;

  /**
   * @param {HTMLVideoElement} video
   * @param {(motion: number) => void} onFrame Called for each frame on screen.
   */
  constructor(video, onFrame) {
    this.#video = video;
    this.#onFrame = onFrame;
    if ('requestVideoFrameCallback' in video) {
      video.requestVideoFrameCallback(this.#measureFrame);
    }
  }

  /** Begins a new stream: its first frame has no frame to compare with. */
  reset() {
    this.#isFirst = true;
  }

  #measureFrame = () => {
    this.#video.requestVideoFrameCallback(this.#measureFrame);
    const { videoWidth, videoHeight } = this.#video;
    this.#context.drawImage(
      this.#video,
      REGION.left * videoWidth,
      REGION.top * videoHeight,
      REGION.width * videoWidth,
      REGION.height * videoHeight,
      0,
      0,
      WIDTH,
      HEIGHT,
    );
    this.motion = this.#measure(this.#context.getImageData(0, 0, WIDTH, HEIGHT).data);
    if (this.#isFirst) {
      this.#isFirst = false;
      this.motion = 0;
    }
    this.#onFrame(this.motion);
  };

  /** @param {Uint8ClampedArray} rgba */
  #measure(rgba) {
    this.#histogram.fill(0);
    for (let pixel = 0; pixel < this.#previous.length; pixel++) {
      const green = rgba[pixel * 4 + 1] ?? 0;
      const change = Math.abs(green - (this.#previous[pixel] ?? 0));
      this.#histogram[change] = (this.#histogram[change] ?? 0) + 1;
      this.#previous[pixel] = green;
    }
    const wanted = Math.round(TOP_SHARE * this.#previous.length);
    let sum = 0;
    for (let change = 255, left = wanted; left > 0 && change > 0; change--) {
      const take = Math.min(left, this.#histogram[change] ?? 0);
      sum += take * change;
      left -= take;
    }
    return sum / wanted;
  }
}
