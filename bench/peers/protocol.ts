// What the bench and its peer processes say to each other, over the IPC channel of child_process.
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import type { Impairment } from './impaired-relay.ts';
import type { PeerKind, PeerTarget } from './light-peer.ts';
import type { PeerFigures, Utterance } from './peer-figures.ts';

export interface FleetSetUp {
  readonly target: PeerTarget;
  /** Default: p2p. */
  readonly kind?: PeerKind;
  readonly codec: VideoCodec;
  readonly faceId: string;
  /** Raw PCM16 16 kHz mono file that peers speak, over and over. */
  readonly speechFile: string;
  readonly token: Readonly<Record<string, unknown>>;
  /** The peers hold conversations; `token` is what they are started with. */
  readonly converses?: boolean;
}

/**
 * How peers use their time: every cycle they send `speechSeconds` of speech, the first at a random
 * moment of the cycle.
 */
export interface TalkPlan {
  readonly cycleSeconds: number;
  readonly speechSeconds: number;
  readonly pace: 'burst' | 'realtime';
}

export type FleetCommand =
  | { readonly op: 'setUp'; readonly setUp: FleetSetUp }
  | {
      readonly op: 'open';
      readonly peer: number;
      readonly plan: TalkPlan | undefined;
      readonly keepFrames: boolean;
      readonly impairment?: Impairment | undefined;
    }
  | {
      readonly op: 'speak';
      readonly peer: number;
      readonly pace: 'burst' | 'realtime';
      readonly fromSeconds: number;
      readonly seconds: number;
    }
  | { readonly op: 'skip'; readonly peer: number }
  | { readonly op: 'impair'; readonly peer: number; readonly impairment: Impairment }
  | { readonly op: 'close'; readonly peer: number; readonly how: 'clean' | 'vanish' }
  | { readonly op: 'waitOver'; readonly peer: number; readonly timeoutMs: number }
  /**
   * Writes the kept frames as a raw bitstream (IVF or Annex B) to `file`; answers the arrival time
   * of each.
   */
  | { readonly op: 'dump'; readonly peer: number; readonly file: string }
  | { readonly op: 'figures' };

export interface FleetFigures {
  readonly peers: Readonly<Record<number, PeerFigures>>;
  /**
   * Delay of the process' own event loop since the last call: when it is large, arrival times say
   * more about the load generator than about the server.
   */
  readonly loopDelayP99Ms: number;
  readonly cpuSeconds: number;
}

export interface Dump {
  readonly arrivalsMs: readonly number[];
}

/** Answer to each command; `speak` answers once all was sent. */
export interface FleetAnswers {
  setUp: undefined;
  open: { readonly sessionId: string; readonly figures: PeerFigures };
  speak: Utterance;
  skip: number;
  impair: undefined;
  close: undefined;
  waitOver: PeerFigures;
  dump: Dump;
  figures: FleetFigures;
}
