// What a receiving client of the bench knows about its session.

/**
 * An utterance as seen from outside; times on this process' clock, undefined while it has not happened.
 */
export interface Utterance {
  readonly sentMs: number;
  speakMs: number | undefined;
  audibleMs: number | undefined;
  silentMs: number | undefined;
}

export interface PeerFigures {
  state: 'connecting' | 'live' | 'over';
  /** Milliseconds since the token was asked for. */
  setUp: {
    token: number;
    socket: number;
    answer: number;
    connected: number;
    start: number;
    firstFrame: number;
  };
  ending: string | undefined;
  frames: number;
  framesLost: number;
  keyFrames: number;
  videoPackets: number;
  audioPackets: number;
  bytes: number;
  nacks: number;
  plis: number;
  packetsMissed: number;
  /** Longest time between two showable frames, and how many such times were over 300 ms. */
  longestGapMs: number;
  gapsOver300: number;
  /**
   * Delay of frames above the quickest one, RTP time against arrival: what lateness looks like from
   * outside. That of frame n (from 0) stands in place n modulo MAX_KEPT_DELAYS.
   */
  delaysMs: number[];
  utterances: Utterance[];
  estimateKbps: number;
  receivedKbps: number[];
  /** When the last packet with sound in it arrived. */
  lastAudibleMs: number;
  /**
   * One entry for each ten seconds: least delay of a frame above the quickest ever, and the mean of
   * picture time minus sound time by the sender reports.
   */
  course: { readonly atMs: number; readonly delayMs: number; readonly skewMs: number }[];
}

/** Entries of `PeerFigures.delaysMs`. */
export const MAX_KEPT_DELAYS = 4000;

/** Figures of a peer that has not begun. */
export const newFigures = (): PeerFigures => ({
  state: 'connecting',
  setUp: { token: 0, socket: 0, answer: 0, connected: 0, start: 0, firstFrame: 0 },
  ending: undefined,
  frames: 0,
  framesLost: 0,
  keyFrames: 0,
  videoPackets: 0,
  audioPackets: 0,
  bytes: 0,
  nacks: 0,
  plis: 0,
  packetsMissed: 0,
  longestGapMs: 0,
  gapsOver300: 0,
  delaysMs: [],
  utterances: [],
  estimateKbps: 0,
  receivedKbps: [],
  lastAudibleMs: 0,
  course: [],
});

/** An utterance that is sent now. */
export const newUtterance = (): Utterance => ({
  sentMs: performance.now(),
  speakMs: undefined,
  audibleMs: undefined,
  silentMs: undefined,
});
