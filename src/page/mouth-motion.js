// Watches the mouth in the decoded picture: how much it moves from frame to frame.
// @ts-check

/** Where a portrait's mouth is, as shares of the picture; below the eyes, so that blinks do not count. */
const REGION = { left: 0.28, top: 0.48, width: 0.44, height: 0.38 };
const WIDTH = 44;
const HEIGHT = 38;
/** Share of the most moving pixels whose mean is the measure: a mouth is a small part of the region. */
const TOP_SHARE = 0.08;

export class MouthMotionMeter {
  /** Mean change of the most moving pixels between the last two frames, in grey levels. */
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
   * @param {(motion: number) => void} onFrame For each presented frame.
   */
  constructor(video, onFrame) {
    this.#video = video;
    this.#onFrame = onFrame;
    if ('requestVideoFrameCallback' in video) {
      video.requestVideoFrameCallback(this.#look);
    }
  }

  /** A new stream: there is nothing yet to compare a frame with. */
  reset() {
    this.#isFirst = true;
  }

  #look = () => {
    this.#video.requestVideoFrameCallback(this.#look);
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
