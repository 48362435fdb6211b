// SDP offers, from parsing to the answer.
import assert from 'node:assert/strict';
import { ServiceError } from '../../../src/base/errors.ts';
import { planAnswer } from '../../../src/webrtc/sdp/answer.ts';
import { writeAnswer } from '../../../src/webrtc/sdp/write-answer.ts';
import { parseOffer } from '../../../src/webrtc/sdp/offer.ts';
import type { FuzzTarget } from '../engine/target.ts';

const IDENTITY = {
  sessionNumber: '1',
  sessionVersion: 2,
  ufrag: 'ufrag',
  password: 'a-password-of-enough-letters',
  fingerprint: 'AB:CD',
  candidates: [{ address: '192.0.2.7', port: 40_000 }],
  cname: 'cname',
  streamId: 'stream',
  videoTrackId: 'stream-video',
  audioTrackId: 'stream-audio',
  videoSsrc: 1,
  videoRtxSsrc: 2,
  audioSsrc: 3,
};
/** Characters of each section of an answer besides those from the offer. */
const OWN_BYTES = 2_000;

export const target: FuzzTarget = {
  run(data) {
    const text = data.toString('utf8');
    let answer: string;
    let sections: number;
    try {
      const plan = planAnswer(parseOffer(text));
      sections = plan.offer.sections.length;
      answer = writeAnswer(plan, IDENTITY);
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'INVALID_OFFER') {
        return;
      }
      throw error;
    }
    const lines = answer.split('\r\n');
    assert.ok(
      lines.slice(0, -1).every((line) => /^[a-z]=[^\r\n]*$/.test(line)),
      'the offer injected a line into the answer',
    );
    assert.equal(
      lines.filter((line) => line.startsWith('m=')).length,
      sections,
      'the answer has other sections than the offer',
    );
    assert.ok(answer.length <= text.length + (sections + 1) * OWN_BYTES, 'the answer is too long');
  },
};
