// Where the eyes look: mostly at the viewer, with small saccades over the viewer's face; aside while a
// phrase is being planned, and as the face begins to think; hardly ever while the viewer speaks.
import { FPS } from '../../../media/timeline.ts';
import type { Attention } from './attention.ts';
import type { Random } from './random.ts';
import type { SpeechRhythm } from './speech-rhythm.ts';

/** Seconds of a fixation on the viewer and aside. */
const AT_VIEWER: readonly [number, number] = [0.45, 1.7];
const ASIDE: readonly [number, number] = [0.35, 1.1];
/** Share of fixations aside. Speakers look away more often than listeners (A. Kendon 1967). */
const ASIDE_SPEAKING = 0.3;
const ASIDE_SILENT = 0.2;
const ASIDE_HEARING = 0.05;
/** Seconds of the glance with which thinking begins, and how far up it goes (up is negative). */
const THOUGHT: readonly [number, number] = [0.6, 1.2];
const THOUGHT_UP: readonly [number, number] = [-0.5, 0.1];
/** Probability of looking aside as a phrase begins, and of returning to the viewer as it ends. */
const ASIDE_AT_START = 0.35;
const BACK_AT_END = 0.8;
/** Half extent of the viewer's face, and of glances aside, in the eye's range. */
const FACE = { x: 0.1, y: 0.12 };
const GLANCE = { x: [0.4, 0.95], y: [-0.45, 0.45] } as const;
/** Share of the way per frame: a saccade takes 2 to 3 frames. */
const SACCADE = 0.62;
/** A saccade larger than this may come with a blink. */
const LARGE = 0.45;
/** While the head turns the eyes stay on the viewer: range of the eye per radian of the head. */
const COUNTER_YAW = 2.2;
const COUNTER_PITCH = 1.8;

/** The gaze stays where it is while it would move by less: eyes that look the same are not drawn. */
const LEAST = 0.04;

const follow = (from: number, to: number): number =>
  Math.abs(to - from) < LEAST ? from : Math.min(1, Math.max(-1, to));

/** The gaze of one session. */
export class Gaze {
  /** -1 to 1 of the eye's range; right and down positive. */
  x = 0;
  y = 0;
  /** A large saccade begins in this frame. */
  isShift = false;
  readonly #random: Random;
  #until: number;
  #to = { x: 0, y: 0 };
  #at = { x: 0, y: 0 };
  #isAside = false;

  constructor(random: Random, frame: number) {
    this.#random = random;
    this.#until = frame + FPS * random.between(...AT_VIEWER);
  }

  step(
    frame: number,
    rhythm: SpeechRhythm,
    attention: Attention,
    yaw: number,
    pitch: number,
  ): void {
    this.isShift = false;
    const random = this.#random;
    if (attention.thinkingBegins) {
      this.#look(frame, true, THOUGHT_UP, THOUGHT);
    } else if (attention.hearingBegins && this.#isAside) {
      this.#look(frame, false);
    } else if (rhythm.isPhraseEnd && this.#isAside && random.next() < BACK_AT_END) {
      this.#look(frame, false);
    } else if (rhythm.isPhraseStart && !this.#isAside && random.next() < ASIDE_AT_START) {
      this.#look(frame, true);
    } else if (frame >= this.#until) {
      const silent = attention.isHearing ? ASIDE_HEARING : ASIDE_SILENT;
      const share = rhythm.isPhrase ? ASIDE_SPEAKING : silent;
      this.#look(frame, !this.#isAside && random.next() < share);
    }
    const [to, at] = [this.#to, this.#at];
    at.x += (to.x - at.x) * SACCADE;
    at.y += (to.y - at.y) * SACCADE;
    this.x = follow(this.x, at.x - COUNTER_YAW * yaw);
    this.y = follow(this.y, at.y - COUNTER_PITCH * pitch);
  }

  /** @param up range of a glance aside @param seconds of the fixation */
  #look(
    frame: number,
    isAside: boolean,
    up: readonly [number, number] = GLANCE.y,
    seconds: readonly [number, number] = isAside ? ASIDE : AT_VIEWER,
  ): void {
    const random = this.#random;
    const x = isAside
      ? random.sign() * random.between(...GLANCE.x)
      : random.between(-FACE.x, FACE.x);
    const y = isAside ? random.between(...up) : random.between(-FACE.y, FACE.y);
    this.isShift = Math.hypot(x - this.#to.x, y - this.#to.y) > LARGE;
    this.#to = { x, y };
    this.#isAside = isAside;
    this.#until = frame + FPS * random.between(...seconds);
  }
}
