// The voice activity detector, as src/talk/detector-thread.ts loads it.
import detector from '@livekit/local-inference';

export const { createVad } = detector;
