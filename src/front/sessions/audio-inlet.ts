// A session's speech as it comes off the socket: whole samples out of bytes, into the lane, and what the lane cannot hold yet kept here.
import { LANE_CAPACITY_SECONDS, LaneWriter, createLane } from '../../link/audio-lane.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';

/** Speech that may wait for its turn, lane included: a client that sends a whole lecture at once is served, one that never stops is not. */
export const MAX_BACKLOG_SECONDS = 600;
const MAX_WAITING_SAMPLES = (MAX_BACKLOG_SECONDS - LANE_CAPACITY_SECONDS) * SPEECH_RATE;

export class AudioInlet {
  readonly memory = createLane();
  private readonly lane = new LaneWriter(this.memory);
  private readonly waiting: Int16Array[] = [];
  private waitingSamples = 0;
  private oddByte = -1;
  private isDone = false;

  /**
   * Takes one message of PCM16 little-endian. A dangling byte is kept: if the next message is odd too, the two were one stream cut in the
   * middle of a sample; if it is even, the byte was a stray.
   * @returns samples dropped because the backlog is full; 0 normally
   */
  push(bytes: Uint8Array, nowMs: number): number {
    return this.pushSamples(this.samplesOf(bytes), nowMs);
  }

  /** Takes whole samples; `pcm` is copied. @returns samples dropped because the backlog is full */
  pushSamples(pcm: Int16Array, nowMs: number): number {
    if (pcm.length === 0 || this.isDone) return 0;
    const taken = this.waitingSamples === 0 ? this.lane.write(pcm, nowMs) : 0;
    if (taken === pcm.length) return 0;
    const rest = pcm.slice(taken, taken + Math.max(0, MAX_WAITING_SAMPLES - this.waitingSamples));
    if (rest.length > 0) this.waiting.push(rest);
    this.waitingSamples += rest.length;
    return pcm.length - taken - rest.length;
  }

  private samplesOf(bytes: Uint8Array): Int16Array {
    const joins = this.oddByte >= 0 && bytes.length % 2 === 1;
    const length = bytes.length + (joins ? 1 : 0);
    const pcm = new Int16Array(length >> 1);
    const whole = new Uint8Array(pcm.buffer);
    if (joins) whole[0] = this.oddByte;
    whole.set(bytes.subarray(0, pcm.byteLength - (joins ? 1 : 0)), joins ? 1 : 0);
    this.oddByte = length % 2 === 1 ? bytes.at(-1)! : -1;
    return pcm;
  }

  /** SKIP: everything sent so far is to be forgotten. */
  flush(nowMs: number): void {
    this.waiting.length = 0;
    this.waitingSamples = 0;
    this.oddByte = -1;
    this.lane.flush(nowMs);
  }

  /** DONE: nothing follows. Audio that comes all the same is dropped. */
  done(): void {
    this.isDone = true;
    if (this.waitingSamples === 0) this.lane.done();
  }

  get hasBacklog(): boolean { return this.waitingSamples > 0; }

  /** Moves what waits into the lane as it drains; to be called a few times a second while there is a backlog. */
  pump(nowMs: number): void {
    while (this.waiting.length > 0) {
      const first = this.waiting[0]!;
      const taken = this.lane.write(first, nowMs);
      this.waitingSamples -= taken;
      if (taken < first.length) { this.waiting[0] = first.subarray(taken); return; }
      this.waiting.shift();
    }
    if (this.isDone) this.lane.done();
  }
}
