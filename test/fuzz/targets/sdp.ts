// SDP offers, from parsing to the answer; answers to an offer of ours, as far as the plan.
import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { ServiceError } from '../../../src/base/errors.ts';
import { planFromAnswer } from '../../../src/webrtc/sdp/accept-answer.ts';
import { planAnswer } from '../../../src/webrtc/sdp/answer.ts';
import { writeAnswer } from '../../../src/webrtc/sdp/write-answer.ts';
import { parseAnswer, parseOffer } from '../../../src/webrtc/sdp/offer.ts';
import type { OwnSection } from '../../../src/webrtc/sdp/write-offer.ts';
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
/** What an offer of ours has, for answers. */
const OFFERED: readonly OwnSection[] = [
  { kind: 'audio', mid: '0', sends: true },
  { kind: 'video', mid: '1', sends: true },
  { kind: 'data', mid: '2', sends: true },
];

/** Runs `use`. @returns undefined if the text is refused, as INVALID_OFFER */
function unlessRefused<T>(use: () => T): T | undefined {
  try {
    return use();
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'INVALID_OFFER') {
      return undefined;
    }
    throw error;
  }
}

/** The text as an answer to an offer of ours. */
function checkAnswer(text: string): void {
  const plan = unlessRefused(() => planFromAnswer(OFFERED, parseAnswer(text), undefined, false));
  if (plan === undefined) {
    return;
  }
  assert.equal(plan.offer.sections.length, OFFERED.length);
  assert.ok(plan.offer.candidates.length <= 64, 'too many candidates are kept');
  for (const { address, port } of plan.offer.candidates) {
    assert.ok(isIP(address) > 0 && port > 0 && port < 65_536, `${address}:${port}`);
  }
}

/** Characters of each section of an answer besides those from the offer. */
const OWN_BYTES = 2_000;

export const target: FuzzTarget = {
  // An offer of 23 kB takes 1 ms, one of 35 kB 1.3 ms; beside other work twice as much.
  budget: { leastMs: 4, per64KiBMs: 10 },
  run(data) {
    const text = data.toString('utf8');
    checkAnswer(text);
    const plan = unlessRefused(() => planAnswer(parseOffer(text)));
    if (plan === undefined) {
      return;
    }
    const sections = plan.offer.sections.length;
    const answer = writeAnswer(plan, IDENTITY);
    // The same offer again is always answered.
    planAnswer(parseOffer(text), { previous: plan });
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
