// Detects faces (BlazeFace) and locates their 468 landmarks (FaceMesh), on one core.
import path from 'node:path';
import ort from 'onnxruntime-node';
import { type Pyramid, type Square } from '../imaging/image.ts';
import { LANDMARK_COUNT, LEFT_EYE, RIGHT_EYE, type Landmarks, px, py } from './landmarks.ts';
import { PersonSegmenter } from './person-segmenter.ts';

/** One face that was found in a picture. */
export interface DetectedFace {
  /** In pixels of the picture. */
  readonly points: Landmarks;
  /** FaceMesh's score that there is a face, 0..1. */
  readonly confidence: number;
  /** Extent of the landmarks parallel to the eye line, pixels. */
  readonly width: number;
  /** Extent of the landmarks perpendicular to the eye line, pixels. */
  readonly height: number;
  /** Angle of the eye line, radians, clockwise positive. */
  readonly roll: number;
}

/** One box of the detector, in pixels of the picture. */
interface Candidate {
  readonly score: number;
  readonly cx: number;
  readonly cy: number;
  readonly size: number;
  readonly roll: number;
}

/** Input side of BlazeFace and of FaceMesh, pixels. */
const DETECTOR_SIZE = 256;
const MESH_SIZE = 192;
/** Least scores of BlazeFace and of FaceMesh, 0..1. */
const MIN_SCORE = 0.4;
const MIN_CONFIDENCE = 0.5;
/**
 * A face that is less sure than this is looked for in the picture turned by half, too. Of 155
 * portraits that stand upright all are surer (by 1e-6 at most), of those upside down none.
 */
const SURE_CONFIDENCE = 1 - 1e-5;
/**
 * Side of the input of FaceMesh in units of the landmarks' bounding box. Measured best; MediaPipe
 * uses the same.
 */
const MESH_MARGIN = 1.5;
/** Runs of FaceMesh per face, each on the square that the run before found. */
const REFINEMENTS = 3;
/** Boxes that FaceMesh examines per picture. */
const MAX_CANDIDATES = 12;

const DEFAULT_MODELS = path.resolve(import.meta.dirname, '../../../../models/build');

/** The networks of face creation. Load them once per thread. */
export class FaceLandmarker {
  readonly #detector: ort.InferenceSession;
  readonly #mesh: ort.InferenceSession;
  /** The network that tells people from their background: loaded along, as both are needed. */
  readonly segmenter: PersonSegmenter;

  private constructor(
    detector: ort.InferenceSession,
    mesh: ort.InferenceSession,
    segmenter: PersonSegmenter,
  ) {
    this.#detector = detector;
    this.#mesh = mesh;
    this.segmenter = segmenter;
  }

  /** @throws Error when the model files are missing: `npm run setup` makes them */
  static async load(folder: string = DEFAULT_MODELS): Promise<FaceLandmarker> {
    // One thread, because jobs run beside media workers, and a fixed order of sums makes the result
    // reproducible.
    const options: ort.InferenceSession.SessionOptions = {
      intraOpNumThreads: 1,
      interOpNumThreads: 1,
      executionMode: 'sequential',
    };
    const open = async (name: string): Promise<ort.InferenceSession> =>
      ort.InferenceSession.create(path.join(folder, `${name}.onnx`), options);
    return new FaceLandmarker(
      await open('blazeface'),
      await open('facemesh'),
      new PersonSegmenter(await open('selfie')),
    );
  }

  /**
   * Detects all faces. A picture that is upside down or on its side is searched as well; the roll
   * of its faces tells.
   * @returns the faces with the largest first; empty when there is none
   */
  async find(pyramid: Pyramid): Promise<DetectedFace[]> {
    const isSure = (faces: readonly DetectedFace[]): boolean =>
      (faces[0]?.confidence ?? 0) >= SURE_CONFIDENCE;
    const upright = await this.#findTurned(pyramid, 0);
    if (isSure(upright)) {
      return upright;
    }
    const turned = await this.#findTurned(pyramid, Math.PI);
    return isSure(turned) ? turned : upright;
  }

  /** Detects all faces in the picture turned by `angle`, radians. */
  async #findTurned(pyramid: Pyramid, angle: number): Promise<DetectedFace[]> {
    const { width, height } = pyramid.image;
    for (const windows of searchWindows(width, height, angle)) {
      const candidates: Candidate[] = [];
      for (const window of windows) {
        candidates.push(...(await this.#detect(pyramid, window)));
      }
      const faces: DetectedFace[] = [];
      for (const candidate of distinct(candidates)) {
        const face = await this.#landmarks(pyramid, candidate);
        if (face.confidence >= MIN_CONFIDENCE && !faces.some((other) => overlap(face, other))) {
          faces.push(face);
        }
      }
      if (faces.length > 0) {
        return faces.toSorted((a, b) => b.width * b.height - a.width * a.height);
      }
    }
    return [];
  }

  /** Locates the landmarks of a face whose position is known, for example after cropping. */
  async refine(pyramid: Pyramid, square: Square): Promise<DetectedFace> {
    return this.#landmarks(pyramid, {
      score: 1,
      cx: square.cx,
      cy: square.cy,
      size: square.side / MESH_MARGIN,
      roll: square.angle,
    });
  }

  /** Runs BlazeFace on one square of the picture. */
  async #detect(pyramid: Pyramid, window: Square): Promise<Candidate[]> {
    const pixels = pyramid.sample(window, DETECTOR_SIZE, 1 / 127.5, -1);
    const outputs = await this.#detector.run({
      [this.#detector.inputNames[0]!]: new ort.Tensor('float32', pixels, [
        1,
        DETECTOR_SIZE,
        DETECTOR_SIZE,
        3,
      ]),
    });
    const candidates: Candidate[] = [];
    const [cos, sin] = [Math.cos(window.angle), Math.sin(window.angle)];
    for (const anchors of [
      { count: 512, grid: 16, perCell: 2 },
      { count: 384, grid: 8, perCell: 6 },
    ]) {
      const tensors = Object.values(outputs).filter(({ dims }) => dims[1] === anchors.count);
      const scores = tensors.find(({ dims }) => dims[2] === 1)!.data as Float32Array;
      const boxes = tensors.find(({ dims }) => dims[2] === 16)!.data as Float32Array;
      for (let i = 0; i < anchors.count; i++) {
        const score = 1 / (1 + Math.exp(-scores[i]!));
        if (score < MIN_SCORE) {
          continue;
        }
        const cell = Math.floor(i / anchors.perCell);
        const ax = ((cell % anchors.grid) + 0.5) / anchors.grid;
        const ay = (Math.floor(cell / anchors.grid) + 0.5) / anchors.grid;
        const at = (k: number): number => boxes[i * 16 + k]! / DETECTOR_SIZE;
        // Layout of a box: centre, width, height, then six key points with the eyes first. All are
        // relative to the anchor.
        const u = (ax + at(0) - 0.5) * window.side;
        const v = (ay + at(1) - 0.5) * window.side;
        candidates.push({
          score,
          cx: window.cx + cos * u - sin * v,
          cy: window.cy + sin * u + cos * v,
          size: Math.max(at(2), at(3)) * window.side,
          roll: window.angle + Math.atan2(at(7) - at(5), at(6) - at(4)),
        });
      }
    }
    return candidates;
  }

  /** Runs FaceMesh on a candidate until its square has settled. */
  async #landmarks(pyramid: Pyramid, candidate: Candidate): Promise<DetectedFace> {
    let square: Square = {
      cx: candidate.cx,
      cy: candidate.cy,
      side: MESH_MARGIN * candidate.size,
      angle: candidate.roll,
    };
    let face: DetectedFace | undefined;
    for (let pass = 0; pass < REFINEMENTS; pass++) {
      face = await this.#meshOnce(pyramid, square);
      if (face.confidence < MIN_CONFIDENCE / 4) {
        return face;
      }
      square = squareAround(face, MESH_MARGIN);
    }
    return face!;
  }

  async #meshOnce(pyramid: Pyramid, square: Square): Promise<DetectedFace> {
    const pixels = pyramid.sample(square, MESH_SIZE, 1 / 255, 0);
    const outputs = Object.values(
      await this.#mesh.run({
        [this.#mesh.inputNames[0]!]: new ort.Tensor('float32', pixels, [
          1,
          MESH_SIZE,
          MESH_SIZE,
          3,
        ]),
      }),
    );
    const ofSize = (count: number): Float32Array =>
      outputs.find(({ size }) => size === count)!.data as Float32Array;
    const raw = ofSize(LANDMARK_COUNT * 3);
    const confidence = ofSize(1)[0]!;
    const scale = square.side / MESH_SIZE;
    const cos = Math.cos(square.angle) * scale;
    const sin = Math.sin(square.angle) * scale;
    const points = new Float32Array(LANDMARK_COUNT * 3);
    for (let i = 0; i < LANDMARK_COUNT; i++) {
      const u = raw[i * 3]! - MESH_SIZE / 2;
      const v = raw[i * 3 + 1]! - MESH_SIZE / 2;
      points[i * 3] = square.cx + cos * u - sin * v;
      points[i * 3 + 1] = square.cy + sin * u + cos * v;
      points[i * 3 + 2] = raw[i * 3 + 2]! * scale;
    }
    return { points, confidence, ...extent(points) };
  }
}

/** The smallest square aligned with the eye line that holds all landmarks, scaled by `margin`. */
export function squareAround({ points, roll }: DetectedFace, margin: number): Square {
  const box = bounds(points, roll);
  const u = (box.left + box.right) / 2;
  const v = (box.top + box.bottom) / 2;
  return {
    cx: Math.cos(roll) * u - Math.sin(roll) * v,
    cy: Math.sin(roll) * u + Math.cos(roll) * v,
    side: margin * Math.max(box.right - box.left, box.bottom - box.top),
    angle: roll,
  };
}

function extent(points: Landmarks): { width: number; height: number; roll: number } {
  const roll = Math.atan2(
    py(points, RIGHT_EYE.outer) - py(points, LEFT_EYE.outer),
    px(points, RIGHT_EYE.outer) - px(points, LEFT_EYE.outer),
  );
  const box = bounds(points, roll);
  return { width: box.right - box.left, height: box.bottom - box.top, roll };
}

function bounds(
  points: Landmarks,
  angle: number,
): { left: number; right: number; top: number; bottom: number } {
  const cos = Math.cos(angle);
  const sin = Math.sin(angle);
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < LANDMARK_COUNT; i++) {
    const u = cos * px(points, i) + sin * py(points, i);
    const v = -sin * px(points, i) + cos * py(points, i);
    left = Math.min(left, u);
    right = Math.max(right, u);
    top = Math.min(top, v);
    bottom = Math.max(bottom, v);
  }
  return { left, right, top, bottom };
}

/**
 * The squares to search, tried in this order until faces are found: the whole picture; a larger
 * square, for a face that fills the picture; overlapping parts, for small faces.
 */
function searchWindows(width: number, height: number, angle: number): Square[][] {
  const side = Math.max(width, height);
  const whole = { cx: width / 2, cy: height / 2, angle };
  const part = 0.5 * side;
  const steps = (length: number): number[] =>
    length <= part
      ? [length / 2]
      : Array.from(
          { length: Math.ceil((length / part) * 2) - 1 },
          (_, i, n = Math.ceil((length / part) * 2) - 2) =>
            part / 2 + ((length - part) * i) / Math.max(1, n),
        );
  const parts = steps(height).flatMap((cy) =>
    steps(width).map((cx) => ({ cx, cy, side: part, angle })),
  );
  return [[{ ...whole, side }], [{ ...whole, side: 1.7 * side }], parts];
}

/** Non-maximum suppression: keeps the best of the candidates that lie close together. */
function distinct(candidates: readonly Candidate[]): Candidate[] {
  const kept: Candidate[] = [];
  for (const candidate of candidates.toSorted((a, b) => b.score - a.score)) {
    if (kept.length === MAX_CANDIDATES) {
      break;
    }
    if (
      !kept.some(
        (other) =>
          Math.hypot(other.cx - candidate.cx, other.cy - candidate.cy) <
          0.5 * Math.max(other.size, candidate.size),
      )
    ) {
      kept.push(candidate);
    }
  }
  return kept;
}

/** Whether two detections are the same face. */
function overlap(a: DetectedFace, b: DetectedFace): boolean {
  const p = squareAround(a, 1);
  const q = squareAround(b, 1);
  return Math.hypot(p.cx - q.cx, p.cy - q.cy) < 0.5 * Math.max(p.side, q.side);
}
