// The demo page has a text for every error code that can reach it, and the text says what to do.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ERRORS } from '../../src/base/errors.ts';

const { errorMessage } = (await import(
  new URL('../../src/page/messages.js', import.meta.url).href
)) as {
  errorMessage: (error: unknown) => string;
};

/** Codes whose own message is shown, because it says more. */
const OWN_MESSAGE = ['VALIDATION_FAILED', 'IMAGE_REJECTED'];

/** Codes that no request of the page can get. */
const NEVER_SEEN = [
  'METHOD_NOT_ALLOWED',
  'CONFLICT',
  'UPGRADE_REQUIRED',
  'PRECONDITION_FAILED',
  'GONE',
  'RANGE_NOT_SATISFIABLE',
  // Operators' keys, other servers, sessions with two connections: not this page's requests either.
  'OPERATOR_REQUIRED',
  'INVALID_RELAY_TICKET',
  'NODE_UNREACHABLE',
  'AGENT_LOST',
  'VIEWER_REPLACED',
  'PRECONDITION_REQUIRED',
  // LiveKit rooms: their clients are not this page.
  'INVALID_ROOM_TOKEN',
  'INVALID_JOIN_REQUEST',
  'LIVEKIT_URL_REFUSED',
  'ROOM_JOIN_FAILED',
  'ROOM_LOST',
  'JOIN_TIMEOUT',
];

test('every error code has a text on the page, without terms of the HTTP API', () => {
  for (const code of Object.keys(ERRORS)) {
    if (OWN_MESSAGE.includes(code) || NEVER_SEEN.includes(code)) {
      continue;
    }
    const words = errorMessage({ code, message: code });
    assert.doesNotMatch(words, new RegExp(code), `${code} is shown by its name`);
    assert.doesNotMatch(words, /GET |POST |header|above|below/, `${code}: ${words}`);
    assert.match(words, /^[A-Z].*[.]$/, code);
  }
});

test('an error without a text of its own shows its message', () => {
  assert.equal(
    errorMessage({ code: 'IMAGE_REJECTED', message: 'No face was found.' }),
    'No face was found.',
  );
  assert.equal(errorMessage(new Error('Plug one in.')), 'Plug one in.');
  assert.match(errorMessage(undefined), /unexpected/);
});
