// The mattes of movement: how far each pixel follows the head, fully on the head, not at all in the
// background and on the body, with a soft transition; and how far the body follows the breath.
import { BREATH_CELL } from '../../../media/face-asset.ts';
import { segmentHead } from './head-mask.ts';
import { type Plane, plane, type RgbImage, sampleAt, smoothstep } from '../imaging/image.ts';
import { CHIN, NOSE_BRIDGE, type Landmarks, py } from '../detect/landmarks.ts';
import { distanceFrom, faceEllipse } from './face-ellipse.ts';

/** Which pixels move with the head. */
export interface HeadMatte {
  /** One weight 0..255 per pixel; neighbours differ by MAX_STEP at most. */
  readonly weight: Uint8Array;
  /** The same of the shoulders and the chest, which follow the breath: see `FaceAssetParts`. */
  readonly shoulders: Uint8Array;
  /**
   * 0..1: scale of the head movement. A busy background bends visibly and allows less.
   */
  readonly motionScale: number;
}

/**
 * Greatest difference of the weights of neighbours: steeper mattes tear the picture when it is
 * warped.
 */
export const MAX_STEP = 7.9;
/**
 * Transition from head to background: its begin, pixels from the outline, and its width. Outside the
 * outline where the background is plain; where it is busy, mostly inside the hair: of lines beside a
 * head that bend judges saw more than of hair (docs/faces-judged.md, round 24). `face` is where that
 * of the face begins, which always follows, in units of its ellipse.
 */
const PLAIN_RAMP = { start: 0, width: 34, face: 1 };
const BUSY_RAMP = { start: -28, width: 34, face: 0.94 };
/** The matte is computed at half size: it is soft, so no detail is lost. */
const SHRINK = 2;

/**
 * @param person probability of a person, 0..1, of any size
 * @param isReplaced whether a plain or blurred background is shown, and not the one in `image`
 */
export function headMatte(
  image: RgbImage,
  points: Landmarks,
  person: Plane,
  isReplaced = false,
): HeadMatte {
  const face = faceEllipse(points);
  const head = segmentHead(image, points, person);
  const width = image.width / SHRINK;
  const height = image.height / SHRINK;
  const isPlain = isReplaced || head.isBackgroundPlain;
  const ramp = isPlain ? PLAIN_RAMP : BUSY_RAMP;
  const distance = signedDistance(shrink(head.mask));
  const chin = py(points, CHIN);
  const neck = 0.55 * (chin - py(points, NOSE_BRIDGE));
  const weight = plane(width, height);
  const shoulders = plane(width, height);
  for (let i = 0; i < weight.data.length; i++) {
    const x = ((i % width) + 0.5) * SHRINK;
    const y = (Math.floor(i / width) + 0.5) * SHRINK;
    // Down the neck the movement ends before the shoulders. Beside the neck the shoulders begin
    // higher; hair that lies on them does not move.
    const aside = smoothstep(0.55, 1.25, Math.abs(x - face.x) / face.rx);
    const collar = chin + (0.05 - 0.45 * aside) * neck;
    const hold = 1 - smoothstep(collar, collar + Math.max(52, (1 - 0.3 * aside) * neck), y);
    const r = distanceFrom(face, x, y);
    const outline = 1 - smoothstep(ramp.start, ramp.start + ramp.width, distance[i]! * SHRINK);
    // The face always follows. Far from the face nothing does, whatever the mask says.
    const core = 1 - smoothstep(ramp.face, ramp.face + ramp.width / face.rx, r);
    weight.data[i] = 255 * hold * Math.max(outline * (1 - smoothstep(2.0, 2.6, r)), core);
    // Straight below the face there is a body, whatever the mask says.
    const torso = 1 - smoothstep(0.6, 1.1, Math.abs(x - face.x) / face.rx);
    shoulders.data[i] = 255 * (1 - hold) * Math.max(outline, torso);
  }
  fadeToBorder(weight);
  limitSteps(weight, MAX_STEP * SHRINK);
  return {
    weight: enlarge(weight, image.width, image.height),
    shoulders: cells(shoulders),
    motionScale: isPlain ? 1 : 0.75,
  };
}

/** Takes every SHRINK-th pixel. */
function shrink(mask: Plane): Plane {
  const out = plane(mask.width / SHRINK, mask.height / SHRINK);
  for (let i = 0; i < out.data.length; i++) {
    out.data[i] =
      mask.data[Math.floor(i / out.width) * SHRINK * mask.width + (i % out.width) * SHRINK]!;
  }
  return out;
}

/** The least weight of each cell of BREATH_CELL squared pixels. */
function cells({ width, height, data }: Plane): Uint8Array {
  const side = BREATH_CELL / SHRINK;
  const across = width / side;
  const out = new Uint8Array(across * (height / side)).fill(255);
  for (let i = 0; i < data.length; i++) {
    const at = Math.floor(i / width / side) * across + Math.floor((i % width) / side);
    out[at] = Math.min(out[at]!, data[i]!);
  }
  return out;
}

/** Scales a matte up (bilinear) and rounds it to 0..255. */
function enlarge(weight: Plane, width: number, height: number): Uint8Array {
  const out = new Uint8Array(width * height);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      out[i] = sampleAt(weight, (x + 0.5) / SHRINK - 0.5, (y + 0.5) / SHRINK - 0.5) + 0.5;
    }
  }
  return out;
}

/**
 * Signed distance to the outline of the mask, pixels, negative inside. Chamfer distance with steps
 * 1 and √2 (Borgefors 1986).
 */
function signedDistance({ width, height, data }: Plane): Float32Array {
  const out = plane(width, height);
  const inside = plane(width, height);
  for (let i = 0; i < data.length; i++) {
    (data[i]! > 0.5 ? inside : out).data[i] = 1e6;
  }
  limitRise(out, 1, Math.SQRT2);
  limitRise(inside, 1, Math.SQRT2);
  return out.data.map((value, i) => (value > 0 ? value - 0.5 : 0.5 - inside.data[i]!));
}

/**
 * Lowers each value to that of any neighbour plus a step: one pass forwards, one backwards.
 * @param straight the step to neighbours in the row and the column
 * @param diagonal the step to the four others
 */
function limitRise({ width, height, data }: Plane, straight: number, diagonal: number): void {
  /** @param from -1: neighbours on the left and in the row above, 1: on the right and below */
  const lower = (x: number, y: number, from: -1 | 1): void => {
    const i = y * width + x;
    let value = data[i]!;
    if (x + from >= 0 && x + from < width) {
      value = Math.min(value, data[i + from]! + straight);
    }
    if (y + from >= 0 && y + from < height) {
      const j = i + from * width;
      value = Math.min(value, data[j]! + straight);
      value = x > 0 ? Math.min(value, data[j - 1]! + diagonal) : value;
      value = x < width - 1 ? Math.min(value, data[j + 1]! + diagonal) : value;
    }
    data[i] = value;
  };
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      lower(x, y, -1);
    }
  }
  for (let y = height - 1; y >= 0; y--) {
    for (let x = width - 1; x >= 0; x--) {
      lower(x, y, 1);
    }
  }
}

/**
 * Fades the matte to 0 at the border of the picture: there are no pixels outside that could move
 * in. At the upper edge, which cuts off many heads, the renderer lets nothing move down or up.
 */
function fadeToBorder({ width, height, data }: Plane): void {
  for (let i = 0; i < data.length; i++) {
    const x = i % width;
    const y = Math.floor(i / width);
    data[i] = Math.min(data[i]!, MAX_STEP * SHRINK * Math.min(x, width - 1 - x, height - 1 - y));
  }
}

/** Limits the difference between neighbours to `step`. */
export const limitSteps = (weight: Plane, step: number): void => limitRise(weight, step, step);
