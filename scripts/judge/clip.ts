// The clip that every judged face speaks: a text with all the sounds that are looked at, then silence.
import { FPS, FRAME_MS, SPEECH_RATE, speechSamplesInStep } from '../../src/media/timeline.ts';
import { native } from '../../src/native/addon.ts';
import { ArticulationTrack } from '../../src/pipeline/features/articulation-track.ts';
import { SpeechModel } from '../../src/pipeline/inference/speech-model.ts';
import { synthesize } from '../../test/harness/speech.ts';

const TEXT =
  'Papa is fine. My mother saw the food on the boat by the sea. ' +
  'If you see five people, say that we are home, and that the moon is high tonight. ' +
  'Nobody knows how hot the soup may be, so please take my word for it.';
const SILENT_SECONDS = 8;

/** What a contact sheet shows: a name, and the sound as flite calls it. */
export const MOMENTS = [
  ['rest', undefined],
  ['aa', 'aa'],
  ['m', 'm'],
  ['oo', 'uw'],
  ['f', 'f'],
  ['ay', 'ay'],
  ['s', 's'],
  ['iy', 'iy'],
  ['ow', 'ow'],
  ['p', 'p'],
] as const;

/** One frame of the clip. */
export interface ClipFrame {
  readonly articulation: Float32Array;
  readonly isSpeaking: boolean;
  /** Of the sound that belongs to the picture: root mean square, logarithmic. */
  readonly loudness: number;
}

export interface Clip {
  readonly frames: readonly ClipFrame[];
  /** The first frame of the silence. */
  readonly spoken: number;
  /** Of each of MOMENTS: the frame that shows it. */
  readonly moments: readonly number[];
}

/** @throws Error when flite is not installed */
export async function makeClip(): Promise<Clip> {
  const speech = await synthesize(TEXT, 'slt');
  const model = await SpeechModel.load();
  const [mel, state] = [new native.MelFrontEnd(), model.createState()];
  const frameOf = (ms: number): number => Math.round((ms + model.lookaheadMs) / FRAME_MS - 1);
  const spoken = frameOf(speech.durationMs) + 1;
  const frames: ClipFrame[] = [];
  const track = new ArticulationTrack();
  const pcm = new Int16Array(speechSamplesInStep(0) + 1);
  let at = 0;
  for (let step = 0; step < spoken + SILENT_SECONDS * FPS; step++) {
    const count = speechSamplesInStep(step);
    pcm.fill(0);
    pcm.set(speech.pcm.subarray(at, at + count));
    mel.step(pcm, count, state.mel, 0);
    await model.run([state]);
    track.update(state.articulation);
    const heard = at - Math.round((model.lookaheadMs * SPEECH_RATE) / 1000);
    frames.push({
      articulation: track.values.slice(),
      isSpeaking: step < spoken,
      loudness: rms(speech.pcm.subarray(Math.max(0, heard), Math.max(0, heard + count))),
    });
    at += count;
  }
  await model.close();
  const moments = MOMENTS.map(([, sound]) => {
    const longest = speech.segments
      .filter(({ phone }) => phone === sound)
      .reduce<{ startMs: number; endMs: number }>(
        (best, one) => (one.endMs - one.startMs > best.endMs - best.startMs ? one : best),
        { startMs: 0, endMs: 0 },
      );
    return Math.max(0, frameOf((longest.startMs + longest.endMs) / 2));
  });
  return { frames, spoken, moments };
}

const rms = (samples: Int16Array): number =>
  Math.log10(1 + Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / (samples.length || 1)));
