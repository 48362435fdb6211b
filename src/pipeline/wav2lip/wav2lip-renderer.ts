// Draws a face with a user's own Wav2Lip-type network: the rig moves the eyes, and the network's
// patch of the lower face is blended over it.
//
// The network runs on the inference thread, two frames ahead of the picture. The speech stream
// looks ahead by as much more, so a patch that is ready in time is shown in step with its sound.
// When a patch is late, the last one stays for a frame; nobody waits.
import { monotonicMs } from '../../base/time.ts';
import { ARTICULATION_SIZE, POSE_INDEX } from '../../media/articulation.ts';
import type { ConversationState } from '../../media/conversation-state.ts';
import type { PictureSize } from '../../media/face-look.ts';
import { i420Bytes, macroblocks } from '../../media/picture.ts';
import { FRAME_MS } from '../../media/timeline.ts';
import { type FaceAsset, type FaceRenderer, native } from '../../native/addon.ts';
import { Expression } from '../render/expression.ts';
import { FaceMotion } from '../render/motion/face-motion.ts';
import type { AudioDrivenRenderer, LookCommand } from '../render/renderer.ts';
import type { RigRendererOptions } from '../render/rig-renderer.ts';
import type { InferenceClient, InferenceClientListener } from './inference-client.ts';
import type { FrameRequest, FromInferenceThread } from './messages.ts';
import { type FaceBox, OPAQUE, patchBytes, patchPixels } from './patch.ts';
import { WAV2LIP_LOOKAHEAD_MS } from './wav2lip-mel.ts';

/** How much of the patch's opacity comes or goes per frame when speech begins or ends: 3 frames. */
const FADE = 0.34;
/**
 * Frames by which a patch is requested ahead. One is enough only for a thread that always has a
 * core.
 */
const LEAD_FRAMES = 2;
/** Patches of a session: those requested, the one shown, one that came late and one to spare. */
const SLOTS = LEAD_FRAMES + 3;

/** The network knows one pose only: the head stays where it was photographed. */
const FIXED_POSE = [
  POSE_INDEX.yaw,
  POSE_INDEX.pitch,
  POSE_INDEX.roll,
  POSE_INDEX.shiftX,
  POSE_INDEX.shiftY,
  POSE_INDEX.breath,
] as const;

/** What the session is told of its network. */
export interface InferenceListener {
  /** A patch was made in `tookMs`. */
  onPatch(tookMs: number): void;
  /** There will be no more patches. */
  onInferenceFailure(error: Error): void;
}

interface OpenedFace {
  readonly box: FaceBox;
  readonly alpha: Uint16Array;
  /** Shared with the inference thread. */
  readonly patches: readonly Uint8Array[];
}

/**
 * Renders one session with the Wav2Lip-type network. It asks the inference thread for the patch of
 * a frame LEAD_FRAMES ahead, and blends the patch over the picture of the rig when the frame is
 * due. `repeatedFrames` counts frames whose patch was late.
 */
export class Wav2LipRenderer implements AudioDrivenRenderer, InferenceClientListener {
  readonly size: PictureSize;
  readonly picture: Uint8Array;
  readonly dirty: Uint8Array;
  readonly lookaheadMs = WAV2LIP_LOOKAHEAD_MS + LEAD_FRAMES * FRAME_MS;
  repeatedFrames = 0;
  readonly #asset: FaceAsset;
  readonly #client: InferenceClient;
  readonly #listener: InferenceListener;
  readonly #id: number;
  readonly #renderer: FaceRenderer;
  readonly #motion: FaceMotion;
  readonly #expression: Expression;
  /** The picture without the patch. */
  readonly #base: Uint8Array;
  readonly #rest = new Float32Array(ARTICULATION_SIZE);
  /** Speech not yet sent to the inference thread. */
  readonly #unsent: Int16Array[] = [];
  #isUtteranceStart = true;
  #lastRequested = -1;
  /** Undefined until the inference thread has opened the face. */
  #opened: OpenedFace | undefined = undefined;
  readonly #free: number[] = [];
  /** Frame that each slot was requested for; -1: of a former utterance. */
  readonly #frameOf = new Int32Array(SLOTS).fill(-1);
  /** Slots made and not yet shown, in order. */
  readonly #ready: number[] = [];
  /** Slot on the picture; -1: none. */
  #shown = -1;
  /** A patch of the present utterance has been shown. */
  #hasPatch = false;
  /** Opacity of the patch, 0 to 1. */
  #presence = 0;
  #wasBlended = false;

  /**
   * @param bytes the file that `asset` was made of
   * @throws Error when the inference thread has ended
   */
  constructor(
    asset: FaceAsset,
    bytes: SharedArrayBuffer,
    client: InferenceClient,
    { seed, emotion, motion, startFrame }: RigRendererOptions,
    listener: InferenceListener,
  ) {
    const { width, height } = asset;
    this.size = { width, height };
    this.#asset = asset;
    this.#client = client;
    this.#listener = listener;
    this.picture = new Uint8Array(i420Bytes(width, height));
    this.#base = new Uint8Array(i420Bytes(width, height));
    this.dirty = new Uint8Array(macroblocks(width, height));
    this.#renderer = new native.FaceRenderer(asset);
    this.#motion = new FaceMotion(seed, motion, startFrame);
    this.#expression = new Expression(this.#renderer, this.#motion, emotion);
    this.#id = client.open(bytes, SLOTS, this);
  }

  // ── from the inference thread ──────────────────────────────────────────────────────────────────

  opened({ box, alpha, patches }: FromInferenceThread & { readonly type: 'opened' }): void {
    const size = patchBytes(box);
    this.#opened = {
      box,
      alpha,
      patches: Array.from(
        { length: SLOTS },
        (_, slot) => new Uint8Array(patches, slot * size, size),
      ),
    };
    for (let slot = 0; slot < SLOTS; slot++) {
      this.#free.push(slot);
    }
  }

  patchDone(slot: number, tookMs: number | undefined): void {
    if (tookMs !== undefined) {
      this.#listener.onPatch(tookMs);
    }
    if (tookMs === undefined || this.#frameOf[slot]! < 0) {
      this.#free.push(slot);
    } else {
      this.#ready.push(slot);
    }
  }

  failed(why: string): void {
    this.#listener.onInferenceFailure(new Error(why));
  }

  // ── speech ─────────────────────────────────────────────────────────────────────────────────────

  reset(): void {
    this.#isUtteranceStart = true;
    this.#hasPatch = false;
    this.#unsent.length = 0;
    this.#lastRequested = -1;
    this.#free.push(...this.#ready);
    this.#ready.length = 0;
    this.#frameOf.fill(-1); // patches still being made are freed when they arrive
  }

  pushAudio(pcm: Int16Array, count: number): void {
    this.#unsent.push(pcm.slice(0, count));
  }

  requestFrame(frame: number): void {
    const nowMs = monotonicMs();
    const last = frame + LEAD_FRAMES;
    const requests: FrameRequest[] = [];
    // Usually one; all that lie ahead when an utterance begins or frames were left out.
    let next = Math.max(this.#lastRequested, frame) + 1;
    for (; next <= last && this.#free.length > 0; next++) {
      const slot = this.#free.pop()!;
      this.#frameOf[slot] = this.#lastRequested = next;
      requests.push({
        frame: next,
        slot,
        backMs: (last - next) * FRAME_MS,
        dueMs: nowMs + (next - frame) * FRAME_MS,
      });
    }
    this.#client.sendSpeech(this.#id, this.#isUtteranceStart, joined(this.#unsent), requests);
    this.#isUtteranceStart = false;
    this.#unsent.length = 0;
  }

  close(): void {
    this.#client.close(this.#id);
  }

  // ── picture ────────────────────────────────────────────────────────────────────────────────────

  draw(frame: number, _articulation: Float32Array, isSpeaking: boolean): void {
    this.#expression.step();
    const pose = this.#motion.step(frame, isSpeaking, 0);
    for (const channel of FIXED_POSE) {
      pose[channel] = 0;
    }
    this.#renderer.render(this.#rest, pose, this.#base, this.dirty);
    this.picture.set(this.#base);
    const isNew = this.#showReady(frame);
    if (isSpeaking && this.#hasPatch && !isNew) {
      this.repeatedFrames++;
    }
    const fade = isSpeaking && this.#hasPatch ? FADE : -FADE;
    this.#presence = Math.min(1, Math.max(0, this.#presence + fade));
    if (this.#presence > 0) {
      this.#blendPatch();
    }
    if (this.#presence > 0 || this.#wasBlended) {
      this.#markBox();
    }
    this.#wasBlended = this.#presence > 0;
  }

  obey(command: LookCommand): void {
    this.#expression.obey(command);
  }

  setConversation(state: ConversationState): void {
    this.#motion.setConversation(state);
  }

  hold(): void {
    this.dirty.fill(0);
  }

  /** Shows the newest patch whose frame has come. @returns whether there is a new one */
  #showReady(frame: number): boolean {
    const ready = this.#ready;
    const free = this.#free;
    const frameOf = this.#frameOf;
    const shown = this.#shown;
    while (ready.length > 0 && frameOf[ready[0]!]! <= frame) {
      if (this.#shown >= 0) {
        free.push(this.#shown);
      }
      this.#shown = ready.shift()!;
      this.#hasPatch = true;
    }
    return this.#shown !== shown;
  }

  #blendPatch(): void {
    const { width: stride, height } = this.#asset;
    const { picture } = this;
    const { box, alpha, patches } = this.#opened!;
    const { x: left, width } = box;
    const patch = patches[this.#shown]!;
    const share = Math.round(this.#presence * OPAQUE);
    const firstRow = box.y + box.top;
    const rows = box.height - box.top;
    for (let row = 0; row < rows; row++) {
      const to = (firstRow + row) * stride + left;
      blend(picture, to, patch, row * width, width, alpha, row * width, 1, share);
    }
    let from = patchPixels(box);
    for (let plane = stride * height, i = 0; i < 2; i += 1, plane += (stride * height) / 4) {
      for (let row = 0; row < rows; row += 2, from += width / 2) {
        const to = plane + (((firstRow + row) * stride) / 2 + left) / 2;
        blend(picture, to, patch, from, width / 2, alpha, row * width, 2, share);
      }
    }
  }

  /** Marks the macroblocks that the patch covers. */
  #markBox(): void {
    const { x, y, width, height, top } = this.#opened!.box;
    const columns = Math.ceil(this.#asset.width / 16);
    for (let row = (y + top) >> 4; row <= (y + height - 1) >> 4; row++) {
      this.dirty.fill(1, row * columns + (x >> 4), row * columns + ((x + width - 1) >> 4) + 1);
    }
  }
}

/**
 * Blends `count` pixels of a row of one plane. Both the values of `opacity`, of which every
 * `step`-th from `at` on is used, and `share` are 0 to OPAQUE.
 */
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
