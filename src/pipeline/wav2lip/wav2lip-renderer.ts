// Draws a face with a user's own Wav2Lip-type network: the rig keeps the eyes alive, the network's lower face is laid over it with soft edges.
//
// The network runs on a thread of its own (mouths.ts), two frames ahead of the picture: the stream looks ahead by as much more, so a mouth that is ready in
// time is shown with its own sound. One that is not leaves the last one where it is; nobody waits.
import { monotonicMs } from '../../base/time.ts';
import { ARTICULATION_SIZE, POSE_INDEX } from '../../media/articulation.ts';
import { i420Bytes, macroblocks } from '../../media/picture.ts';
import { FRAME_MS } from '../../media/timeline.ts';
import { type FaceAsset, type FaceRenderer, native } from '../../native/addon.ts';
import type { RigRendererOptions } from '../render/rig-renderer.ts';
import { IdleMotion } from '../render/idle-motion.ts';
import type { AudioDrivenRenderer } from '../render/renderer.ts';
import { type Box, OPAQUE, patchBytes, patchPixels } from './face.ts';
import { WAV2LIP_LOOKAHEAD_MS } from './mel.ts';
import type { FromInferenceThread, FrameRequest } from './messages.ts';
import type { InferenceClientListener, InferenceClients } from './inference-clients.ts';

/** How fast the network's mouth takes the place of the resting one, and gives it back, per frame. */
const FADE = 0.34;
/** How many frames before its own a mouth is asked for. One would do for a thread that always gets its core at once. */
const LEAD_FRAMES = 2;
/** Patches of a session: those asked for, the one that is shown, one that came late and one to spare. */
const SLOTS = LEAD_FRAMES + 3;

const STILL = [
  POSE_INDEX.yaw,
  POSE_INDEX.pitch,
  POSE_INDEX.roll,
  POSE_INDEX.shiftX,
  POSE_INDEX.shiftY,
  POSE_INDEX.breath,
] as const;

/** How a stage's session hears of its network. */
export interface InferenceListener {
  onMouth(tookMs: number): void;
  onFailure(error: Error): void;
}

interface Patch {
  readonly box: Box;
  readonly alpha: Uint16Array;
  readonly slots: readonly Uint8Array[];
}

export class Wav2LipRenderer implements AudioDrivenRenderer, InferenceClientListener {
  readonly picture: Uint8Array;
  readonly dirty: Uint8Array;
  readonly lookaheadMs = WAV2LIP_LOOKAHEAD_MS + LEAD_FRAMES * FRAME_MS;
  repeatedFrames = 0;
  readonly #asset: FaceAsset;
  readonly #mouths: InferenceClients;
  readonly #listener: InferenceListener;
  readonly #id: number;
  readonly #renderer: FaceRenderer;
  readonly #motion: IdleMotion;
  readonly #base: Uint8Array;
  readonly #rest = new Float32Array(ARTICULATION_SIZE);
  readonly #heard: Int16Array[] = [];
  #isNew = true;
  #lastWanted = -1;
  /** Null until the thread has opened the face. */
  #patch: Patch | undefined = undefined;
  readonly #free: number[] = [];
  /** Frame that each slot was asked for; -1: in a former utterance. */
  readonly #frameOf = new Int32Array(SLOTS).fill(-1);
  /** Slots made and not yet shown, in order. */
  readonly #ready: number[] = [];
  /** Slot on the picture; -1: none. */
  #shown = -1;
  /** A mouth of the present utterance has been shown. */
  #hasMouth = false;
  #presence = 0;
  #wasLaid = false;

  constructor(
    asset: FaceAsset,
    bytes: SharedArrayBuffer,
    mouths: InferenceClients,
    { seed, emotion, startFrame }: RigRendererOptions,
    listener: InferenceListener,
  ) {
    const { width, height } = asset;
    this.#asset = asset;
    this.#mouths = mouths;
    this.#listener = listener;
    this.picture = new Uint8Array(i420Bytes(width, height));
    this.#base = new Uint8Array(i420Bytes(width, height));
    this.dirty = new Uint8Array(macroblocks(width, height));
    this.#renderer = new native.FaceRenderer(asset);
    this.#renderer.setEmotion(emotion, 1);
    this.#motion = new IdleMotion(seed, startFrame);
    this.#id = mouths.open(bytes, SLOTS, this);
  }

  // ── what the inference thread says ────────────────────────────────────────────────────────────────────────────────────

  opened({ box, alpha, patches }: FromInferenceThread & { readonly type: 'opened' }): void {
    const size = patchBytes(box);
    this.#patch = {
      box,
      alpha,
      slots: Array.from({ length: SLOTS }, (_, slot) => new Uint8Array(patches, slot * size, size)),
    };
    for (let slot = 0; slot < SLOTS; slot++) {
      this.#free.push(slot);
    }
  }

  made(slot: number, tookMs: number | undefined): void {
    if (tookMs !== undefined) {
      this.#listener.onMouth(tookMs);
    }
    if (tookMs === undefined || this.#frameOf[slot]! < 0) {
      this.#free.push(slot);
    } else {
      this.#ready.push(slot);
    }
  }

  failed(why: string): void {
    this.#listener.onFailure(new Error(why));
  }

  // ── sound ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

  reset(): void {
    this.#isNew = true;
    this.#hasMouth = false;
    this.#heard.length = 0;
    this.#lastWanted = -1;
    this.#free.push(...this.#ready);
    this.#ready.length = 0;
    this.#frameOf.fill(-1); // those on their way are put aside when they come
  }

  pushAudio(pcm: Int16Array, count: number): void {
    this.#heard.push(pcm.slice(0, count));
  }

  requestFrame(frame: number): void {
    const nowMs = monotonicMs();
    const last = frame + LEAD_FRAMES;
    const wanted: FrameRequest[] = [];
    // One in the usual way of things; all that lie ahead when an utterance begins or frames were left out.
    for (
      let next = Math.max(this.#lastWanted, frame) + 1;
      next <= last && this.#free.length > 0;
      next++
    ) {
      const slot = this.#free.pop()!;
      this.#frameOf[slot] = this.#lastWanted = next;
      wanted.push({
        frame: next,
        slot,
        backMs: (last - next) * FRAME_MS,
        dueMs: nowMs + (next - frame) * FRAME_MS,
      });
    }
    this.#mouths.hear(this.#id, this.#isNew, joined(this.#heard), wanted);
    this.#isNew = false;
    this.#heard.length = 0;
  }

  close(): void {
    this.#mouths.close(this.#id);
  }

  // ── picture ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  draw(frame: number, _articulation: Float32Array, isSpeaking: boolean): void {
    // The network knows one pose only, so the head stays where it was photographed; eyes and brows live.
    const pose = this.#motion.step(frame, isSpeaking, 0);
    for (const channel of STILL) {
      pose[channel] = 0;
    }
    this.#renderer.render(this.#rest, pose, this.#base, this.dirty);
    this.picture.set(this.#base);
    const isFresh = this.#take(frame);
    if (isSpeaking && this.#hasMouth && !isFresh) {
      this.repeatedFrames++;
    }
    this.#presence = Math.min(
      1,
      Math.max(0, this.#presence + (isSpeaking && this.#hasMouth ? FADE : -FADE)),
    );
    if (this.#presence > 0) {
      this.#lay();
    }
    if (this.#presence > 0 || this.#wasLaid) {
      this.#markBox();
    }
    this.#wasLaid = this.#presence > 0;
  }

  hold(): void {
    this.dirty.fill(0);
  }

  /** Shows the newest mouth whose frame has come. @returns whether there is one */
  #take(frame: number): boolean {
    const ready = this.#ready;
    const free = this.#free;
    const frameOf = this.#frameOf;
    const shown = this.#shown;
    while (ready.length > 0 && frameOf[ready[0]!]! <= frame) {
      if (this.#shown >= 0) {
        free.push(this.#shown);
      }
      this.#shown = ready.shift()!;
      this.#hasMouth = true;
    }
    return this.#shown !== shown;
  }

  /** Lays the mouth over the picture. */
  #lay(): void {
    const { width: stride, height } = this.#asset;
    const patch = this.#patch;
    const presence = this.#presence;
    const shown = this.#shown;
    const { picture } = this;
    const {
      box: { x: left, y, width, height: boxHeight, top },
      alpha,
      slots,
    } = patch!;
    const mouth = slots[shown]!;
    const share = Math.round(presence * OPAQUE);
    const rows = boxHeight - top;
    for (let row = 0; row < rows; row++) {
      blend(
        picture,
        (y + top + row) * stride + left,
        mouth,
        row * width,
        width,
        alpha,
        row * width,
        1,
        share,
      );
    }
    let from = patchPixels(patch!.box);
    for (let plane = stride * height, i = 0; i < 2; i += 1, plane += (stride * height) / 4) {
      for (let row = 0; row < rows; row += 2, from += width / 2) {
        blend(
          picture,
          plane + (((y + top + row) * stride) / 2 + left) / 2,
          mouth,
          from,
          width / 2,
          alpha,
          row * width,
          2,
          share,
        );
      }
    }
  }

  #markBox(): void {
    const { x, y, width, height, top } = this.#patch!.box;
    const columns = Math.ceil(this.#asset.width / 16);
    for (let row = (y + top) >> 4; row <= (y + height - 1) >> 4; row++) {
      this.dirty.fill(1, row * columns + (x >> 4), row * columns + ((x + width - 1) >> 4) + 1);
    }
  }
}

/** One row of a plane: `opacity`, read every `step`-th value from `at`, and `share` are 0..OPAQUE. */
function blend(
  to: Uint8Array,
  toAt: number,
  from: Uint8Array,
  fromAt: number,
  count: number,
  opacity: Uint16Array,
  at: number,
  step: number,
  share: number,
): void {
  for (let i = 0; i < count; i++) {
    const value = to[toAt + i]!;
    to[toAt + i] =
      value +
      (((from[fromAt + i]! - value) * opacity[at + i * step]! * share + (OPAQUE * OPAQUE) / 2) >>
        16);
  }
}

function joined(parts: readonly Int16Array[]): Int16Array {
  if (parts.length === 1) {
    return parts[0]!;
  }
  const whole = new Int16Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
