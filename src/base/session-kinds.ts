// The kinds of live sessions: how a client reaches its face.

/** Values of the label `kind` of the session metrics, and of `kind` in the history. */
export const SESSION_KINDS = [
  /** A peer connection of the client's own: WSS /compose/webrtc/p2p. */
  'p2p',
  /** A LiveKit room made for the session: WSS /compose/webrtc/livekit. */
  'livekit',
  /** In somebody else's LiveKit room: POST /integrations/livekit/agents. */
  'agent',
  /** A conversation that this server holds: POST /auto/start. */
  'auto',
  /** The agent's server and the viewer have a connection each: POST /sessions. */
  'split',
] as const;

/** One of SESSION_KINDS. */
export type SessionKind = (typeof SESSION_KINDS)[number];
