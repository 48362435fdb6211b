// Measures, before the first session, what one speaking session costs on this core: placement starts from that figure.
import { ARTICULATION_SIZE } from '../media/articulation.ts';
import { FPS } from '../media/timeline.ts';
import { native } from '../native/addon.ts';
import { VideoTrack } from './encode/video-track.ts';
import type { SpeechModel } from './inference/speech-model.ts';
import { FaceStage } from './render/face-stage.ts';

const FRAMES = 45;
const WARM_UP_FRAMES = 15;
/** Packets, sound, timers and a cold cache, as a factor on top of what is timed here (measured: whole session against its bare stages). */
const OVERHEAD = 1.3;

/** @returns the share of a core that a speaking session costs, about 0.03 to 0.1. */
export async function measureSessionCost(model: SpeechModel, faceBytes: SharedArrayBuffer, bitrateKbps: number): Promise<number> {
  const face = new FaceStage(new native.FaceAsset(new Uint8Array(faceBytes)), { seed: 1, emotion: 0, startFrame: 0 });
  const video = new VideoTrack('vp8', bitrateKbps);
  const slot = model.createSlot();
  const articulation = new Float32Array(ARTICULATION_SIZE);
  let startMs = 0;
  for (let frame = 0; frame < FRAMES; frame += 1) {
    if (frame === WARM_UP_FRAMES) startMs = native.threadCpuMs();
    await model.run([slot]);
    // A mouth that opens and closes five times a second: about what speech does, and what the encoder has to code.
    articulation.fill(0.3 + 0.3 * Math.sin(frame));
    face.draw(frame, articulation, true);
    video.encode(face.picture, face.dirty);
    video.keyCause = null;
  }
  const perFrameMs = (native.threadCpuMs() - startMs) / (FRAMES - WARM_UP_FRAMES);
  video.close();
  return perFrameMs * OVERHEAD * FPS / 1000;
}
