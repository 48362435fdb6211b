// Measures, before the first session, what one speaking session costs on this core: placement starts from that figure.
import { FPS, FRAME_MS } from '../media/timeline.ts';
import { native } from '../native/addon.ts';
import { VideoTrack } from '../pipeline/encode/video-track.ts';
import type { SpeechModel } from '../pipeline/inference/speech-model.ts';
import { RigRenderer } from '../pipeline/render/rig-renderer.ts';
import { SENTENCE_MS, sentenceAt } from '../pipeline/render/visemes.ts';

/** The encoder codes whole pictures for 60 frames after a key frame; a session's usual frames come after them. */
const WARM_UP_FRAMES = 65;
const FRAMES = WARM_UP_FRAMES + 45;
/** Packets, sound, timers and a cold cache, as a factor on top of what is timed here (measured: whole session against its bare stages). */
const OVERHEAD = 1.4;

/** @returns the share of a core that a speaking session costs, about 0.03 to 0.1. */
export async function measureSessionCost(
  model: SpeechModel,
  faceBytes: SharedArrayBuffer,
  bitrateKbps: number,
): Promise<number> {
  const face = new RigRenderer(new native.FaceAsset(new Uint8Array(faceBytes)), {
    seed: 1,
    emotion: 0,
    startFrame: 0,
  });
  const video = new VideoTrack('vp8', bitrateKbps);
  const slot = model.createState();
  let startMs = 0;
  for (let frame = 0; frame < FRAMES; frame++) {
    if (frame === WARM_UP_FRAMES) {
      startMs = native.threadCpuMs();
    }
    await model.run([slot]);
    face.draw(frame, sentenceAt((frame * FRAME_MS) % SENTENCE_MS), true);
    video.encode(face.picture, face.dirty);
    video.keyCause = undefined;
  }
  const perFrameMs = (native.threadCpuMs() - startMs) / (FRAMES - WARM_UP_FRAMES);
  video.close();
  return (perFrameMs * OVERHEAD * FPS) / 1000;
}
