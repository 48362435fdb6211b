// Records that the tests of the stores write.
import { ServiceError } from '../../../src/base/errors.ts';
import { newUuid } from '../../../src/base/ids.ts';
import type { HistoryRecord } from '../../../src/front/history/history.ts';
import type { SessionGrant } from '../../../src/front/sessions/session-tokens.ts';

export const GRANT: Omit<SessionGrant, 'tokenId' | 'issuedAtMs'> = {
  ownerId: 'o',
  keyId: 'k',
  keyName: 'n',
  faceId: 'ava',
  emotion: 'neutral',
  model: null,
  apiVersion: 'v2',
  sessionAggregator: null,
  handleSilence: true,
  maxSessionLengthSeconds: 60,
  maxIdleTimeSeconds: 60,
  startFrame: 0,
  audioInputFormat: 'pcm16',
};

export const recordOf = (userId: string, startTime: number): HistoryRecord => ({
  id: newUuid(),
  userId,
  sessionTokenId: 't',
  face_id: 'ava',
  kind: 'p2p',
  sessionTotalTime: 1.5,
  startTime,
  endTime: startTime + 1,
});

/** For `assert.rejects`: an error with this code. */
export const code =
  (expected: string) =>
  (error: unknown): boolean =>
    error instanceof ServiceError && error.code === expected;
