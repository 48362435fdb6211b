// Translates the grant of a token into the spec of a session for its worker.
import type { ReportedMotion, SessionSpec } from '../../link/messages.ts';
import { EMOTIONS } from '../../media/articulation.ts';
import type { SessionGrant } from './session-tokens.ts';

/** What the grant of a token asks of the worker. */
export const specOf = (
  grant: SessionGrant,
  face: SharedArrayBuffer,
  renderer: string,
  reports: ReportedMotion | undefined,
): Omit<SessionSpec, 'sessionId' | 'speechRing' | 'outlivesPeers'> => ({
  face: { faceId: grant.faceId, bytes: face },
  // A token of another version may name an emotion that is unknown here: neutral, the first.
  emotion: Math.max(0, EMOTIONS.indexOf(grant.emotion as (typeof EMOTIONS)[number])),
  renderer,
  handleSilence: grant.handleSilence,
  startFrame: grant.startFrame,
  reports,
  maxIdleMs: grant.maxIdleTimeSeconds * 1000,
  maxLengthMs: grant.maxSessionLengthSeconds * 1000,
});
