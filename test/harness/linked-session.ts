// A session as its link sees it, of which a test tells only what it looks at.
import type { LinkedSession, SpeechPort } from '../../src/front/sessions/session-link.ts';

/** Takes speech and forgets it. */
export const NO_SPEECH: SpeechPort = {
  push: () => true,
  flush() {},
  writtenPosition: 0,
  heardPosition: 0,
};

/** A session that does nothing but what `parts` say. */
export const linkedSession = (parts: Partial<LinkedSession> = {}): LinkedSession => ({
  size: { width: 512, height: 512 },
  id: 's',
  send() {},
  offer() {},
  makeOffer() {},
  tell() {},
  dropPeer() {},
  end() {},
  speech: NO_SPEECH,
  ...parts,
});
