// What has been heard of a text: the words of each clause with the times at which they are spoken.

/** A word and the samples of its clause at which it begins. */
export interface TimedWord {
  readonly text: string;
  readonly startSample: number;
}

/** A clause that a voice speaks, or a reply in one piece. Its fields fill up as audio arrives. */
export interface SpokenClause {
  text: string;
  /** Samples of audio so far. */
  samples: number;
  /** All of its audio has arrived. */
  isComplete: boolean;
  /** From the voice's own alignment; empty: the words are shared out by their letters. */
  words: TimedWord[];
}

/** Letters a second of ordinary speech, for a clause whose audio has not all arrived. */
const LETTERS_PER_SECOND = 15;

/** A clause without audio yet. */
export const newClause = (text: string): SpokenClause => ({
  text,
  samples: 0,
  isComplete: false,
  words: [],
});

/**
 * The part of a clause that was heard, in whole words.
 * @param samples of the clause that were played
 * @param rate samples a second
 */
export function heardOf(clause: SpokenClause, samples: number, rate: number): string {
  if (samples <= 0) {
    return '';
  }
  if (clause.isComplete && samples >= clause.samples) {
    return clause.text;
  }
  if (clause.words.length > 0) {
    return clause.words
      .filter((word) => word.startSample < samples)
      .map((word) => word.text)
      .join('');
  }
  const expected = clause.isComplete
    ? clause.samples
    : Math.max(clause.samples, (clause.text.length / LETTERS_PER_SECOND) * rate);
  const letters = Math.floor((clause.text.length * samples) / expected);
  // A word counts once half of it was heard.
  let heard = 0;
  for (const word of clause.text.matchAll(/(?<!\s)\s*\S+/g)) {
    const end = word.index + word[0].length;
    if ((word.index + end) / 2 > letters) {
      break;
    }
    heard = end;
  }
  return clause.text.slice(0, heard);
}
