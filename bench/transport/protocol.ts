// What the transport scenario and its sender processes say to each other.

/** The stack that a sender process runs. */
export type Stack = 'ours' | 'werift';

export type SenderCommand =
  | { readonly op: 'join'; readonly peer: number; readonly offer: string }
  /** Waits until the peer is connected. Answered with the CPU of the join, see `JoinAnswer`. */
  | { readonly op: 'connected'; readonly peer: number }
  | { readonly op: 'leave'; readonly peer: number }
  /** So many seconds of each connected peer. Answered with `RunAnswer`. */
  | { readonly op: 'run'; readonly seconds: number; readonly mode: Mode };

/**
 * silence: connected, without media. paced: media in real time, a frame's worth at a time to all.
 * packed: the same media as fast as the thread can, peer after peer: what remains when caches are
 * warm and no wake-up has to be paid for.
 */
export type Mode = 'silence' | 'paced' | 'packed';

export interface SenderRequest {
  readonly id: number;
  readonly command: SenderCommand;
}

export type SenderResponse =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly error: string };

/** CPU time of the whole process, user and system, from the offer's arrival to the connection. */
export interface JoinAnswer {
  readonly cpuMs: number;
}

/** Of one `run`: CPU time of the whole process for each peer and second, and RTP packets sent. */
export interface RunAnswer {
  readonly userMs: number;
  readonly systemMs: number;
  readonly packets: number;
}

/** A peer's second of media: 30 frames of three packets and 50 packets of sound. */
export const FRAMES_PER_SECOND = 30;
export const FRAME_BYTES = 2_500;
export const OPUS_PER_SECOND = 50;
export const OPUS_BYTES = 80;
/** Both stacks cut a frame into so many packets. */
export const PACKETS_PER_FRAME = 3;
export const PACKETS_PER_SECOND = FRAMES_PER_SECOND * PACKETS_PER_FRAME + OPUS_PER_SECOND;
