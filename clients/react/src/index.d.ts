import type {
  ConnectOptions,
  Session,
  SessionError,
  SpeakOptions,
  SpeechSource,
  Viewer,
  ViewerOptions,
} from '@mouthpiece/client';
import type { CSSProperties, ForwardRefExoticComponent, RefAttributes, RefCallback } from 'react';

/** With a session token the page speaks; with a viewer URL it watches an agent on your server. */
export interface MouthpieceOptions
  extends
    Partial<Omit<ConnectOptions, 'video' | 'signal'>>,
    Partial<Omit<ViewerOptions, 'video' | 'signal' | 'viewerUrl'>> {
  /** Undefined until your server has given it: nothing is connected before. */
  readonly sessionToken?: string | undefined;
  readonly viewerUrl?: string | undefined;
  /** It ended. */
  readonly onEnd?: (end: { reason: string; error: SessionError | null }) => void;
}

export interface MouthpieceFace {
  /** `idle`, `speaking` of a session; `connected` of a viewer. */
  readonly state:
    | 'closed'
    | 'connecting'
    | 'connected'
    | 'idle'
    | 'speaking'
    | 'reconnecting'
    | 'ended';
  /** The browser allows no sound before the user does something. */
  readonly isMuted: boolean;
  /** Why it ended; null when as planned. */
  readonly error: SessionError | null;
  /** What is connected, for everything else; null when there is none. */
  readonly session: Session | null;
  readonly viewer: Viewer | null;
  /** Of the video element that shows the face. */
  readonly videoRef: RefCallback<HTMLVideoElement>;
  /** @throws Error when there is no session */
  readonly speak: (source: SpeechSource, options?: SpeakOptions) => Promise<boolean>;
  readonly interrupt: () => void;
  /** Ends the session once what was sent has been spoken. */
  readonly finish: () => Promise<void>;
  readonly unmute: () => void;
}

/** A face in a component of yours. Another token or URL connects anew; an unmount ends it. */
export function useMouthpiece(options: MouthpieceOptions): MouthpieceFace;

export interface MouthpieceProps extends MouthpieceOptions {
  /** What screen readers say; default: "Talking face". */
  readonly label?: string;
  /** Of the button that turns on the sound. */
  readonly unmuteText?: string;
  readonly className?: string;
  readonly style?: CSSProperties;
}

/** The face. Its ref has what the hook gives; `data-state` is for styles. */
export const Mouthpiece: ForwardRefExoticComponent<MouthpieceProps & RefAttributes<MouthpieceFace>>;
