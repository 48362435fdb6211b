// The task that looks at the audio of a static video before it is accepted: decodes all of it, keeps nothing but its length.
import { AudioError } from './audio/pcm-stream.ts';
import { inspectAudio, type AudioInput } from './audio/open-audio.ts';

export type InspectResult =
  | { readonly samples: number; readonly rate: number }
  /** In words for whoever sent the audio. */
  | { readonly rejected: string };

export default async function inspectTask(input: AudioInput): Promise<InspectResult> {
  try {
    return await inspectAudio(input);
  } catch (error) {
    if (error instanceof AudioError) {
      return { rejected: error.message };
    }
    throw error;
  }
}
