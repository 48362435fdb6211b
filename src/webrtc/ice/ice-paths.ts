// The addresses of one client: which of them are validated, how much each may be sent, and which
// one gets the media.
import { randomBytes } from 'node:crypto';
import {
  newCredentials,
  type IceCredentials,
  type IceHost,
  type IceTransport,
  type StunVerdict,
} from './ice.ts';
import { nextConsentMs, Path } from './path.ts';
import { ReplayCache } from './replay-cache.ts';
import {
  bindingRequest,
  bindingSuccess,
  isAuthentic,
  transactionId,
  type StunView,
} from './stun.ts';

const MAX_PATHS = 8;
const MAX_PENDING_CHECKS = 4;
/**
 * An address that is not validated gets at most this many times the bytes it sent (as in RFC 9000
 * section 8.1).
 */
const MAX_AMPLIFICATION = 3;
/**
 * First interval between the checks of an address that does not answer. It doubles with each check.
 */
const FIRST_RETRY_MS = 200;
const MAX_TRIES = 7;
/** The selected address is unresponsive after leaving a check unanswered for this long. */
const UNRESPONSIVE_MS = 2_000;
/** Least interval between checks of the selected address other than consent checks. */
const MIN_CHECK_INTERVAL_MS = 1_000;

/**
 * ICE-lite (RFC 8445) with connectivity checks of our own. A check of the client only proves that
 * its
 * sender has seen one: anyone can replay it from any address. So an address is validated when it
 * answers a check of ours, which only the client can. Media goes to a validated address only. When
 * the client nominates another address, it is checked again before media moves there.
 *
 * Times are `monotonicMs()`.
 */
export class IcePaths implements IceTransport {
  #local = newCredentials();
  readonly #tieBreaker = randomBytes(8);
  readonly #host: IceHost;
  readonly #onSelected: () => void;
  #replayCache = new ReplayCache();
  readonly #paths: Path[] = [];
  #remote: IceCredentials = { ufrag: '', password: '' };
  /** Gets the media. */
  #selected: Path | undefined;
  #nominated: Path | undefined;
  #nominations = 0;
  /** Sent the latest DTLS datagram, while no address is selected. */
  #handshakePath: Path | undefined;

  /** @param onSelected called when the media gets an address, the first time or another one */
  constructor(host: IceHost, onSelected: () => void) {
    this.#host = host;
    this.#onSelected = onSelected;
  }

  get local(): IceCredentials {
    return this.#local;
  }
  /** Whether media has an address to go to. */
  get isSelected(): boolean {
    return this.#selected !== undefined;
  }
  /** `address:port` that media goes to. */
  get selectedKey(): string | undefined {
    return this.#selected?.key;
  }
  /** Whether an authentic check of the client has arrived. */
  get hasPaths(): boolean {
    return this.#paths.length > 0;
  }

  /** Sets the client's credentials, from its offer. */
  setRemote({ ufrag, password }: IceCredentials): void {
    this.#remote = { ufrag, password };
  }

  /** Candidates are not needed: the client's checks show its addresses. */
  addCandidate(): boolean {
    return false;
  }

  /**
   * ICE restart (RFC 8445 section 9): new credentials of ours, before `setRemote` takes those of the
   * client. Media stays on the selected address until the client nominates another one.
   */
  restart(): void {
    this.#local = newCredentials();
    this.#replayCache = new ReplayCache();
    for (const path of this.#paths.splice(0)) {
      if (path === this.#selected) {
        this.#paths.push(path);
      } else {
        this.#forget(path);
      }
    }
  }

  /** Releases all addresses. */
  close(): void {
    for (const path of this.#paths.splice(0)) {
      this.#forget(path);
    }
    this.#selected = this.#nominated = this.#handshakePath = undefined;
  }

  /**
   * Processes a Binding request with our ufrag. Nothing has an effect before its integrity is
   * verified.
   */
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
    const use = this.#replayCache.use(transactionId(data).toString('latin1'), key, (seen) =>
      this.#isValidated(seen, nowMs),
    );
    if (use === 'replayed') {
      return 'stun_replayed';
    }
    if (use === 'exhausted') {
      return 'rate_limited';
    }
    const path =
      this.#paths.find((known) => known.key === key) ?? this.#addPath(key, address, port, nowMs);
    path.receivedBytes += data.length;
    const response = bindingSuccess(data, address, port, this.#local.password);
    this.#send(path, response, response.length, nowMs);
    if (use !== 'repeated') {
      this.#onCheck(path, view.hasUseCandidate, nowMs);
    }
    return use === 'new' ? 'accepted' : 'repeated';
  }

  /**
   * Processes a response to one of our checks. It validates the address that was checked, if it
   * comes from there.
   */
  onResponse(
    data: Buffer,
    view: StunView,
    address: string,
    port: number,
    nowMs: number,
  ): StunVerdict {
    const id = transactionId(data).toString('latin1');
    const path = this.#paths.find(({ pendingChecks }) =>
      pendingChecks.some((check) => check.id === id),
    );
    const check = path?.pendingChecks.find((each) => each.id === id);
    if (path === undefined || check === undefined) {
      return 'stun_unknown_user';
    }
    if (path.key !== `${address}:${port}`) {
      return 'unknown_source';
    }
    if (!isAuthentic(data, view, this.#remote.password)) {
      return 'stun_integrity';
    }
    path.pendingChecks.splice(path.pendingChecks.indexOf(check), 1);
    this.#host.forgetResponse(id);
    if (view.kind !== 'success') {
      return 'other';
    }
    path.answeredMs = nowMs;
    path.unansweredSinceMs = Number.POSITIVE_INFINITY;
    path.tries = 0;
    path.nextCheckMs = Number.POSITIVE_INFINITY;
    this.#host.claimAddress(path.key, true);
    const isLatestNomination =
      check.nomination === path.nomination && path.nomination > (this.#selected?.nomination ?? -1);
    if (path === this.#selected) {
      this.#scheduleConsent(path, nowMs);
    } else if (this.#selected === undefined || isLatestNomination) {
      this.#select(path, nowMs);
    }
    return 'accepted';
  }

  /**
   * A DTLS datagram arrived from an address: the handshake goes there while no address is selected.
   */
  onHandshake(key: string, bytes: number): void {
    if (this.#selected !== undefined) {
      return;
    }
    const path = this.#paths.find((known) => known.key === key);
    if (path === undefined) {
      return;
    }
    path.receivedBytes += bytes;
    this.#handshakePath = path;
  }

  /**
   * Sends to the selected address, or to that of the handshake.
   * @returns false if it was not sent
   */
  sendHandshake(datagram: Buffer, nowMs: number): boolean {
    const path = this.#selected ?? this.#handshakePath;
    return path !== undefined && this.#send(path, datagram, datagram.length, nowMs);
  }

  /** Sends to the selected address; drops the datagram if there is none. */
  sendMedia(datagram: Buffer, length: number): void {
    const path = this.#selected;
    if (path !== undefined) {
      this.#host.send(datagram, length, path.address, path.port);
    }
  }

  /** Sends the checks that are due. */
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
    this.#replaceUnresponsive(nowMs);
  }

  /** Checks the selected address, unless it was checked within the last second. */
  checkSelected(nowMs: number): void {
    const path = this.#selected;
    if (path !== undefined && nowMs - path.checkedMs >= MIN_CHECK_INTERVAL_MS) {
      this.#check(path, nowMs);
    }
  }

  /**
   * Whether the client consents to receive media at the selected address (RFC 7675). True before
   * there is one.
   */
  hasConsent(nowMs: number): boolean {
    return this.#selected === undefined || this.#selected.isValidated(nowMs);
  }

  #isValidated(key: string, nowMs: number): boolean {
    return this.#paths.some((path) => path.key === key && path.isValidated(nowMs));
  }

  #addPath(key: string, address: string, port: number, nowMs: number): Path {
    if (this.#paths.length >= MAX_PATHS) {
      // Remove the oldest address that is not validated, else the oldest; never the selected one.
      const oldest =
        this.#paths.find((path) => path !== this.#selected && !path.isValidated(nowMs)) ??
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
    for (const { id } of path.pendingChecks) {
      this.#host.forgetResponse(id);
    }
    if (path === this.#nominated) {
      this.#nominated = undefined;
    }
    if (path === this.#handshakePath) {
      this.#handshakePath = undefined;
    }
  }

  /**
   * Decides whether a check of the client calls for one of ours. The client's last nomination
   * counts.
   */
  #onCheck(path: Path, isNominating: boolean, nowMs: number): void {
    path.heardMs = nowMs;
    if (isNominating) {
      this.#nominate(path);
    }
    if (path === this.#selected) {
      return;
    }
    if (this.#selected !== undefined && !isNominating) {
      this.checkSelected(nowMs);
      this.#replaceUnresponsive(nowMs);
      return;
    }
    const isBeingChecked =
      path.pendingChecks.at(-1)?.nomination === path.nomination &&
      nowMs - path.checkedMs < FIRST_RETRY_MS;
    if (isBeingChecked) {
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

  /**
   * Nominates another address if the selected one is unresponsive: when a NAT changes the client's
   * address, the client does not know and nominates nothing.
   */
  #replaceUnresponsive(nowMs: number): void {
    const selected = this.#selected;
    if (selected === undefined || nowMs - selected.unansweredSinceMs <= UNRESPONSIVE_MS) {
      return;
    }
    let replacement: Path | undefined;
    for (const path of this.#paths) {
      if (path.heardMs > (replacement ?? selected).heardMs) {
        replacement = path;
      }
    }
    if (replacement === undefined || replacement === this.#nominated) {
      return;
    }
    this.#nominate(replacement);
    replacement.tries = 0;
    this.#check(replacement, nowMs);
  }

  #check(path: Path, nowMs: number): void {
    const id = randomBytes(12);
    const { ufrag, password } = this.#remote;
    const request = bindingRequest(id, `${ufrag}:${this.#local.ufrag}`, password, this.#tieBreaker);
    path.checkedMs = nowMs;
    path.nextCheckMs = nowMs + FIRST_RETRY_MS * 2 ** Math.min(path.tries, MAX_TRIES);
    if (path === this.#selected) {
      this.#scheduleConsent(path, nowMs);
    }
    if (!this.#send(path, request, request.length, nowMs)) {
      return;
    }
    path.tries++;
    path.unansweredSinceMs = Math.min(path.unansweredSinceMs, nowMs);
    path.pendingChecks.push({ id: id.toString('latin1'), nomination: path.nomination });
    this.#host.expectResponse(id.toString('latin1'));
    if (path.pendingChecks.length > MAX_PENDING_CHECKS) {
      for (const oldest of path.pendingChecks.splice(0, 1)) {
        this.#host.forgetResponse(oldest.id);
      }
    }
  }

  #scheduleConsent(path: Path, nowMs: number): void {
    path.nextCheckMs = nextConsentMs(nowMs);
  }

  #select(path: Path, nowMs: number): void {
    this.#selected = path;
    this.#scheduleConsent(path, nowMs);
    this.#onSelected();
  }

  /** @returns false if the anti-amplification limit forbids it */
  #send(path: Path, datagram: Buffer, length: number, nowMs: number): boolean {
    if (!path.isValidated(nowMs)) {
      if (path.sentBytes + length > MAX_AMPLIFICATION * path.receivedBytes) {
        this.#host.onAmplificationLimit();
        return false;
      }
      path.sentBytes += length;
    }
    this.#host.send(datagram, length, path.address, path.port);
    return true;
  }
}
