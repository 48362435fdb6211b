// The addresses of one client: which of them have answered us, what each may be sent, and which one gets the media.
import { randomBytes, randomInt } from 'node:crypto';
import { RequestMemory } from './request-memory.ts';
import {
  bindingRequest,
  bindingSuccess,
  isAuthentic,
  transactionId,
  type StunView,
} from './stun.ts';

/** What the paths need of the endpoint. */
export interface PathHost {
  send(datagram: Buffer, length: number, address: string, port: number): void;
  /** Routes datagrams from an address to this peer. Another peer's address is taken over only when `isProven`. */
  claimAddress(key: string, isProven: boolean): void;
  releaseAddress(key: string): void;
  /** Routes the response to a check of ours, whatever address it comes from, to this peer. */
  expectResponse(id: string): void;
  forgetResponse(id: string): void;
  /** A datagram was not sent, since its address has not proven itself. */
  onHeldBack(): void;
}

/** What became of a STUN message that was meant for this peer. `repeated`: answered, and otherwise without effect. */
export type StunVerdict =
  | 'accepted'
  | 'repeated'
  | 'stun_integrity'
  | 'stun_replayed'
  | 'stun_unknown_user'
  | 'unknown_source'
  | 'rate_limited'
  | 'other';

interface Check {
  readonly id: string;
  readonly nomination: number;
}

/** One address of the client's. */
class Path {
  readonly key: string;
  readonly address: string;
  readonly port: number;
  /** Bytes of checks and handshake from this address, and bytes sent to it while it was not proven. */
  received = 0;
  sent = 0;
  /** When it last answered a check of ours. */
  answeredMs = Number.NEGATIVE_INFINITY;
  /** When the first check since then went out. */
  askedMs = Number.POSITIVE_INFINITY;
  /** Rank of its nomination: the latest has the highest. 0: never nominated. */
  nomination = 0;
  /** Checks that may still be answered, the latest last. */
  readonly checks: Check[] = [];
  /** Checks sent since the client last gave reason for one. */
  tries = 0;
  /** When the last new check came from here, when the last of ours went there, and when the next one is due. */
  heardMs = Number.NEGATIVE_INFINITY;
  checkedMs = Number.NEGATIVE_INFINITY;
  nextCheckMs = Number.POSITIVE_INFINITY;

  constructor(key: string, address: string, port: number) {
    this.key = key;
    this.address = address;
    this.port = port;
  }

  /** An answer counts for as long as consent does (RFC 7675 section 5.1). */
  isProven(nowMs: number): boolean {
    return nowMs - this.answeredMs <= CONSENT_MS;
  }
}

const MAX_PATHS = 8;
const MAX_PENDING_CHECKS = 4;
/** An address that has proven nothing gets at most so many times what it sent (as RFC 9000 section 8.1 has it). */
const MAX_AMPLIFICATION = 3;
/** RFC 7675 section 5.1: consent ends 30 s after the last answer; checks are sent every 5 s, times 0.8 to 1.2. */
export const CONSENT_MS = 30_000;
const CONSENT_INTERVAL_MS = { least: 4_000, most: 6_000 } as const;
/** Checks of an address that has not answered yet: the first repetition, doubled each time, up to so many checks. */
const FIRST_RETRY_MS = 200;
const MAX_TRIES = 7;
/** The address in use is doubted when it leaves a check unanswered for so long. */
const DOUBT_MS = 2_000;
/** Checks of the address in use, other than those of consent, are at least so far apart. */
const LEAST_INTERVAL_MS = 1_000;

/**
 * ICE-lite (RFC 8445) with checks of our own. A check of the client's proves only that somebody has seen one: it can be
 * replayed from any address. So an address counts once it has answered a check of ours, which only the client can. Media
 * goes to no other. A nominated address is asked again before media moves to it, and until then media stays where it is.
 */
export class IcePaths {
  // Plain base64 without padding: RFC 8839 allows letters, digits, + and /.
  readonly ufrag = randomBytes(6).toString('base64');
  readonly password = randomBytes(18).toString('base64');
  readonly #tieBreaker = randomBytes(8);
  readonly #host: PathHost;
  /** Called when media goes to another address than before, the first time included. */
  readonly #onSelected: () => void;
  readonly #memory = new RequestMemory();
  readonly #paths: Path[] = [];
  #remote = { ufrag: '', password: '' };
  #selected: Path | undefined;
  #nominated: Path | undefined;
  #nominations = 0;
  /** Where the client's handshake comes from, while no address is proven. */
  #handshakeFrom: Path | undefined;

  constructor(host: PathHost, onSelected: () => void) {
    this.#host = host;
    this.#onSelected = onSelected;
  }

  /** Whether an address has answered: then media may be sent. */
  get isSelected(): boolean {
    return this.#selected !== undefined;
  }
  /** `address:port` that media goes to; undefined before one has answered. */
  get selectedKey(): string | undefined {
    return this.#selected?.key;
  }
  /** Whether any authentic check has come. */
  get hasPaths(): boolean {
    return this.#paths.length > 0;
  }

  /** The client's credentials, from its offer. */
  setRemote(ufrag: string, password: string): void {
    this.#remote = { ufrag, password };
  }

  close(): void {
    for (const path of this.#paths.splice(0)) {
      this.#forget(path);
    }
    this.#selected = this.#nominated = this.#handshakeFrom = undefined;
  }

  /** A Binding request with our ufrag. Nothing is believed or answered before its integrity is proven. */
  onRequest(
    data: Buffer,
    view: StunView,
    address: string,
    port: number,
    nowMs: number,
  ): StunVerdict {
    if (!isAuthentic(data, view, this.password)) {
      return 'stun_integrity';
    }
    const key = `${address}:${port}`;
    const use = this.#memory.use(transactionId(data).toString('latin1'), key, (seen) =>
      this.#isProven(seen, nowMs),
    );
    if (use === 'replayed') {
      return 'stun_replayed';
    }
    if (use === 'exhausted') {
      return 'rate_limited';
    }
    const path =
      this.#paths.find((known) => known.key === key) ?? this.#learn(key, address, port, nowMs);
    path.received += data.length;
    const response = bindingSuccess(data, address, port, this.password);
    this.#send(path, response, response.length, nowMs);
    if (use !== 'repeated') {
      this.#consider(path, view.hasUseCandidate, nowMs);
    }
    return use === 'new' ? 'accepted' : 'repeated';
  }

  /** A response to one of our checks. It counts for the address that was asked, and only when it comes from there. */
  onResponse(
    data: Buffer,
    view: StunView,
    address: string,
    port: number,
    nowMs: number,
  ): StunVerdict {
    const id = transactionId(data).toString('latin1');
    const path = this.#paths.find(({ checks }) => checks.some((check) => check.id === id));
    const check = path?.checks.find((each) => each.id === id);
    if (path === undefined || check === undefined) {
      return 'stun_unknown_user';
    }
    if (path.key !== `${address}:${port}`) {
      return 'unknown_source';
    }
    if (!isAuthentic(data, view, this.#remote.password)) {
      return 'stun_integrity';
    }
    path.checks.splice(path.checks.indexOf(check), 1);
    this.#host.forgetResponse(id);
    if (view.kind !== 'success') {
      return 'other';
    }
    path.answeredMs = nowMs;
    path.askedMs = Number.POSITIVE_INFINITY;
    path.tries = 0;
    path.nextCheckMs = Number.POSITIVE_INFINITY;
    this.#host.claimAddress(path.key, true);
    const isLatest =
      check.nomination === path.nomination && path.nomination > (this.#selected?.nomination ?? -1);
    if (path === this.#selected) {
      this.#scheduleConsent(path, nowMs);
    } else if (this.#selected === undefined || isLatest) {
      this.#select(path, nowMs);
    }
    return 'accepted';
  }

  /** A DTLS datagram of use came from an address: answers go there while no address is proven. */
  onHandshake(key: string, bytes: number): void {
    if (this.#selected !== undefined) {
      return;
    }
    const path = this.#paths.find((known) => known.key === key);
    if (path === undefined) {
      return;
    }
    path.received += bytes;
    this.#handshakeFrom = path;
  }

  /** Sends to the proven address, before there is one to that of the handshake. @returns false: held back. */
  sendHandshake(datagram: Buffer, nowMs: number): boolean {
    const path = this.#selected ?? this.#handshakeFrom;
    return path !== undefined && this.#send(path, datagram, datagram.length, nowMs);
  }

  /** Sends to the proven address; nothing happens before there is one. */
  sendMedia(datagram: Buffer, length: number): void {
    const path = this.#selected;
    if (path !== undefined) {
      this.#host.send(datagram, length, path.address, path.port);
    }
  }

  /** Asks whoever is due. */
  poll(nowMs: number): void {
    for (const path of this.#paths) {
      if (nowMs < path.nextCheckMs) {
        continue;
      }
      if (path === this.#selected || path.tries < MAX_TRIES) {
        this.#check(path, nowMs);
      } else {
        path.nextCheckMs = Number.POSITIVE_INFINITY;
      }
    }
    this.#replaceDoubted(nowMs);
  }

  /** Asks the address in use, unless it was asked within the last second. */
  checkSelected(nowMs: number): void {
    const path = this.#selected;
    if (path !== undefined && nowMs - path.checkedMs >= LEAST_INTERVAL_MS) {
      this.#check(path, nowMs);
    }
  }

  /** RFC 7675: whether the client still wants what is sent to the address in use. */
  hasConsent(nowMs: number): boolean {
    return this.#selected === undefined || this.#selected.isProven(nowMs);
  }

  #isProven(key: string, nowMs: number): boolean {
    return this.#paths.some((path) => path.key === key && path.isProven(nowMs));
  }

  #learn(key: string, address: string, port: number, nowMs: number): Path {
    if (this.#paths.length >= MAX_PATHS) {
      // Those that have answered go last, and the one in use never.
      const oldest =
        this.#paths.find((path) => path !== this.#selected && !path.isProven(nowMs)) ??
        this.#paths.find((path) => path !== this.#selected);
      if (oldest !== undefined) {
        this.#paths.splice(this.#paths.indexOf(oldest), 1);
        this.#forget(oldest);
      }
    }
    const path = new Path(key, address, port);
    this.#paths.push(path);
    this.#host.claimAddress(key, false);
    return path;
  }

  #forget(path: Path): void {
    this.#host.releaseAddress(path.key);
    for (const { id } of path.checks) {
      this.#host.forgetResponse(id);
    }
    if (path === this.#nominated) {
      this.#nominated = undefined;
    }
    if (path === this.#handshakeFrom) {
      this.#handshakeFrom = undefined;
    }
  }

  /** Whether a check of the client's calls for one of ours. The client decides: its last nomination counts. */
  #consider(path: Path, isNominated: boolean, nowMs: number): void {
    path.heardMs = nowMs;
    if (isNominated) {
      this.#nominate(path);
    }
    if (path === this.#selected) {
      return;
    }
    if (this.#selected !== undefined && !isNominated) {
      this.checkSelected(nowMs);
      this.#replaceDoubted(nowMs);
      return;
    }
    const isAsked =
      path.checks.at(-1)?.nomination === path.nomination && nowMs - path.checkedMs < FIRST_RETRY_MS;
    if (isAsked) {
      return;
    }
    path.tries = 0;
    this.#check(path, nowMs);
  }

  #nominate(path: Path): void {
    if (path === this.#nominated) {
      return;
    }
    path.nomination = ++this.#nominations;
    this.#nominated = path;
  }

  /** Where a NAT gives the client another address, the client knows nothing of it and nominates nothing. */
  #replaceDoubted(nowMs: number): void {
    const selected = this.#selected;
    if (selected === undefined || nowMs - selected.askedMs <= DOUBT_MS) {
      return;
    }
    let heir: Path | undefined;
    for (const path of this.#paths) {
      if (path.heardMs > (heir ?? selected).heardMs) {
        heir = path;
      }
    }
    if (heir === undefined || heir === this.#nominated) {
      return;
    }
    this.#nominate(heir);
    heir.tries = 0;
    this.#check(heir, nowMs);
  }

  #check(path: Path, nowMs: number): void {
    const id = randomBytes(12);
    const { ufrag, password } = this.#remote;
    const request = bindingRequest(id, `${ufrag}:${this.ufrag}`, password, this.#tieBreaker);
    path.checkedMs = nowMs;
    path.nextCheckMs = nowMs + FIRST_RETRY_MS * 2 ** Math.min(path.tries, MAX_TRIES);
    if (path === this.#selected) {
      this.#scheduleConsent(path, nowMs);
    }
    if (!this.#send(path, request, request.length, nowMs)) {
      return;
    }
    path.tries++;
    path.askedMs = Math.min(path.askedMs, nowMs);
    path.checks.push({ id: id.toString('latin1'), nomination: path.nomination });
    this.#host.expectResponse(id.toString('latin1'));
    if (path.checks.length > MAX_PENDING_CHECKS) {
      for (const old of path.checks.splice(0, 1)) {
        this.#host.forgetResponse(old.id);
      }
    }
  }

  #scheduleConsent(path: Path, nowMs: number): void {
    path.nextCheckMs = nowMs + randomInt(CONSENT_INTERVAL_MS.least, CONSENT_INTERVAL_MS.most + 1);
  }

  #select(path: Path, nowMs: number): void {
    this.#selected = path;
    this.#scheduleConsent(path, nowMs);
    this.#onSelected();
  }

  #send(path: Path, datagram: Buffer, length: number, nowMs: number): boolean {
    if (!path.isProven(nowMs)) {
      if (path.sent + length > MAX_AMPLIFICATION * path.received) {
        this.#host.onHeldBack();
        return false;
      }
      path.sent += length;
    }
    this.#host.send(datagram, length, path.address, path.port);
    return true;
  }
}
