// What a session tells, and an EventTarget that knows the types of its events.

/** What every event of the server has. */
export interface Timed {
  /** When the server sent it: Unix time of the server, milliseconds. */
  readonly at: number;
}

/** What a session does. `reconnecting`: the connection was lost, and is being restored. */
export type SessionState = 'connecting' | 'idle' | 'speaking' | 'reconnecting' | 'ended';

/** In a conversation: what it does, what was said, or what failed. It has one of these fields. */
export interface ConversationEvent extends Timed {
  readonly state?: 'listening' | 'hearing' | 'thinking' | 'speaking';
  /** A caption that is not final is replaced by the next of its role. */
  readonly caption?: {
    readonly role: 'user' | 'assistant';
    readonly text: string;
    readonly final: boolean;
  };
  readonly problem?: string;
}

/** What the face can be told while its session runs. */
export type Command =
  | { readonly type: 'interrupt' }
  | { readonly type: 'flush'; readonly id?: string }
  | {
      readonly type: 'words';
      readonly words: readonly { readonly text: string; readonly startMs: number }[];
    }
  | {
      readonly type: 'emotion';
      readonly emotion: 'neutral' | 'happy' | 'sad' | 'surprised' | 'angry' | 'calm';
      readonly strength?: number;
    }
  | { readonly type: 'gaze'; readonly x: number; readonly y: number; readonly seconds?: number }
  | { readonly type: 'gesture'; readonly gesture: 'nod' | 'shake' | 'smile' }
  | { readonly type: 'mute'; readonly muted: boolean }
  | { readonly type: 'face'; readonly faceId: string };

/** The details of a session's events by their names. */
export interface SessionEvents {
  /** Media flows. Again after each reconnection. */
  started: Timed;
  /** The face begins to speak. Utterances are counted from 1 on each connection. */
  speaking: Timed & { readonly utterance: number };
  /** It has spoken all that arrived, or was interrupted. */
  silent: Timed & { readonly utterance: number };
  /** An audio message arrived at the server. */
  ack: Timed;
  /** The server dropped something that was sent: send less. */
  rate: Timed & {
    readonly reason: 'audio_backlog_full' | 'too_many_messages' | 'offer_refused';
    readonly detail?: string;
  };
  /** The server will end the session after so many seconds. */
  closing: Timed & { readonly reason: 'server_draining'; readonly seconds: number };
  conversation: ConversationEvent;
  /** After `interrupt`: how much of the utterance was sent, and how much will not be heard. */
  interrupted: Timed & { readonly heardMs: number; readonly droppedMs: number };
  /** After `flush`: the utterance was heard to its end, or interrupted. */
  flushed: Timed & {
    readonly id: string;
    readonly heardMs: number;
    readonly interrupted: boolean;
  };
  /** After a command `face`: it is shown from now on. */
  face: Timed & { readonly faceId: string };
  /** A command was not obeyed. */
  rejected: Timed & { readonly command: string; readonly message: string };
  /** What the face does in one video frame: with the option `motion`. See `weightsAt`. */
  motion: Timed & { readonly rtp: number; readonly weights: readonly number[] };
  /** The mouth shows another viseme of Oculus Lipsync from this frame on: option `motion`. */
  viseme: Timed & { readonly rtp: number; readonly viseme: string };
  /** A word is heard now that the command `words` announced. */
  word: Timed & { readonly text: string; readonly startMs: number };
  state: SessionState;
  /** The connection was lost; the next attempt begins in so many milliseconds. */
  reconnecting: {
    readonly error: SessionError;
    readonly attempt: number;
    readonly delayMs: number;
  };
  /** The browser allows no sound before the user does something on the page. */
  autoplay: { readonly muted: boolean };
  /** The last event. `error` is null when the session ended as planned. */
  end: { readonly reason: string; readonly error: SessionError | null };
}

/**
 * Why a session could not start, or ended early. `code` is the server's (see /docs/protocol), or one
 * of this library: SOCKET_FAILED, CONNECTION_LOST, ICE_FAILED, OFFER_FAILED, ANSWER_FAILED, CLOSED.
 */
export class SessionError extends Error {
  readonly code: string;

  constructor(code: string, message = code) {
    super(message);
    this.name = 'SessionError';
    this.code = code;
  }
}

/** An EventTarget whose events are CustomEvents with details of known types. */
export class Emitter<Events> extends EventTarget {
  override addEventListener<Name extends keyof Events & string>(
    type: Name,
    listener: (event: CustomEvent<Events[Name]>) => void,
    options?: AddEventListenerOptions | boolean,
  ): void;
  override addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: AddEventListenerOptions | boolean,
  ): void;
  override addEventListener(
    type: string,
    listener: any,
    options?: AddEventListenerOptions | boolean,
  ): void {
    super.addEventListener(type, listener, options);
  }

  /** Calls the listener with the detail of each event. @returns a function that ends it */
  on<Name extends keyof Events & string>(
    type: Name,
    listener: (detail: Events[Name]) => void,
  ): () => void {
    const wrapped = (event: Event): void => listener((event as CustomEvent<Events[Name]>).detail);
    super.addEventListener(type, wrapped);
    return () => super.removeEventListener(type, wrapped);
  }

  protected emit<Name extends keyof Events & string>(type: Name, detail: Events[Name]): void {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** Resolves at the next event `name`. @throws SessionError that ended the session before */
export async function nextStart(target: EventTarget, name = 'started'): Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  try {
    await new Promise<void>((resolve, reject) => {
      target.addEventListener(name, () => resolve(), { signal });
      target.addEventListener(
        'end',
        (event) => {
          const { error } = (event as CustomEvent<SessionEvents['end']>).detail;
          reject(error ?? new SessionError('CLOSED'));
        },
        { signal },
      );
    });
  } finally {
    stop.abort();
  }
}
