// The JSON body of POST /static/audio with its Base64 text.
import assert from 'node:assert/strict';
import { AUDIO_FIELD, parseAudioBody } from '../../../src/jobs/parse-audio-body.ts';
import type { FuzzTarget } from '../engine/target.ts';

const FIELDS = [AUDIO_FIELD, 'audioFormat', 'faceId'];

export const target: FuzzTarget = {
  // JSON.parse takes 5 ms for 64 KiB of opening brackets; it is linear. This runs on a job thread.
  budget: { leastMs: 2, per64KiBMs: 15 },
  words: [
    '{"audioBase64":"',
    'data:audio/wav;base64,',
    '","audioFormat":"wav"',
    '\\n',
    '\\u000a',
    '==',
    '__proto__',
  ],
  run(data) {
    const parsed = parseAudioBody({
      chunks: [data.subarray(0, data.length >> 1), data.subarray(data.length >> 1)],
      fields: FIELDS,
    });
    if (parsed.kind !== 'value' || typeof parsed.value !== 'object' || parsed.value === null) {
      return;
    }
    for (const [name, value] of Object.entries(parsed.value)) {
      assert.ok(FIELDS.includes(name), `a field ${name} that was not asked for`);
      if (name === AUDIO_FIELD && value instanceof Uint8Array) {
        assert.ok(value.length <= (data.length * 3) / 4, 'more bytes than the text can hold');
      } else {
        assert.ok((JSON.stringify(value)?.length ?? 0) <= 8192, 'a field that is not small');
      }
    }
  },
};
