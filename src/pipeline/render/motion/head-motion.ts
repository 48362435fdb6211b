// How the head of one session moves: posture, gestures at stressed syllables, nods with loudness.
// Amounts are fitted to people who speak calmly to a camera (docs/motion.md).
import { FPS } from '../../../media/timeline.ts';
import type { Attention } from './attention.ts';
import type { Random } from './random.ts';
import type { SpeechRhythm } from './speech-rhythm.ts';
import { Spring } from './spring.ts';

/** Axes of the head: angles in radians, translations in pixels of a 512 picture. */
const AXES = ['yaw', 'pitch', 'roll', 'shiftX', 'shiftY'] as const;
/** One of AXES. */
export type Axis = (typeof AXES)[number];

/**
 * Standard deviations while speaking. `posture` lies below 0.5 Hz, `gesture` from 0.5 to 2 Hz,
 * `tremor` above.
 */
const AMOUNTS: Readonly<Record<Axis, { posture: number; gesture: number; tremor: number }>> = {
  yaw: { posture: 0.008, gesture: 0.0285, tremor: 0.0016 },
  pitch: { posture: 0.005, gesture: 0.009, tremor: 0.0009 },
  roll: { posture: 0.006, gesture: 0.014, tremor: 0.0008 },
  shiftX: { posture: 1.8, gesture: 3.6, tremor: 0.12 },
  shiftY: { posture: 1.2, gesture: 0.9, tremor: 0.07 },
};
/** What one axis takes over from another: people turn, lean and nod with the whole upper body. */
const COUPLINGS: readonly (readonly [to: Axis, from: Axis, low: number, high: number])[] = [
  ['yaw', 'shiftX', 0.15, 0.5],
  ['roll', 'shiftX', -0.5, 0.5],
  ['roll', 'yaw', -0.4, 0.4],
  ['pitch', 'shiftY', 0.2, 0.5],
  ['shiftY', 'yaw', -0.3, 0.3],
];
/** The same with places in AXES, and the ratio of the axes' gestures. */
const COUPLED = COUPLINGS.map(([to, from]) => ({
  to: AXES.indexOf(to),
  from: AXES.indexOf(from),
  scale: AMOUNTS[to].gesture / AMOUNTS[from].gesture,
}));

const POSTURE_HZ = 0.33;
const GESTURE_HZ = 1.5;
const GESTURE_DAMPING = 0.72;
const TREMOR_HZ = 2.8;
const TREMOR_DAMPING = 0.3;
/** Of what drives the tremor, in standard deviations: always, and in a head about to speak. */
const TREMOR = 4.2;
const HELD_TREMOR = 1.4;
/** After so many frames a head that is about to speak moves as in silence. */
const LONGEST_HOLD = 3 * FPS;
const LOUDNESS_HZ = 1.15;
/** A gesture leads back over the middle by about this share of the last one. */
const RETURN = 0.6;
/** A gesture goes no farther than this, in standard deviations. */
const FARTHEST = 2.1;
/** Seconds between changes of posture, besides those at ends of phrases. */
const POSTURE_SPEAKING: readonly [number, number] = [1.6, 4.5];
const POSTURE_SILENT: readonly [number, number] = [2.5, 7];
const GESTURE_SILENT: readonly [number, number] = [0.9, 2.8];
/** Seconds between two nods of a listener. */
const LISTENING_NOD: readonly [number, number] = [5, 14];
/** The same while somebody speaks to the face, and until the first. */
const HEARING_NOD: readonly [number, number] = [2, 5];
const FIRST_HEARING_NOD: readonly [number, number] = [0.7, 2];
/** Strengths of a listener's nods. Those to a speaker may come in twos, the second one smaller. */
const LISTENING_STRENGTH = 0.35;
const HEARING_STRENGTH: readonly [number, number] = [0.45, 0.75];
const SECOND_NOD = { share: 0.45, strength: 0.6 };
/**
 * Amount of motion in silence, as a share of that in speech; reached in so many seconds. Loudness
 * and nods move the vertical axes in speech, and nothing in silence: so these keep more.
 */
const SILENT: Readonly<Record<Axis, number>> = {
  yaw: 0.3,
  pitch: 0.6,
  roll: 0.3,
  shiftX: 0.3,
  shiftY: 0.45,
};
const LIVELIER_SECONDS = 0.7;
const CALMER_SECONDS = 1.6;
/** Pitch and lowering of a nod on the strongest stress: radians, pixels. */
const NOD = { pitch: 0.06, shiftY: 1.6 };
/** Pitch and lowering at full loudness. */
const LOUD = { pitch: 0.5, shiftY: 42 };
const MEAN_LOUDNESS = 0.18;

/** What makes one speaker differ from another, drawn once for each session. */
interface Manner {
  /** Factor of each axis. */
  readonly strength: readonly number[];
  /** Factor of what each coupling takes over. */
  readonly couplings: readonly number[];
  /** Whether loud means down (1) or up (-1), and how strongly. */
  readonly loudDown: number;
  /** Share of stresses with a nod. */
  readonly nods: number;
  readonly nodFrames: number;
}

/** One axis by itself. */
interface Sway {
  readonly posture: Spring;
  readonly gesture: Spring;
  readonly tremor: Spring;
}

/** Moves the head of one session, frame by frame. Deterministic. */
export class HeadMotion {
  readonly #random: Random;
  readonly #manner: Manner;
  readonly #axes: readonly Sway[];
  readonly #loud = new Spring(LOUDNESS_HZ, 0.9);
  /** Displacement of each axis by itself. */
  readonly #swayed = new Float64Array(AXES.length);
  readonly #values = new Float64Array(AXES.length);
  #speaking = 0;
  #nextPosture = 0;
  #nextGesture = 0;
  #nextNod: number;
  #nodAt = Infinity;
  #nodStrength = 0;
  /** The present nod is followed by another one. */
  #nodsTwice = false;
  #frame = 0;
  #heldFrames = 0;
  /** A nod begins in this frame. */
  isNod = false;

  constructor(random: Random) {
    this.#random = random;
    this.#manner = {
      strength: AXES.map(() => random.between(0.8, 1.2)),
      couplings: COUPLINGS.map(([, , low, high]) => random.between(low, high)),
      loudDown: random.between(0.75, 1.25) * (random.next() < 0.7 ? 1 : -1),
      nods: random.between(0.45, 0.85),
      nodFrames: random.between(0.36, 0.52) * FPS,
    };
    this.#axes = AXES.map(() => ({
      posture: new Spring(POSTURE_HZ, 1),
      gesture: new Spring(GESTURE_HZ, GESTURE_DAMPING),
      tremor: new Spring(TREMOR_HZ, TREMOR_DAMPING),
    }));
    this.#nextNod = random.between(...LISTENING_NOD) * FPS;
  }

  /** @returns the displacement along `axis` after the last step */
  of(axis: Axis): number {
    return this.#values[AXES.indexOf(axis)]!;
  }

  step(rhythm: SpeechRhythm, attention: Attention): void {
    this.#frame++;
    this.#follow(rhythm);
    if (!this.#hold(rhythm, attention)) {
      this.#decide(rhythm);
      this.#listen(rhythm, attention);
    }
    this.#sway();
    this.#nod(rhythm);
  }

  /** Livelier with speech, calmer in silence. */
  #follow({ isPhrase }: SpeechRhythm): void {
    const step = 1 / FPS / (isPhrase ? LIVELIER_SECONDS : CALMER_SECONDS);
    this.#speaking = Math.min(1, Math.max(0, this.#speaking + (isPhrase ? step : -step)));
  }

  /**
   * Before they speak people are still: the head comes to rest where it is.
   * @returns whether it is held
   */
  #hold({ isAwaited }: SpeechRhythm, { isThinking }: Attention): boolean {
    this.#heldFrames = isAwaited || isThinking ? this.#heldFrames + 1 : 0;
    if (this.#heldFrames === 1) {
      for (const { posture, gesture } of this.#axes) {
        posture.rest();
        gesture.rest();
      }
    }
    this.isNod = false;
    return this.#isHeld;
  }

  get #isHeld(): boolean {
    return this.#heldFrames > 0 && this.#heldFrames < LONGEST_HOLD;
  }

  /** New targets where the speech gives a reason for them, else now and then. */
  #decide({ stress, isPhrase, isPhraseEnd }: SpeechRhythm): void {
    const random = this.#random;
    const frame = this.#frame;
    if (isPhraseEnd || frame >= this.#nextPosture) {
      for (const { posture, gesture } of this.#axes) {
        posture.target = 1.75 * random.normal();
        gesture.target *= isPhraseEnd ? 0.3 : 1;
      }
      const gap = isPhrase ? POSTURE_SPEAKING : POSTURE_SILENT;
      this.#nextPosture = frame + FPS * random.between(...gap);
    }
    if (stress > 0 || (!isPhrase && frame >= this.#nextGesture)) {
      const size = 1.5 * (stress > 0 ? 0.6 + 0.8 * stress : 1);
      for (const { gesture } of this.#axes) {
        const target = size * random.normal() - RETURN * gesture.target;
        gesture.target = Math.min(FARTHEST, Math.max(-FARTHEST, target));
      }
      this.#nextGesture = frame + FPS * random.between(...GESTURE_SILENT);
    }
    if (stress > 0 && frame >= this.#nodAt + this.#manner.nodFrames) {
      this.#nodAt = Infinity;
    }
    this.isNod = this.#nodAt === Infinity && stress > 0 && random.next() < this.#manner.nods;
    if (this.isNod) {
      this.#nodAt = frame;
      // Who goes up with the loudness goes up on a stress as well.
      this.#nodStrength = stress * Math.sign(this.#manner.loudDown);
    }
  }

  /** Nods now and then in silence, and more often to somebody who speaks. */
  #listen({ isPhrase }: SpeechRhythm, { isHearing, hearingBegins }: Attention): void {
    const random = this.#random;
    const frame = this.#frame;
    if (hearingBegins) {
      this.#nextNod = frame + FPS * random.between(...FIRST_HEARING_NOD);
    }
    if (isPhrase || frame < this.#nextNod) {
      return;
    }
    if (this.#nodAt === Infinity) {
      this.isNod = true;
      this.#nodAt = frame;
      this.#nodStrength = isHearing ? random.between(...HEARING_STRENGTH) : LISTENING_STRENGTH;
      this.#nodsTwice = isHearing && random.next() < SECOND_NOD.share;
    }
    const gap = isHearing ? HEARING_NOD : LISTENING_NOD;
    this.#nextNod = frame + FPS * random.between(...gap);
  }

  #sway(): void {
    const { strength, couplings } = this.#manner;
    const speaking = this.#speaking * this.#speaking * (3 - 2 * this.#speaking);
    // By index: iterators would allocate 2 KB for each frame.
    for (let k = 0; k < AXES.length; k++) {
      const axis = this.#axes[k]!;
      const { posture, gesture, tremor } = AMOUNTS[AXES[k]!];
      const silent = SILENT[AXES[k]!];
      axis.tremor.target = (this.#isHeld ? HELD_TREMOR : TREMOR) * this.#random.normal();
      this.#swayed[k] =
        (silent + (1 - silent) * speaking) *
        strength[k]! *
        (posture * axis.posture.step() +
          gesture * axis.gesture.step() +
          tremor * axis.tremor.step());
    }
    this.#values.set(this.#swayed);
    for (let c = 0; c < COUPLED.length; c++) {
      const { to, from, scale } = COUPLED[c]!;
      this.#values[to]! += couplings[c]! * scale * this.#swayed[from]!;
    }
  }

  #nod({ loudness, isPhrase }: SpeechRhythm): void {
    this.#loud.target = isPhrase ? loudness - MEAN_LOUDNESS : 0;
    const loud = this.#loud.step() * this.#manner.loudDown;
    const at = (this.#frame - this.#nodAt) / this.#manner.nodFrames;
    const nod = at > 0 && at < 1 ? this.#nodStrength * Math.sin(Math.PI * at) ** 2 : 0;
    if (at >= 1) {
      this.#nodAt = this.#nodsTwice ? this.#frame : Infinity;
      this.#nodStrength *= SECOND_NOD.strength;
      this.#nodsTwice = false;
    }
    this.#values[AXES.indexOf('pitch')]! += NOD.pitch * nod + LOUD.pitch * loud;
    this.#values[AXES.indexOf('shiftY')]! += NOD.shiftY * nod + LOUD.shiftY * loud;
  }
}
