// WAV files of a static video's sound, read to their end.
import { fuzzAudio } from '../engine/audio.ts';

export const target = fuzzAudio('wav');
