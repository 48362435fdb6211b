// How far a face moves for what the speech model gives.
import { ARTICULATOR_INDEX } from '../../media/articulation.ts';

/** What is shown for what the model gives: through 0, and linear between the points. */
interface Curve {
  readonly channel: number;
  readonly given: readonly number[];
  readonly shown: readonly number[];
}

const { jaw, open, round, wide, tuck } = ARTICULATOR_INDEX;
/**
 * The model gives a mean of what people do, so most of its values are too near their middle: of 700
 * recordings nine tenths of the speech open by less than .47, and mouths that do no more mumble
 * beside those of the people who speak (openings and widths vary half as much). So the middle is
 * stretched. Beyond it a face goes only as far as a painted mouth convinces: with all that the model
 * gives "aa" was an arch with hanging corners, "ow" a dark narrow hole, and "f" had hardly a lip
 * (docs/faces-judged.md, rounds 16, 17, 31 and 32).
 */
const CURVES: readonly Curve[] = [
  { channel: open, given: [0.2, 0.45, 1], shown: [0.2, 0.58, 0.78] },
  { channel: wide, given: [0.25, 0.5, 1], shown: [0.25, 0.65, 1] },
  { channel: jaw, given: [0.15, 0.4, 1], shown: [0.07, 0.26, 0.4] },
  { channel: round, given: [0.25, 0.5, 1], shown: [0.14, 0.42, 0.6] },
  { channel: tuck, given: [1], shown: [0.65] },
];

/** Replaces what the speech model gives (ARTICULATION_SIZE channels, 0..1) by what a face shows. */
export function stretchRange(articulation: Float32Array): void {
  for (const { channel, given, shown } of CURVES) {
    const value = Math.min(1, articulation[channel]!);
    const i = given.findIndex((end) => value <= end);
    const [from, to] = [given[i - 1] ?? 0, given[i]!];
    const [below, above] = [shown[i - 1] ?? 0, shown[i]!];
    articulation[channel] = below + ((value - from) * (above - below)) / (to - from);
  }
}
