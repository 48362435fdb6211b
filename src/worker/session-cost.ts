// Measures, before the first session, what one speaking session costs on this core: placement
// starts from this figure, and learns from then on (load-reporter.ts).
import type { MediaConfig } from '../link/worker-init.ts';
import { FPS, FRAME_MS } from '../media/timeline.ts';
import { native } from '../native/addon.ts';
import { VideoTrack } from '../pipeline/encode/video-track.ts';
import type { SpeechModel } from '../pipeline/inference/speech-model.ts';
import { RigRenderer } from '../pipeline/render/rig-renderer.ts';
import { SENTENCE_MS, sentenceAt } from '../pipeline/render/visemes.ts';

/**
 * For 60 frames after a key frame the encoder codes whole pictures; the usual frames come after.
 */
const WARM_UP_FRAMES = 65;
const FRAMES = WARM_UP_FRAMES + 45;
/**
 * Factor for what is not timed here: packets, audio, timers, a cold cache (measured: a whole
 * session against its bare stages).
 */
const OVERHEAD = 1.4;

/** @returns the share of a core that a speaking session costs, about 0.03 to 0.1 */
export async function measureSessionCost(
  model: SpeechModel,
  faceBytes: SharedArrayBuffer,
  { videoBitrateKbps, motion }: Pick<MediaConfig, 'videoBitrateKbps' | 'motion'>,
): Promise<number> {
  const renderer = new RigRenderer(new native.FaceAsset(new Uint8Array(faceBytes)), {
    seed: 1,
    emotion: 0,
    motion,
    startFrame: 0,
  });
  const video = new VideoTrack('vp8', videoBitrateKbps, undefined, renderer.size);
  const state = model.createState();
  let startMs = 0;
  for (let frame = 0; frame < FRAMES; frame++) {
    if (frame === WARM_UP_FRAMES) {
      startMs = native.threadCpuMs();
    }
    await model.run([state]);
    renderer.mayShift = video.takesShifts;
    renderer.draw(frame, sentenceAt((frame * FRAME_MS) % SENTENCE_MS), true);
    video.encode(renderer.picture, renderer.dirty, renderer.motion);
  }
  const perFrameMs = (native.threadCpuMs() - startMs) / (FRAMES - WARM_UP_FRAMES);
  video.close();
  return (perFrameMs * OVERHEAD * FPS) / 1000;
}
