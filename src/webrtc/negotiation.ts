// The offers and answers of one peer (RFC 9429): what is agreed on, and what every SDP of ours
// repeats.
import { randomBytes, randomInt } from 'node:crypto';
import type { AnswerOptions, OfferRequest } from './peer.ts';
import { planFromAnswer } from './sdp/accept-answer.ts';
import { planAnswer, type AnswerPlan } from './sdp/answer.ts';
import { invalidAnswer, type Answer, type Offer } from './sdp/offer.ts';
import type { LocalIdentity } from './sdp/sdp-lines.ts';
import { writeAnswer } from './sdp/write-answer.ts';
import { writeOffer, type OwnSection } from './sdp/write-offer.ts';

/** What the transport contributes to a description. */
export type TransportIdentity = Pick<
  LocalIdentity,
  'ufrag' | 'password' | 'fingerprint' | 'candidates' | 'videoSsrc' | 'videoRtxSsrc' | 'audioSsrc'
>;

/** Lives as long as its peer. */
export class Negotiation {
  readonly cname = randomBytes(12).toString('base64url');
  readonly #isIceLite: boolean;
  readonly #sessionNumber = String(randomInt(2 ** 47));
  #sessionVersion = 1;
  #streamId = `mouthpiece-${randomBytes(6).toString('hex')}`;
  #audioTrackId = `${this.#streamId}-audio`;
  #videoTrackId = `${this.#streamId}-video`;
  #plan: AnswerPlan | undefined = undefined;
  /** The sections of our offers. A section keeps its place. */
  #sections: readonly OwnSection[] = [];
  #isOffered = false;

  /** @param isIceLite whether we are ICE-lite */
  constructor(isIceLite: boolean) {
    this.#isIceLite = isIceLite;
  }

  /** What is agreed on; undefined before the first answer. */
  get plan(): AnswerPlan | undefined {
    return this.#plan;
  }
  /** Whether an offer of ours waits for its answer. */
  get isOffered(): boolean {
    return this.#isOffered;
  }

  /**
   * Plans the answer to an offer. Nothing changes before `answer` is called.
   * @throws ServiceError INVALID_OFFER
   */
  planFor(offer: Offer, { allowsNoMedia = false }: AnswerOptions): AnswerPlan {
    const isFullIce = !this.#isIceLite;
    return planAnswer(offer, { previous: this.#plan, allowsNoMedia, isFullIce });
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
    return writeAnswer(plan, this.#describe(options, transport), this.#isIceLite);
  }

  /** Writes an offer. One that was not answered is void. */
  offer(request: OfferRequest, transport: TransportIdentity): string {
    const wanted = {
      audio: request.audioTrackId !== undefined,
      video: request.videoTrackId !== undefined,
      data: request.hasData ?? false,
    };
    const sections = this.#sections.map((section) => ({ ...section, sends: wanted[section.kind] }));
    for (const kind of ['audio', 'video', 'data'] as const) {
      if (wanted[kind] && !sections.some((section) => section.kind === kind)) {
        sections.push({ kind, mid: String(sections.length), sends: true });
      }
    }
    this.#sections = sections;
    this.#isOffered = true;
    // The codec in use stays: another one would be another stream.
    const agreed = this.#plan?.videoCodec;
    const codecs = agreed === undefined ? (request.videoCodecs ?? ['vp8']) : [agreed];
    return writeOffer(sections, codecs, this.#describe(request, transport), this.#isIceLite);
  }

  /**
   * Agrees on what the answer to our offer takes of it.
   * @throws ServiceError INVALID_OFFER; nothing has changed
   */
  accept(answer: Answer): AnswerPlan {
    if (!this.#isOffered) {
      throw invalidAnswer('no offer waits for an answer.');
    }
    this.#plan = planFromAnswer(this.#sections, answer, this.#plan, this.#isIceLite);
    this.#isOffered = false;
    return this.#plan;
  }

  #describe(ids: AnswerOptions | OfferRequest, transport: TransportIdentity): LocalIdentity {
    this.#streamId = ids.streamId ?? this.#streamId;
    this.#audioTrackId = ids.audioTrackId ?? this.#audioTrackId;
    this.#videoTrackId = ids.videoTrackId ?? this.#videoTrackId;
    return {
      ...transport,
      cname: this.cname,
      sessionNumber: this.#sessionNumber,
      sessionVersion: ++this.#sessionVersion,
      streamId: this.#streamId,
      audioTrackId: this.#audioTrackId,
      videoTrackId: this.#videoTrackId,
    };
  }
}
