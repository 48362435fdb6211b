// The articulation of a face at one instant, the output of the speech model: a vector of
// articulators, each 0 (rest) to 1 (full).

/**
 * The channels in the model's order. The first eleven are the articulators of Cohen and Massaro's
 * dominance model of coarticulation (1993) as used in `models/training`. Two follow the prosody,
 * and one is a gate.
 */
export const ARTICULATORS = [
  'jaw', // mandible drop
  'open', // lip aperture
  'press', // lips pressed together: p b m
  'round', // lip rounding and protrusion: o u w sh
  'wide', // lip corners apart: i e s
  'tuck', // lower lip under the upper teeth: f v
  'upraise', // upper lip raised
  'ttip', // tongue tip at the ridge: t d n l
  'tout', // tongue between the teeth: th
  'tback', // tongue back raised: k g
  'teeth', // teeth close together and visible: s z
  'brow', // eyebrow raise with pitch accents
  'nod', // head nod with stress
  'speech', // probability that somebody is speaking: gates the mouth
] as const;

/** Name of a channel. */
export type Articulator = (typeof ARTICULATORS)[number];

/** Number of channels: 14. */
export const ARTICULATION_SIZE = ARTICULATORS.length;

/** Index of each channel in ARTICULATORS. */
export const ARTICULATOR_INDEX = Object.freeze(
  Object.fromEntries(ARTICULATORS.map((name, index) => [name, index])) as Record<
    Articulator,
    number
  >,
);

/**
 * Channels of what the speech model does not drive: idle motion, gaze, nods with stress, and what
 * follows the jaw.
 */
export const POSE_CHANNELS = [
  'blinkLeft',
  'blinkRight', // 0 open .. 1 closed; left and right as the viewer sees them
  'gazeX',
  'gazeY', // -1 .. 1 of the eye's comfortable range, right and down positive
  'yaw',
  'pitch',
  'roll', // radians; within about ±0.1
  'shiftX',
  'shiftY', // pixels of a 512 picture
  'breath', // 0 .. 1 of a breath cycle's amplitude: shoulders and head rise
  'brow', // 0 .. 1 eyebrow raise
  'chin', // -1 .. 1: how much lower the skin of the chin is than the jaw alone would have it
] as const;

/** Name of a pose channel. */
export type PoseChannel = (typeof POSE_CHANNELS)[number];

/** Number of pose channels: 12. */
export const POSE_SIZE = POSE_CHANNELS.length;

/** Index of each channel in POSE_CHANNELS. */
export const POSE_INDEX = Object.freeze(
  Object.fromEntries(POSE_CHANNELS.map((name, index) => [name, index])) as Record<
    PoseChannel,
    number
  >,
);

/** Emotions of a session, in the order of the native renderer's indices. */
export const EMOTIONS = ['neutral', 'happy', 'sad', 'surprised', 'angry', 'calm'] as const;
/** Name of an emotion. */
export type Emotion = (typeof EMOTIONS)[number];

/** How much head and brows move: as people do who speak calmly to a camera, or less, or more. */
export const MOTIONS = ['none', 'calm', 'natural', 'lively'] as const;
/** Amount of motion. */
export type Motion = (typeof MOTIONS)[number];
