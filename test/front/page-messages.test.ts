// Every error that can reach the demo page is told in words that say what to do.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ERRORS } from '../../src/base/errors.ts';

const { errorMessage } = (await import(
  new URL('../../src/page/messages.js', import.meta.url).href
)) as {
  errorMessage: (error: unknown) => string;
};

/** Their own message is for people, and says more than the code could. */
const TELL_THEMSELVES = ['VALIDATION_FAILED', 'IMAGE_REJECTED'];

/** No request of the page can be answered so. */
const NEVER_SEEN = [
  'METHOD_NOT_ALLOWED',
  'CONFLICT',
  'UPGRADE_REQUIRED',
  'PRECONDITION_FAILED',
  'GONE',
  'RANGE_NOT_SATISFIABLE',
];

test('every code of the server has words on the page, without jargon of the interface', () => {
  for (const code of Object.keys(ERRORS)) {
    if (TELL_THEMSELVES.includes(code) || NEVER_SEEN.includes(code)) {
      continue;
    }
    const words = errorMessage({ code, message: code });
    assert.doesNotMatch(words, new RegExp(code), `${code} is told by its name`);
    assert.doesNotMatch(words, /GET |POST |header|above|below/, `${code}: ${words}`);
    assert.match(words, /^[A-Z].*[.]$/, code);
  }
});

test('an error without words of its own shows its message', () => {
  assert.equal(
    errorMessage({ code: 'IMAGE_REJECTED', message: 'No face was found.' }),
    'No face was found.',
  );
  assert.equal(errorMessage(new Error('Plug one in.')), 'Plug one in.');
  assert.match(errorMessage(undefined), /unexpected/);
});
