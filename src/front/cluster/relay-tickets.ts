// Tickets with which one server proves to another that it passes a client on.
import { createHmac, randomBytes } from 'node:crypto';
import { constantTimeEqual } from '../../base/ids.ts';

/** The header of a ticket. */
export const TICKET_HEADER = 'x-mouthpiece-relay';
/** How long a ticket is good for, and how far the clocks of two servers may differ. */
const TTL_MS = 60_000;
/** Tickets remembered, so that none is used twice. Beyond it tickets are refused. */
const MAX_REDEEMED = 100_000;
const NONCE_BYTES = 12;

/** Issues and redeems the tickets of one server. */
export class RelayTickets {
  readonly #key: Buffer;
  readonly #nodeId: string;
  /** Signature → when it may be forgotten, in the order of redemption. */
  readonly #redeemed = new Map<string, number>();

  /** @param key that all servers have */
  constructor(key: Buffer, nodeId: string) {
    this.#key = key;
    this.#nodeId = nodeId;
  }

  /**
   * A ticket for one request.
   * @param target path and query of the request
   */
  issue(toNodeId: string, target: string, nowMs: number): string {
    const claims = `${Math.round(nowMs)}.${randomBytes(NONCE_BYTES).toString('base64url')}`;
    return `${claims}.${this.#sign(toNodeId, claims, target)}`;
  }

  /** Whether a ticket is for this server and this request, and was not used before. */
  redeem(ticket: string, target: string, nowMs: number): boolean {
    const parts = /^(\d{1,15})\.[\w-]{16}\.([\w-]{43})$/.exec(ticket);
    if (parts === null || Math.abs(nowMs - Number(parts[1])) > TTL_MS) {
      return false;
    }
    const signature = parts[2]!;
    const claims = ticket.slice(0, -signature.length - 1);
    if (!constantTimeEqual(signature, this.#sign(this.#nodeId, claims, target))) {
      return false;
    }
    for (const [old, untilMs] of this.#redeemed) {
      if (untilMs > nowMs) {
        break;
      }
      this.#redeemed.delete(old);
    }
    if (this.#redeemed.has(signature) || this.#redeemed.size >= MAX_REDEEMED) {
      return false;
    }
    this.#redeemed.set(signature, nowMs + 2 * TTL_MS);
    return true;
  }

  #sign(toNodeId: string, claims: string, target: string): string {
    return createHmac('sha256', this.#key)
      .update(`${toNodeId}\n${claims}\n${target}`)
      .digest('base64url');
  }
}
