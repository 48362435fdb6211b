// The offers and answers of one peer (RFC 9429): what is agreed on, and what every SDP of ours
// repeats.
import { randomBytes, randomInt } from 'node:crypto';
import type { AnswerOptions } from './peer.ts';
import { planAnswer, type AnswerPlan } from './sdp/answer.ts';
import type { Offer } from './sdp/offer.ts';
import { writeAnswer, type AnswerIdentity } from './sdp/write-answer.ts';

/** What the transport contributes to an answer. */
export type TransportIdentity = Pick<
  AnswerIdentity,
  'ufrag' | 'password' | 'fingerprint' | 'candidates' | 'videoSsrc' | 'videoRtxSsrc' | 'audioSsrc'
>;

/** Lives as long as its peer. */
export class Negotiation {
  readonly cname = randomBytes(12).toString('base64url');
  readonly #sessionNumber = String(randomInt(2 ** 47));
  #sessionVersion = 1;
  #streamId = `mouthpiece-${randomBytes(6).toString('hex')}`;
  #audioTrackId = `${this.#streamId}-audio`;
  #videoTrackId = `${this.#streamId}-video`;
  #plan: AnswerPlan | undefined = undefined;

  /** What is agreed on; undefined before the first answer. */
  get plan(): AnswerPlan | undefined {
    return this.#plan;
  }

  /**
   * Plans the answer to an offer. Nothing changes before `answer` is called.
   * @throws ServiceError INVALID_OFFER
   */
  planFor(offer: Offer, options: AnswerOptions): AnswerPlan {
    const { allowsNoMedia = false } = options;
    return planAnswer(offer, { previous: this.#plan, allowsNoMedia });
  }

  /** Whether a plan restarts ICE: the other side has new credentials (RFC 8839 section 4.4.1.1). */
  isRestart({ transport }: AnswerPlan): boolean {
    const before = this.#plan?.transport;
    return (
      before !== undefined &&
      (before.ufrag !== transport.ufrag || before.password !== transport.password)
    );
  }

  /** Agrees on a plan, and writes the answer. */
  answer(plan: AnswerPlan, options: AnswerOptions, transport: TransportIdentity): string {
    this.#plan = plan;
    this.#sessionVersion++;
    this.#streamId = options.streamId ?? this.#streamId;
    this.#audioTrackId = options.audioTrackId ?? this.#audioTrackId;
    this.#videoTrackId = options.videoTrackId ?? this.#videoTrackId;
    return writeAnswer(plan, {
      ...transport,
      cname: this.cname,
      sessionNumber: this.#sessionNumber,
      sessionVersion: this.#sessionVersion,
      streamId: this.#streamId,
      audioTrackId: this.#audioTrackId,
      videoTrackId: this.#videoTrackId,
    });
  }
}
