// The rhythm of the speech, for what moves with it: loudness, stressed syllables, phrases.
import { FPS } from '../../../media/timeline.ts';

/** Shares of the way per frame of the fast and the slow mean of the loudness: .06 s and .6 s. */
const FAST = 0.45;
const SLOW = 0.055;
/** A syllable is stressed when the fast mean exceeds the slow one by this while it rises. */
const STRESS = 0.055;
/** Excess of the strongest stress. */
const STRONGEST = 0.3;
/** Least distance of two stresses, frames. */
const REFRACTORY = 0.3 * FPS;
/** Without a stress for so long one is made up, frames: nobody speaks that evenly. */
const EVEN_SPEECH = 1.3 * FPS;
/** A phrase ends with a pause of this length, frames, after this much speech. */
const PAUSE = 0.17 * FPS;
const SHORTEST_PHRASE = 0.7 * FPS;
/** Below this the speech pauses. */
const QUIET = 0.035;

/** Follows the loudness that the speech model gives out as `nod`, frame by frame. */
export class SpeechRhythm {
  /** Loudness, 0 to about 0.6, smoothed over a syllable. */
  loudness = 0;
  /** Strength of the stress that begins in this frame, 0 to 1; 0: none does. */
  stress = 0;
  /** A phrase ends in this frame. */
  isPhraseEnd = false;
  /** A phrase begins in this frame. */
  isPhraseStart = false;
  /** Within a phrase. */
  isPhrase = false;
  /** The face is about to speak: an utterance has begun, its first phrase has not. */
  isAwaited = false;
  #mean = 0;
  #sinceStress = 0;
  #quiet = 0;
  #spoken = 0;
  #wasSpeaking = false;

  step(isSpeaking: boolean, nod: number): void {
    const before = this.loudness;
    this.loudness += (nod - this.loudness) * FAST;
    this.#mean += (this.loudness - this.#mean) * SLOW;
    this.#findPhrase(isSpeaking, nod);
    this.#sinceStress++;
    this.stress = 0;
    if (!this.isPhrase) {
      return;
    }
    const excess = this.loudness - this.#mean;
    if (excess > STRESS && this.loudness > before && this.#sinceStress > REFRACTORY) {
      this.stress = Math.min(1, 0.3 + excess / STRONGEST);
    } else if (this.#sinceStress > EVEN_SPEECH) {
      this.stress = 0.3;
    }
    if (this.stress > 0) {
      this.#sinceStress = 0;
    }
  }

  #findPhrase(isSpeaking: boolean, nod: number): void {
    this.#quiet = nod < QUIET ? this.#quiet + 1 : 0;
    const was = this.isPhrase;
    this.isAwaited = isSpeaking && (this.isAwaited || !this.#wasSpeaking) && nod < QUIET;
    this.#wasSpeaking = isSpeaking;
    this.isPhrase = isSpeaking && (was ? this.#quiet < PAUSE : nod >= QUIET);
    this.#spoken = this.isPhrase ? this.#spoken + 1 : was ? this.#spoken : 0;
    this.isPhraseStart = this.isPhrase && !was;
    this.isPhraseEnd = was && !this.isPhrase && this.#spoken >= SHORTEST_PHRASE;
    if (this.isPhraseStart) {
      this.#spoken = 0;
    }
  }
}
