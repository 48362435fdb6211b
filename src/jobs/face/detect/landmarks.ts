// The 468 landmarks of MediaPipe FaceMesh: which index lies where.

/**
 * Shape [468 * 3]: x, y, z of each landmark, in pixels. x points right, y down, z away from the
 * viewer.
 */
export type Landmarks = Float32Array;

export const LANDMARK_COUNT = 468;

/** Coordinates of one landmark, pixels. */
export const px = (points: Landmarks, index: number): number => points[index * 3]!;
export const py = (points: Landmarks, index: number): number => points[index * 3 + 1]!;
export const pz = (points: Landmarks, index: number): number => points[index * 3 + 2]!;

// Left and right are the viewer's.

/** Outline of the face, clockwise from the top of the forehead, 36 points. */
export const FACE_OVAL = [
  10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377, 152, 148,
  176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109,
] as const;

// Lip contours from the left corner to the right one, 11 points each. Upper and lower share the
// corners.
export const UPPER_INNER = [78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308] as const;
export const LOWER_INNER = [78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308] as const;
export const UPPER_OUTER = [61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291] as const;
export const LOWER_OUTER = [61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291] as const;

// Landmarks of the mouth on both sides: the corners of the outer and of the inner contour, and the
// middle of the upper and of the lower inner contour.
export const MOUTH_CORNERS = [61, 291] as const;
export const INNER_CORNERS = [78, 308] as const;
export const INNER_MIDDLES = [13, 14] as const;

/** All landmarks of a lip without the corners. */
export const LOWER_LIP: ReadonlySet<number> = new Set([
  146, 91, 181, 84, 17, 314, 405, 321, 375, 77, 90, 180, 85, 16, 315, 404, 320, 307, 96, 89, 179,
  86, 15, 316, 403, 319, 325, 95, 88, 178, 87, 14, 317, 402, 318, 324,
]);
export const UPPER_LIP: ReadonlySet<number> = new Set([
  185, 40, 39, 37, 0, 267, 269, 270, 409, 184, 74, 73, 72, 11, 302, 303, 304, 408, 183, 42, 41, 38,
  12, 268, 271, 272, 407, 191, 80, 81, 82, 13, 312, 311, 310, 415,
]);

/** Landmarks of one eye: indices of the FaceMesh topology. */
export interface EyeIndices {
  /** The outer and the inner corner. */
  readonly outer: number;
  readonly inner: number;
  /** Lid margins from the outer to the inner corner, without the corners. */
  readonly upper: readonly number[];
  readonly lower: readonly number[];
  /**
   * Rows of landmarks round the eye: the crease of the upper lid, the row between crease and brow,
   * and the row under the eye.
   */
  readonly crease: readonly number[];
  readonly aboveCrease: readonly number[];
  readonly under: readonly number[];
}

export const LEFT_EYE: EyeIndices = {
  outer: 33,
  inner: 133,
  upper: [246, 161, 160, 159, 158, 157, 173],
  lower: [7, 163, 144, 145, 153, 154, 155],
  crease: [247, 30, 29, 27, 28, 56, 190],
  aboveCrease: [113, 225, 224, 223, 222, 221, 189],
  under: [110, 24, 23, 22, 26, 112, 243],
};
export const RIGHT_EYE: EyeIndices = {
  outer: 263,
  inner: 362,
  upper: [466, 388, 387, 386, 385, 384, 398],
  lower: [249, 390, 373, 374, 380, 381, 382],
  crease: [467, 260, 259, 257, 258, 286, 414],
  aboveCrease: [342, 445, 444, 443, 442, 441, 413],
  under: [339, 254, 253, 252, 256, 341, 463],
};

// Single landmarks along the middle of the face, and at its sides.
/** The nose from its bridge round its wings. */
export const NOSE_OUTLINE = [6, 420, 358, 327, 2, 98, 129, 198] as const;
/** Where the left and the right wing of the nose are widest. */
export const NOSE_WINGS = [129, 358] as const;
export const NOSE_BASE = 2;
export const NOSE_TIP = 1;
export const NOSE_BRIDGE = 168;
export const BROW_MIDDLE = 8;
export const NOSE_BACK = 5;
export const CHIN = 152;
export const FOREHEAD = 10;
export const LEFT_SIDE = 234;
export const RIGHT_SIDE = 454;
/** Two landmarks on each cheek, the upper ones first. */
export const CHEEKS = [50, 280, 205, 425] as const;
/**
 * Skin of the upper face, where masks, glasses and most beards do not reach: on the forehead and
 * round the inner ends of the brows, and below the eyes.
 */
export const FOREHEAD_SKIN = [151, 69, 299, 108, 337, 9, 107, 336] as const;
export const UNDER_EYES = [230, 450] as const;
/** Outline of the cheeks, the skin round the lips and the chin, without the nose. */
export const LOWER_FACE = [
  117, 123, 147, 213, 192, 214, 210, 211, 32, 208, 199, 428, 262, 431, 430, 434, 416, 433, 376, 352,
  346, 347, 330, 266, 425, 327, 2, 98, 205, 36, 101, 118,
] as const;
