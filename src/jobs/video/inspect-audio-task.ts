// The job-pool task that checks the audio of a static video before the video is accepted: decodes
// all of it and returns its length.
import { AudioError } from './audio/pcm-stream.ts';
import { inspectAudio, type AudioInput } from './audio/open-audio.ts';

/** The length of the audio, or why it was rejected. */
export type InspectResult =
  /** Samples per channel, and their rate in Hz. */
  | { readonly samples: number; readonly rate: number }
  /** Text for the client that sent the audio. */
  | { readonly rejected: string };

/**
 * Decodes the audio of a static video completely and returns its length. Audio that cannot be used
 * is a result (`rejected`), not an exception.
 * @throws Error for a defect of the server, never for the content of the audio
 */
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
