// What the speech model says of a face at one instant: a fixed vector of articulators, each 0 (rest) to 1 (full).

/**
 * The channels in the order in which the model emits them. The first eleven are the articulators of Cohen and Massaro's
 * dominance model of coarticulation (1993) as used in `models/training`; then two that follow prosody, and a gate.
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

export type Articulator = (typeof ARTICULATORS)[number];

export const ARTICULATION_SIZE = ARTICULATORS.length;

export const ARTICULATOR_INDEX = Object.freeze(
  Object.fromEntries(ARTICULATORS.map((name, index) => [name, index])) as Record<
    Articulator,
    number
  >,
);

/** Channels of head and eyes, which no speech model drives: idle life, gaze and the response to stress. */
export const POSE_CHANNELS = [
  'blinkLeft',
  'blinkRight', // 0 open .. 1 closed; left and right as the viewer sees them
  'gazeX',
  'gazeY', // -1 .. 1 of the eye's comfortable range, right and down positive
  'yaw',
  'pitch',
  'roll', // radians; within about ±0.06
  'shiftX',
  'shiftY', // pixels of a 512 picture
  'breath', // 0 .. 1 of a breath cycle's amplitude: shoulders and head rise
  'brow', // 0 .. 1 eyebrow raise
] as const;

export type PoseChannel = (typeof POSE_CHANNELS)[number];

export const POSE_SIZE = POSE_CHANNELS.length;

export const POSE_INDEX = Object.freeze(
  Object.fromEntries(POSE_CHANNELS.map((name, index) => [name, index])) as Record<
    PoseChannel,
    number
  >,
);

export const EMOTIONS = ['neutral', 'happy', 'sad', 'surprised', 'angry', 'calm'] as const;
export type Emotion = (typeof EMOTIONS)[number];
