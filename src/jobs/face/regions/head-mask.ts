// Segments head, hair and body from the background: by a network, and by colour where the network is
// not sure, as in drawings. The border of the picture shows background, the face does not.
import { type Lab, labAt, median } from '../imaging/colour.ts';
import { blur, dilate, erode, indicesAbove } from '../imaging/mask.ts';
import { clamp, halve, type Plane, plane, type RgbImage, sampleAt } from '../imaging/image.ts';
import { CHIN, type Landmarks, NOSE_TIP, px, py } from '../detect/landmarks.ts';
import { distanceFrom, faceEllipse } from './face-ellipse.ts';

/** The head, segmented from the background. */
export interface HeadMask {
  /** 1 on head, hair and body, 0 on the background; size of the picture. */
  readonly mask: Plane;
  /** Whether the background has so little texture that one cannot see it bend. */
  readonly isBackgroundPlain: boolean;
}

/** Times the picture is halved for the mask, and for what colours tell. */
const MASK_HALVINGS = 1;
const COLOUR_HALVINGS = 2;
/** Colours of fewer pixels of background tell nothing. */
const LEAST_BACKGROUND = 60;
/** Colour clusters of the head and of the background each, and rounds of k-means. */
const CLUSTERS = 5;
const ROUNDS = 8;
/** Least spread of a cluster, in Lab units: sensor noise and compression. */
const MIN_SPREAD = 4;
/**
 * Below this 0.95 quantile of the colour steps between neighbours a background is plain; Lab units.
 */
const PLAIN_CONTRAST = 5;
/**
 * Colours decide where the network's probability is within .27 to .73: their score is 4 at most, and
 * so much is one unit of the probability's logarithmic odds.
 */
const LOGIT = 4;
/** Odds are not taken to be greater than 100. */
const SUREST = 0.99;

/** @param person probability of a person, 0..1, of any size */
export function segmentHead(image: RgbImage, points: Landmarks, person: Plane): HeadMask {
  let small = image;
  for (let k = 0; k < COLOUR_HALVINGS; k++) {
    small = halve(small);
  }
  const labs = Array.from({ length: small.width * small.height }, (_, i) => labAt(small, i));
  const colours = colourScore(labs, small, points);
  const scale = 2 ** MASK_HALVINGS;
  const raw = plane(image.width / scale, image.height / scale);
  const near = faceDistance(points, scale, raw.width, raw.height);
  for (let i = 0; i < raw.data.length; i++) {
    const x = ((i % raw.width) + 0.5) / raw.width;
    const y = (Math.floor(i / raw.width) + 0.5) / raw.height;
    const p = clamp(
      sampleAt(person, x * person.width - 0.5, y * person.height - 0.5),
      1 - SUREST,
      SUREST,
    );
    const colour = colours ? sampleAt(colours, x * small.width - 0.5, y * small.height - 0.5) : 0;
    raw.data[i] = near[i]! < 1 || LOGIT * Math.log(p / (1 - p)) + colour > 0 ? 1 : 0;
  }
  const mask = erode(dilate(connected(dilate(erode(raw, 1), 1), points, scale), 2), 2);
  return {
    mask: enlarge(mask, image.width, image.height, scale),
    isBackgroundPlain: contrast(labs, halved(mask), small.width) < PLAIN_CONTRAST,
  };
}

/**
 * @param labs colours of `small`
 * @returns for each pixel how much more its colour is of the head than of the background, -4 to 4;
 * undefined when hardly any background is seen
 */
function colourScore(
  labs: readonly Lab[],
  { width, height }: RgbImage,
  points: Landmarks,
): Plane | undefined {
  const scale = 2 ** COLOUR_HALVINGS;
  const near = faceDistance(points, scale, width, height);
  const shoulder = py(points, CHIN) / scale;
  const isBackground = (i: number): boolean => {
    const [x, y] = [i % width, Math.floor(i / width)];
    return near[i]! > 1.25 && (y < 3 || ((x < 5 || x >= width - 5) && y < shoulder));
  };
  const behind = labs.filter((_, i) => isBackground(i));
  if (behind.length < LEAST_BACKGROUND) {
    return undefined;
  }
  const background = cluster(behind);
  const head = cluster(
    labs.filter(
      (lab, i) =>
        near[i]! < 1 ||
        (near[i]! < 1.3 && Math.floor(i / width) < shoulder && nearest(background, lab) > 2.2),
    ),
  );
  const score = plane(width, height);
  for (let i = 0; i < labs.length; i++) {
    const prior = clamp((1.7 - near[i]!) * 1.2, -2.5, 1);
    score.data[i] = clamp(nearest(background, labs[i]!) - nearest(head, labs[i]!) + prior, -4, 4);
  }
  return blur(score, 1.2);
}

/**
 * Distance of each pixel from the centre of the face, in units of its outline: 0 in the centre, 1
 * on the outline.
 */
function faceDistance(
  points: Landmarks,
  scale: number,
  width: number,
  height: number,
): Float32Array {
  const face = faceEllipse(points);
  const out = new Float32Array(width * height);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      out[i] = distanceFrom(face, (x + 0.5) * scale, (y + 0.5) * scale);
    }
  }
  return out;
}

/** A colour with the typical distance of its samples, Lab units. */
interface Cluster {
  readonly centre: Lab;
  readonly spread: number;
}

/** k-means from evenly spaced starting points, so that the same picture gives the same clusters. */
function cluster(samples: readonly Lab[]): Cluster[] {
  const sorted = samples.toSorted((p, q) => p.l - q.l || p.a - q.a || p.b - q.b);
  let centres = Array.from(
    { length: CLUSTERS },
    (_, k) => sorted[Math.floor(((k + 0.5) / CLUSTERS) * sorted.length)]!,
  );
  let groups: Lab[][] = [];
  for (let round = 0; round < ROUNDS; round++) {
    groups = centres.map(() => []);
    for (const sample of samples) {
      let best = 0;
      for (let k = 1; k < centres.length; k++) {
        if (difference(sample, centres[k]!) < difference(sample, centres[best]!)) {
          best = k;
        }
      }
      groups[best]!.push(sample);
    }
    centres = centres.map((centre, k) => (groups[k]!.length === 0 ? centre : average(groups[k]!)));
  }
  return centres
    .map((centre, k) => ({
      centre,
      spread: Math.max(
        MIN_SPREAD,
        1.2 * median(groups[k]!.map((sample) => difference(sample, centre))),
      ),
      size: groups[k]!.length,
    }))
    .filter(({ size }) => size > 0.01 * samples.length);
}

// Math.hypot takes several times as long.
const difference = (p: Lab, q: Lab): number =>
  Math.sqrt((p.l - q.l) ** 2 + (p.a - q.a) ** 2 + (p.b - q.b) ** 2);

function average(group: readonly Lab[]): Lab {
  const sum = group.reduce(
    (total, { l, a, b }) => ({ l: total.l + l, a: total.a + a, b: total.b + b }),
    { l: 0, a: 0, b: 0 },
  );
  return { l: sum.l / group.length, a: sum.a / group.length, b: sum.b / group.length };
}

/** Distance to the nearest cluster, in spreads of that cluster. */
const nearest = (clusters: readonly Cluster[], lab: Lab): number =>
  Math.min(...clusters.map(({ centre, spread }) => difference(lab, centre) / spread));

/** The connected component that holds the face, with its holes filled. */
function connected(mask: Plane, points: Landmarks, scale: number): Plane {
  const { width, height } = mask;
  const start =
    clamp(Math.floor(py(points, NOSE_TIP) / scale), 0, height - 1) * width +
    clamp(Math.floor(px(points, NOSE_TIP) / scale), 0, width - 1);
  const body = flood(mask, [start], 1);
  const inverse = plane(width, height);
  for (let i = 0; i < inverse.data.length; i++) {
    inverse.data[i] = 1 - body.data[i]!;
  }
  const border = indicesAbove(
    inverse,
    0,
    (i) => i % width === 0 || i % width === width - 1 || i < width || i >= width * (height - 1),
  );
  const open = flood(inverse, border, 1);
  const filled = plane(width, height);
  for (let i = 0; i < filled.data.length; i++) {
    filled.data[i] = open.data[i] === 1 ? 0 : 1;
  }
  return filled;
}

/** Flood fill from `starts` over pixels of `value`. */
function flood({ width, height, data }: Plane, starts: readonly number[], value: number): Plane {
  const seen = plane(width, height);
  const stack = starts.filter((i) => data[i] === value);
  for (let i = stack.pop(); i !== undefined; i = stack.pop()) {
    if (seen.data[i] === 1) {
      continue;
    }
    seen.data[i] = 1;
    if (i % width > 0 && data[i - 1] === value) {
      stack.push(i - 1);
    }
    if (i % width < width - 1 && data[i + 1] === value) {
      stack.push(i + 1);
    }
    if (i >= width && data[i - width] === value) {
      stack.push(i - width);
    }
    if (i < width * (height - 1) && data[i + width] === value) {
      stack.push(i + width);
    }
  }
  return seen;
}

/** Half the size: a pixel is 1 when one of its four is. */
function halved({ width, height, data }: Plane): Plane {
  const out = plane(width / 2, height / 2);
  for (let i = 0; i < data.length; i++) {
    const at = (Math.floor(i / width) >> 1) * out.width + ((i % width) >> 1);
    out.data[at] = Math.max(out.data[at]!, data[i]!);
  }
  return out;
}

/**
 * The 0.95 quantile of the colour steps between neighbours in the background, Lab units; 0 when
 * there is no background.
 */
function contrast(labs: readonly Lab[], mask: Plane, width: number): number {
  const steps: number[] = [];
  const far = dilate(mask, 2);
  for (let i = width; i < labs.length; i++) {
    if (far.data[i]! > 0 || far.data[i - width]! > 0 || far.data[i - 1]! > 0) {
      continue;
    }
    steps.push(
      Math.max(difference(labs[i]!, labs[i - 1]!), difference(labs[i]!, labs[i - width]!)),
    );
  }
  return steps.length === 0 ? 0 : steps.toSorted((a, b) => a - b)[Math.floor(0.95 * steps.length)]!;
}

/** Scales the mask up to the size of the picture. */
function enlarge(mask: Plane, width: number, height: number, scale: number): Plane {
  const soft = blur(mask, 0.8);
  const out = plane(width, height);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      out.data[i] = sampleAt(soft, (x + 0.5) / scale - 0.5, (y + 0.5) / scale - 0.5) > 0.5 ? 1 : 0;
    }
  }
  return out;
}
