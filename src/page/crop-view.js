// The crop of a photo: a frame of fixed shape, under which the photo is moved and zoomed with mouse,
// touch or keys.
// @ts-check

/** Longest side of the crop that is sent, pixels: a face takes 1280 at most. */
const MAX_SIDE = 3072;
/** What the server takes as it is: formats, bytes, pixels. Anything else is sent as a JPEG. */
const TAKEN = { types: ['image/jpeg', 'image/png', 'image/webp'], bytes: 32 << 20, pixels: 52e6 };
/** A frame is never zoomed to fewer pixels of the photo than this on its shorter side. */
const LEAST_SIDE = 160;
/** CSS pixels around the frame that show what is cut off. */
const MARGIN = 20;
/** A pointer that moves less is a click, CSS pixels. */
const CLICK_PX = 4;
/** Share of the frame that an arrow key moves. */
const KEY_STEP = 0.04;
/** Factor of a key or a notch of the wheel. */
const ZOOM_STEP = 1.1;

const clamp = (
  /** @type {number} */ value,
  /** @type {number} */ low,
  /** @type {number} */ high,
) => Math.min(high, Math.max(low, value));

/**
 * Part of a photo, in its pixels.
 * @typedef {{ x: number, y: number, width: number, height: number }} Region
 */

/**
 * The start of a gesture.
 * @typedef {{ place: { x: number, y: number }, apartPx: number, zoom: number }} Grip
 */

/** Draws on a canvas, and keeps the frame in touch with the photo. */
export class CropView {
  #canvas;
  #onChange;
  /** @type {ImageBitmap | null} */
  #photo = null;
  /** Width of the frame by its height. */
  #aspect = 1;
  /** 1: the largest frame that lies inside the photo. */
  #zoom = 1;
  /** The middle of the frame, in pixels of the photo. */
  #at = { x: 0, y: 0 };
  /** @type {Map<number, { x: number, y: number }>} */
  #pointers = new Map();
  /**
   * Of the gesture that goes on; taken anew when a finger comes or goes, or keys or wheel move the
   * photo.
   * @type {Grip | null}
   */
  #grip = null;
  #movedPx = 0;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => void} onChange The frame has moved, or its zoom has changed.
   */
  constructor(canvas, onChange) {
    this.#canvas = canvas;
    this.#onChange = onChange;
    canvas.addEventListener('pointerdown', (event) => this.#down(event));
    canvas.addEventListener('pointermove', (event) => this.#drag(event));
    canvas.addEventListener('pointerup', (event) => this.#up(event));
    canvas.addEventListener('pointercancel', ({ pointerId }) => this.#lift(pointerId));
    canvas.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => this.#draw()).observe(canvas);
  }

  /**
   * Shows a photo, the whole of it: the server finds the face, wherever it is.
   * @param {ImageBitmap} photo
   */
  show(photo) {
    this.#photo?.close();
    this.#photo = photo;
    this.#reset();
  }

  /** Width by height. @param {number} aspect */
  set aspect(aspect) {
    const isWhole = this.#zoom <= this.zoomRange.least;
    this.#aspect = aspect;
    if (isWhole) {
      this.#zoom = this.zoomRange.least;
    }
    this.#change();
  }

  get zoom() {
    return this.#zoom;
  }

  set zoom(zoom) {
    this.#zoom = zoom;
    this.#change();
  }

  /** The range of `zoom`. At the least the whole photo is inside the frame. */
  get zoomRange() {
    const { width, height } = this.#photo ?? { width: 1, height: 1 };
    const inside = this.#largestInside();
    return {
      least: inside / Math.max(width, height * this.#aspect),
      most: Math.max(1, (inside * Math.min(1, 1 / this.#aspect)) / LEAST_SIDE),
    };
  }

  /** What the frame shows of the photo. @returns {Region} */
  get region() {
    const { width, height } = this.#photo ?? { width: 1, height: 1 };
    const frame = this.#frame();
    const left = Math.max(0, Math.round(frame.x));
    const top = Math.max(0, Math.round(frame.y));
    return {
      x: left,
      y: top,
      width: Math.min(width, Math.round(frame.x + frame.width)) - left,
      height: Math.min(height, Math.round(frame.y + frame.height)) - top,
    };
  }

  /** In words, for screen readers. */
  get description() {
    const { width = 1, height = 1 } = this.#photo ?? {};
    const { x, y, width: across } = this.region;
    const percent = (/** @type {number} */ share) => Math.round(100 * share);
    const from = `from ${percent(x / width)} % of the left and ${percent(y / height)} % of the top`;
    return `Shows ${percent(across / width)} % of the width, ${from}.`;
  }

  /**
   * The crop as a file; the photo as it is, where nothing was cut off and the server takes it.
   * @param {Blob} whole
   */
  async cut(whole) {
    const photo = this.#photo;
    const { x, y, width, height } = this.region;
    const isTaken =
      TAKEN.types.includes(whole.type) &&
      whole.size <= TAKEN.bytes &&
      width * height <= TAKEN.pixels;
    if (!photo || (isTaken && width === photo.width && height === photo.height)) {
      return whole;
    }
    const scale = Math.min(1, MAX_SIDE / Math.max(width, height));
    const canvas = document.createElement('canvas');
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    context.fillStyle = '#fff'; // under what is transparent: JPEG has no alpha
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.imageSmoothingQuality = 'high';
    context.drawImage(photo, x, y, width, height, 0, 0, canvas.width, canvas.height);
    return await new Promise((/** @type {(blob: Blob) => void} */ resolve, reject) => {
      canvas.toBlob(
        (blob) => (blob ? resolve(blob) : reject(new Error('The photo is too large to crop.'))),
        'image/jpeg',
        0.95,
      );
    });
  }

  /** Width of the largest frame that lies inside the photo, in its pixels. */
  #largestInside() {
    const { width, height } = this.#photo ?? { width: 1, height: 1 };
    return Math.min(width, height * this.#aspect);
  }

  #reset() {
    this.#zoom = this.zoomRange.least; // in the middle, see #change
    this.#change();
  }

  /** @returns {Region} */
  #frame() {
    const width = this.#largestInside() / this.#zoom;
    const height = width / this.#aspect;
    return { x: this.#at.x - width / 2, y: this.#at.y - height / 2, width, height };
  }

  #change() {
    this.#grip = null;
    const { width, height } = this.#photo ?? { width: 1, height: 1 };
    const { least, most } = this.zoomRange;
    this.#zoom = clamp(this.#zoom, least, most);
    const frame = this.#frame();
    const [halfX, halfY] = [frame.width / 2, frame.height / 2];
    // Where the frame is larger than the photo, the photo is in its middle.
    this.#at.x = halfX * 2 >= width ? width / 2 : clamp(this.#at.x, halfX, width - halfX);
    this.#at.y = halfY * 2 >= height ? height / 2 : clamp(this.#at.y, halfY, height - halfY);
    this.#draw();
    this.#onChange();
  }

  /** The frame on the canvas, in CSS pixels. */
  #box() {
    const { clientWidth, clientHeight } = this.#canvas;
    const width = Math.max(
      1,
      Math.min(clientWidth - 2 * MARGIN, (clientHeight - 2 * MARGIN) * this.#aspect),
    );
    const height = width / this.#aspect;
    return { x: (clientWidth - width) / 2, y: (clientHeight - height) / 2, width, height };
  }

  /** CSS pixels per pixel of the photo. */
  #unit() {
    return this.#box().width / this.#frame().width;
  }

  #draw() {
    const canvas = this.#canvas;
    const context = canvas.getContext('2d');
    const photo = this.#photo;
    if (!context || !photo || canvas.clientWidth === 0) {
      return;
    }
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const box = this.#box();
    const frame = this.#frame();
    const unit = this.#unit();
    const left = box.x - frame.x * unit;
    const top = box.y - frame.y * unit;
    context.imageSmoothingQuality = 'high';
    context.drawImage(photo, left, top, photo.width * unit, photo.height * unit);
    context.beginPath();
    context.rect(0, 0, canvas.clientWidth, canvas.clientHeight);
    context.roundRect(box.x, box.y, box.width, box.height, 12);
    context.fillStyle = '#0009';
    context.fill('evenodd');
    context.beginPath();
    context.roundRect(box.x, box.y, box.width, box.height, 12);
    context.strokeStyle = '#fff';
    context.lineWidth = 2;
    context.stroke();
  }

  /**
   * @param {number} factor
   * @param {{ x: number, y: number }} [about] Stays where it is, in CSS pixels of the canvas.
   */
  #zoomBy(factor, about) {
    const box = this.#box();
    const x = (about?.x ?? box.x + box.width / 2) - (box.x + box.width / 2);
    const y = (about?.y ?? box.y + box.height / 2) - (box.y + box.height / 2);
    const { least, most } = this.zoomRange;
    const before = this.#unit();
    this.#zoom = clamp(this.#zoom * factor, least, most);
    const after = this.#unit();
    this.#at.x += x / before - x / after;
    this.#at.y += y / before - y / after;
    this.#change();
  }

  /** Moves the photo. @param {number} x @param {number} y CSS pixels */
  #moveBy(x, y) {
    this.#at.x -= x / this.#unit();
    this.#at.y -= y / this.#unit();
    this.#change();
  }

  /** @param {PointerEvent} event */
  #down(event) {
    this.#canvas.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.#grip = null;
    this.#movedPx = this.#pointers.size > 1 ? CLICK_PX : 0;
  }

  /**
   * The whole gesture is computed from its start: the fingers of a pinch come one by one, and what
   * the first of them alone would do may lie beyond the bounds of zoom and place.
   * @param {PointerEvent} event
   */
  #drag(event) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) {
      return;
    }
    const grip = this.#grip ?? this.#grasp();
    const now = { x: event.offsetX, y: event.offsetY };
    this.#pointers.set(event.pointerId, now);
    this.#movedPx += Math.hypot(now.x - before.x, now.y - before.y);
    const { least, most } = this.zoomRange;
    const { middle, apartPx } = this.#hand();
    this.#zoom = clamp((grip.zoom * apartPx) / grip.apartPx, least, most);
    const box = this.#box();
    const unit = this.#unit();
    this.#at.x = grip.place.x - (middle.x - box.x - box.width / 2) / unit;
    this.#at.y = grip.place.y - (middle.y - box.y - box.height / 2) / unit;
    this.#change();
    this.#grip = grip;
  }

  /** The middle of the fingers, and their mean distance from it, at least 1 CSS pixel. */
  #hand() {
    const points = [...this.#pointers.values()];
    const mean = (/** @type {number[]} */ values) =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    const middle = { x: mean(points.map(({ x }) => x)), y: mean(points.map(({ y }) => y)) };
    const apart = mean(points.map(({ x, y }) => Math.hypot(x - middle.x, y - middle.y)));
    return { middle, apartPx: Math.max(1, apart) };
  }

  /** What the fingers hold: a place of the photo, and the zoom at their distance. @returns {Grip} */
  #grasp() {
    const { middle, apartPx } = this.#hand();
    const box = this.#box();
    const unit = this.#unit();
    const place = {
      x: this.#at.x + (middle.x - box.x - box.width / 2) / unit,
      y: this.#at.y + (middle.y - box.y - box.height / 2) / unit,
    };
    return { place, apartPx, zoom: this.#zoom };
  }

  /** @param {number} pointerId @returns {boolean} whether it was down */
  #lift(pointerId) {
    this.#grip = null;
    return this.#pointers.delete(pointerId);
  }

  /** A click brings its place to the middle. @param {PointerEvent} event */
  #up(event) {
    if (this.#lift(event.pointerId) && this.#movedPx < CLICK_PX) {
      const box = this.#box();
      this.#moveBy(box.x + box.width / 2 - event.offsetX, box.y + box.height / 2 - event.offsetY);
    }
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    event.preventDefault();
    const steps = clamp(-event.deltaY / (event.deltaMode === 0 ? 100 : 3), -3, 3);
    this.#zoomBy(ZOOM_STEP ** steps, { x: event.offsetX, y: event.offsetY });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { width, height } = this.#box();
    const [x, y] = [width * KEY_STEP, height * KEY_STEP];
    /** @type {Record<string, () => void>} */
    const does = {
      ArrowLeft: () => this.#moveBy(x, 0),
      ArrowRight: () => this.#moveBy(-x, 0),
      ArrowUp: () => this.#moveBy(0, y),
      ArrowDown: () => this.#moveBy(0, -y),
      '+': () => this.#zoomBy(ZOOM_STEP),
      '=': () => this.#zoomBy(ZOOM_STEP),
      '-': () => this.#zoomBy(1 / ZOOM_STEP),
      0: () => this.#reset(),
    };
    if (does[event.key]) {
      event.preventDefault();
      does[event.key]?.();
    }
  }
}
