// The STUN server that the default ICE list names, so that clients gather their candidates without
// delay.
import { createSocket, type RemoteInfo } from 'node:dgram';
import net from 'node:net';
import { guarded } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs } from '../../base/time.ts';
import { AddressBudget } from '../../base/address-budget.ts';
import { MAGIC_COOKIE, unmapped, xorMappedAddress } from './mapped-address.ts';
import { ATTRIBUTE, BINDING_REQUEST, BINDING_SUCCESS, HEADER_BYTES } from './stun.ts';

/** A running server. */
export interface StunServer {
  readonly port: number;
  close(): Promise<void>;
}

/** What became of a datagram: the labels of mouthpiece_stun_requests_total. */
export const STUN_OUTCOMES = ['answered', 'rate_limited', 'not_stun', 'send_failed'] as const;
/** One of STUN_OUTCOMES. */
export type StunOutcome = (typeof STUN_OUTCOMES)[number];
/** Counts an outcome in the metric. */
export type StunCount = (outcome: StunOutcome) => void;

/** Log at most one socket error per second. */
const ERROR_LOG_INTERVAL_MS = 1_000;

/**
 * Answers Binding requests (RFC 8489 section 6.3.1) on UDP: on `port`, or on any free port if
 * `port` is in use.
 * @param count called once per datagram, and again if the system refuses to send the answer
 * @returns undefined, after a log line, if it cannot bind
 */
export async function startStunServer(
  host: string,
  port: number,
  log: Logger,
  count: StunCount = () => {},
): Promise<StunServer | undefined> {
  const budget = new AddressBudget(monotonicMs());
  const onSent = (error: Error | null): void => {
    if (error !== null) {
      count('send_failed');
    }
  };
  for (const candidate of [port, 0]) {
    const socket = createSocket({ type: net.isIPv6(host) ? 'udp6' : 'udp4' });
    socket.on(
      'message',
      guarded('a STUN request', (message: Buffer, { address, port: from }: RemoteInfo) => {
        // node:dgram throws if asked to send to port 0, which anyone can forge as source.
        const answer = from === 0 ? undefined : bindingResponse(message, address, from);
        if (answer === undefined) {
          count('not_stun');
          return;
        }
        if (!budget.take(address, monotonicMs())) {
          count('rate_limited');
          return;
        }
        count('answered');
        socket.send(answer, from, address, onSent);
      }),
    );
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.bind(candidate, host, () => {
          socket.off('error', reject);
          resolve();
        });
      });
    } catch (error) {
      socket.close();
      if (candidate === 0) {
        log.warn({ err: error }, 'the STUN server cannot bind: set ICE_SERVERS to another server');
      }
      continue;
    }
    let loggedMs = -Infinity;
    socket.on('error', (error) => {
      if (monotonicMs() - loggedMs < ERROR_LOG_INTERVAL_MS) {
        return;
      }
      loggedMs = monotonicMs();
      log.warn({ err: error }, 'the STUN server had an error');
    });
    return {
      port: socket.address().port,
      close: () =>
        new Promise((resolve) => {
          socket.close(() => resolve());
        }),
    };
  }
  return undefined;
}

/**
 * The answer to a Binding request: XOR-MAPPED-ADDRESS alone, 32 bytes (IPv6: 44). A request has at
 * least 20 bytes, so the server is of little use as an amplifier. An IPv4-mapped address is written
 * as the IPv6 address that it is.
 * @returns undefined if `message` is not a Binding request
 */
export function bindingResponse(
  message: Uint8Array,
  address: string,
  port: number,
): Buffer | undefined {
  if (message.length < HEADER_BYTES) {
    return undefined;
  }
  const request = Buffer.from(message.buffer, message.byteOffset, message.length);
  if (
    request.readUInt16BE(0) !== BINDING_REQUEST ||
    request.readUInt32BE(4) !== MAGIC_COOKIE ||
    request.readUInt16BE(2) !== message.length - HEADER_BYTES
  ) {
    return undefined;
  }
  // A dual-stack socket reports IPv4 clients as ::ffff:a.b.c.d; they know themselves by IPv4.
  const mapped = xorMappedAddress(request, unmapped(address), port);
  const answer = Buffer.alloc(HEADER_BYTES + 4 + mapped.length);
  answer.writeUInt16BE(BINDING_SUCCESS, 0);
  answer.writeUInt16BE(4 + mapped.length, 2);
  request.copy(answer, 4, 4, HEADER_BYTES); // cookie and transaction id
  answer.writeUInt16BE(ATTRIBUTE.xorMappedAddress, HEADER_BYTES);
  answer.writeUInt16BE(mapped.length, HEADER_BYTES + 2);
  mapped.copy(answer, HEADER_BYTES + 4);
  return answer;
}
