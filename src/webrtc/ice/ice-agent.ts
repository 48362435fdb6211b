// Full ICE (RFC 8445) for one component over one socket, in either role: towards an SFU, which may
// be ICE-lite or behind a NAT.
import { randomBytes } from 'node:crypto';
import type { CandidatePair } from './candidate-pair.ts';
import { CheckList } from './check-list.ts';
import {
  newCredentials,
  type IceCandidate,
  type IceCredentials,
  type IceHost,
  type IceTransport,
  type StunVerdict,
} from './ice.ts';
import { nextConsentMs } from './path.ts';
import { ReplayCache } from './replay-cache.ts';
import {
  bindingRequest,
  bindingSuccess,
  isAuthentic,
  ROLE_CONFLICT,
  roleConflict,
  transactionId,
  type IceRole,
  type StunView,
} from './stun.ts';

/** Checks of a pair that is not in use. */
const MAX_AGENT_TRIES = 7;
/** A nomination that is not answered after so many checks is given up. */
const MAX_NOMINATION_TRIES = 5;
/** RFC 8445 section 14.2: least time between the checks of a check list. */
const PACING_MS = 20;
/** First interval between checks of a pair without an answer. It doubles with each. */
const RETRY_MS = { first: 200, last: 1_600 } as const;
/** A better pair may still answer: the first valid one is nominated after this time. */
const NOMINATION_WAIT_MS = 100;
const MIN_CHECK_INTERVAL_MS = 1_000;
/** The selected pair has failed for now if it leaves checks unanswered for this long. */
const UNRESPONSIVE_MS = 2_000;

/** Times are `monotonicMs()`. */
export class IceAgent implements IceTransport {
  #local = newCredentials();
  /** Undefined before the other side's description, and from a restart until its next one. */
  #remote: IceCredentials | undefined = undefined;
  #role: IceRole = 'controlling';
  readonly #tieBreaker = randomBytes(8);
  readonly #host: IceHost;
  readonly #onSelected: () => void;
  readonly #list: CheckList;
  #replayCache = new ReplayCache();
  /** Gets the media. */
  #selected: CandidatePair | undefined = undefined;
  /** As the controlling side: the pair whose checks nominate it. */
  #nominated: CandidatePair | undefined = undefined;
  /** A nomination has succeeded since the start or the latest restart: no more pairs are checked. */
  #isConcluded = false;
  /** When the first pair became valid; Infinity: none is. */
  #firstValidMs = Number.POSITIVE_INFINITY;
  #lastCheckMs = Number.NEGATIVE_INFINITY;
  /** When the first check since the last answer of the selected pair was sent. */
  #unansweredSinceMs = Number.POSITIVE_INFINITY;

  /**
   * Starts in the controlling role: that of the side that offers first.
   * @param onSelected called when the media gets an address, the first time or another one
   */
  constructor(host: IceHost, onSelected: () => void) {
    this.#host = host;
    this.#list = new CheckList(host);
    this.#onSelected = onSelected;
  }

  get local(): IceCredentials {
    return this.#local;
  }
  get role(): IceRole {
    return this.#role;
  }
  get isSelected(): boolean {
    return this.#selected !== undefined;
  }
  /** `address:port` that media goes to. */
  get selectedKey(): string | undefined {
    return this.#selected?.key;
  }
  get hasPaths(): boolean {
    return this.#list.pairs.some(
      ({ heardMs, answeredMs }) => Math.max(heardMs, answeredMs) > Number.NEGATIVE_INFINITY,
    );
  }

  /** The other side has offered first. */
  becomeControlled(): void {
    this.#role = 'controlled';
  }

  setRemote({ ufrag, password }: IceCredentials): void {
    if (this.#remote?.ufrag === ufrag && this.#remote.password === password) {
      return;
    }
    this.#remote = { ufrag, password };
    this.#startOver();
  }

  restart(): void {
    this.#local = newCredentials();
    this.#remote = undefined;
    this.#replayCache = new ReplayCache();
    this.#list.keepOnly((pair) => pair === this.#selected);
    this.#startOver();
  }

  /** With other credentials no answer so far counts, except that the media has its path. */
  #startOver(): void {
    for (const pair of this.#list.pairs) {
      this.#list.forgetChecks(pair);
      pair.tries = 0;
      pair.nextCheckMs = 0;
      pair.isNominatedByRemote = false;
    }
    this.#nominated = undefined;
    this.#isConcluded = false;
    this.#firstValidMs = Number.POSITIVE_INFINITY;
    this.#unansweredSinceMs = Number.POSITIVE_INFINITY;
  }

  close(): void {
    this.#list.keepOnly(() => false);
    this.#selected = this.#nominated = undefined;
  }

  addCandidate(candidate: IceCandidate, nowMs: number): boolean {
    const isAdded = this.#list.add(candidate);
    this.poll(nowMs);
    return isAdded;
  }

  onRequest(
    data: Buffer,
    view: StunView,
    address: string,
    port: number,
    nowMs: number,
  ): StunVerdict {
    if (!isAuthentic(data, view, this.#local.password)) {
      return 'stun_integrity';
    }
    const key = `${address}:${port}`;
    const use = this.#replayCache.use(
      transactionId(data).toString('latin1'),
      key,
      (seen) => this.#list.at(seen)?.isValid(nowMs) ?? false,
    );
    if (use === 'replayed' || use === 'exhausted') {
      return use === 'replayed' ? 'stun_replayed' : 'rate_limited';
    }
    if (use !== 'repeated' && this.#isConflict(data, view)) {
      this.#respond(roleConflict(data, this.#local.password), address, port);
      return 'accepted';
    }
    const pair =
      this.#list.at(key) ??
      this.#list.addPeerReflexive(
        { address, port, priority: view.priority },
        (each) => each !== this.#selected && !each.isValid(nowMs),
      );
    if (pair === undefined) {
      return 'rate_limited';
    }
    this.#respond(bindingSuccess(data, address, port, this.#local.password), address, port);
    if (use === 'repeated') {
      return 'repeated';
    }
    this.#onCheck(pair, view.hasUseCandidate, nowMs);
    return use === 'new' ? 'accepted' : 'repeated';
  }

  #respond(response: Buffer, address: string, port: number): void {
    this.#host.send(response, response.length, address, port);
  }

  onResponse(
    data: Buffer,
    view: StunView,
    address: string,
    port: number,
    nowMs: number,
  ): StunVerdict {
    const found = this.#list.awaiting(transactionId(data).toString('latin1'));
    if (found === undefined || this.#remote === undefined) {
      return 'stun_unknown_user';
    }
    const { pair, check } = found;
    // RFC 8445 section 7.2.5.2.1: a pair is symmetric, or it fails.
    if (pair.key !== `${address}:${port}`) {
      return 'unknown_source';
    }
    if (!isAuthentic(data, view, this.#remote.password)) {
      return 'stun_integrity';
    }
    this.#list.forgetCheck(pair, check);
    if (view.kind !== 'success') {
      return this.#onError(pair, view.errorCode, check.role, nowMs);
    }
    pair.answeredMs = nowMs;
    pair.tries = 0;
    pair.nextCheckMs = Number.POSITIVE_INFINITY;
    this.#firstValidMs = Math.min(this.#firstValidMs, nowMs);
    this.#host.claimAddress(pair.key, true);
    if (pair === this.#selected) {
      this.#unansweredSinceMs = Number.POSITIVE_INFINITY;
      pair.nextCheckMs = nextConsentMs(nowMs);
    }
    if (check.nominates && this.#role === 'controlling') {
      this.#select(pair, nowMs);
    }
    this.#followNomination(pair, nowMs);
    this.#nominate(nowMs);
    return 'accepted';
  }

  onHandshake(): void {
    /* the handshake goes to a valid pair, whatever address it comes from */
  }

  /** To the selected pair, or before there is one to the best valid one (RFC 8445 section 12.1). */
  sendHandshake(datagram: Buffer, nowMs: number): boolean {
    const pair = this.#selected ?? this.#list.pairs.find((each) => each.isValid(nowMs));
    if (pair === undefined) {
      return false;
    }
    this.#host.send(datagram, datagram.length, pair.address, pair.port);
    return true;
  }

  sendMedia(datagram: Buffer, length: number): void {
    const pair = this.#selected;
    if (pair !== undefined) {
      this.#host.send(datagram, length, pair.address, pair.port);
    }
  }

  poll(nowMs: number): void {
    if (this.#remote === undefined) {
      return;
    }
    this.#nominate(nowMs);
    for (const pair of this.#list.pairs) {
      if (nowMs - this.#lastCheckMs < PACING_MS) {
        return;
      }
      if (nowMs >= pair.nextCheckMs && (!this.#isConcluded || pair === this.#selected)) {
        this.#checkAgain(pair, nowMs);
      }
    }
  }

  checkSelected(nowMs: number): void {
    const pair = this.#selected;
    if (pair !== undefined && nowMs - pair.checkedMs >= MIN_CHECK_INTERVAL_MS) {
      this.#check(pair, nowMs);
    }
  }

  hasConsent(nowMs: number): boolean {
    return this.#selected === undefined || this.#selected.isValid(nowMs);
  }

  /** RFC 8445 section 7.3.1.1. @returns true if the other side is to switch its role */
  #isConflict(data: Buffer, view: StunView): boolean {
    if (view.role !== this.#role || view.tieBreakerOffset < 0) {
      return false;
    }
    const theirs = data.subarray(view.tieBreakerOffset, view.tieBreakerOffset + 8);
    const isOursLarger = this.#tieBreaker.compare(theirs) >= 0;
    if (isOursLarger === (this.#role === 'controlling')) {
      return true;
    }
    this.#switchRole();
    return false;
  }

  #switchRole(): void {
    this.#role = this.#role === 'controlling' ? 'controlled' : 'controlling';
    this.#nominated = undefined;
  }

  #onError(pair: CandidatePair, errorCode: number, role: IceRole, nowMs: number): StunVerdict {
    if (errorCode !== ROLE_CONFLICT) {
      return 'other';
    }
    if (role === this.#role) {
      this.#switchRole();
    }
    this.#checkAgain(pair, nowMs);
    return 'accepted';
  }

  /** A new check of the other side: one of ours follows (RFC 8445 section 7.3.1.4). */
  #onCheck(pair: CandidatePair, isNominating: boolean, nowMs: number): void {
    const isFirst = pair.heardMs === Number.NEGATIVE_INFINITY;
    pair.heardMs = nowMs;
    if (isNominating && this.#role === 'controlled') {
      pair.isNominatedByRemote = true;
    }
    if (pair.isValid(nowMs)) {
      this.#followNomination(pair, nowMs);
    } else if (isFirst || nowMs - pair.checkedMs >= RETRY_MS.first) {
      this.#check(pair, nowMs);
    }
  }

  /** As the controlling side: nominates the best pair once no better one is likely to answer. */
  #nominate(nowMs: number): void {
    const current = this.#nominated;
    const isGivenUp =
      !this.#isConcluded && current !== undefined && current.tries >= MAX_NOMINATION_TRIES;
    if (this.#role === 'controlled' || (current !== undefined && !isGivenUp)) {
      return;
    }
    const best = this.#list.pairs.find(
      (pair) => pair !== current && pair.answeredMs >= this.#firstValidMs,
    );
    const isBestOfAll = this.#list.pairs[0] === best;
    if (best === undefined || (!isBestOfAll && nowMs - this.#firstValidMs < NOMINATION_WAIT_MS)) {
      return;
    }
    this.#nominated = best;
    best.tries = 0;
    this.#check(best, nowMs);
  }

  /**
   * As the controlled side: a valid pair that was nominated gets the media. Of several, the one of
   * the highest priority; some agents nominate every pair that they check.
   */
  #followNomination(pair: CandidatePair, nowMs: number): void {
    if (this.#role === 'controlling' || !pair.isNominatedByRemote) {
      return;
    }
    const isKept =
      this.#isConcluded &&
      this.#selected !== undefined &&
      this.#selected.priority > pair.priority &&
      nowMs - this.#unansweredSinceMs <= UNRESPONSIVE_MS;
    if (!isKept) {
      this.#select(pair, nowMs);
    }
  }

  #select(pair: CandidatePair, nowMs: number): void {
    this.#isConcluded = true;
    // Its consent has a timer of its own, which no check of the other side may put off.
    if (pair === this.#selected) {
      return;
    }
    this.#selected = pair;
    pair.nextCheckMs = nextConsentMs(nowMs);
    this.#unansweredSinceMs = Number.POSITIVE_INFINITY;
    this.#onSelected();
  }

  #checkAgain(pair: CandidatePair, nowMs: number): void {
    const isInUse = pair === this.#selected || pair === this.#nominated || pair.isNominatedByRemote;
    if (isInUse || pair.tries < MAX_AGENT_TRIES) {
      this.#check(pair, nowMs);
    } else {
      pair.nextCheckMs = Number.POSITIVE_INFINITY;
    }
  }

  #check(pair: CandidatePair, nowMs: number): void {
    if (this.#remote === undefined) {
      return;
    }
    const id = randomBytes(12);
    const role = this.#role;
    const nominates = role === 'controlling' && pair === this.#nominated && !this.#isConcluded;
    const { ufrag, password } = this.#remote;
    const username = `${ufrag}:${this.#local.ufrag}`;
    const check = { role, nominates };
    const request = bindingRequest(id, username, password, this.#tieBreaker, check);
    this.#lastCheckMs = pair.checkedMs = nowMs;
    pair.nextCheckMs = nowMs + Math.min(RETRY_MS.first * 2 ** pair.tries, RETRY_MS.last);
    pair.tries++;
    if (pair === this.#selected) {
      this.#unansweredSinceMs = Math.min(this.#unansweredSinceMs, nowMs);
    }
    this.#list.expect(pair, { id: id.toString('latin1'), ...check });
    this.#host.send(request, request.length, pair.address, pair.port);
  }
}
