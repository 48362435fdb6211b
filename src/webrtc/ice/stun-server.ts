// A STUN server of a few lines, for the default ICE list: a client that gathers candidates gets its answer at once, instead of waiting for a server that is not there.
import { createSocket, type RemoteInfo } from 'node:dgram';
import net from 'node:net';
import { guarded } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs } from '../../base/time.ts';
import { AddressBudget } from '../../base/address-budget.ts';

export interface StunServer {
  readonly port: number;
  close(): Promise<void>;
}

/** What became of a datagram: the labels of mouthpiece_stun_requests_total. */
export const STUN_OUTCOMES = ['answered', 'rate_limited', 'not_stun', 'send_failed'] as const;
export type StunOutcome = (typeof STUN_OUTCOMES)[number];
export type StunCount = (outcome: StunOutcome) => void;

const MAGIC_COOKIE = 0x2112a442;
const BINDING_REQUEST = 0x0001;
const BINDING_SUCCESS = 0x0101;
const XOR_MAPPED_ADDRESS = 0x0020;
const HEADER_BYTES = 20;
const ERROR_LOG_INTERVAL_MS = 1_000;

/**
 * Answers Binding requests (RFC 8489 section 6.3.1) on UDP; on any free port when `port` is taken.
 * Undefined, with a log line, when it cannot bind at all.
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
        // node:dgram throws when asked to send to port 0, and anybody may claim to come from there.
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
        log.warn({ err: error }, 'the STUN server cannot bind; set ICE_SERVERS');
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
 * @returns undefined for whatever is no Binding request. The answer holds the mapped address alone: 32
 * bytes (44 with IPv6) to a request of at least 20, which is the least that RFC 8489 allows.
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
  const bytes = addressBytes(address);
  const answer = Buffer.alloc(HEADER_BYTES + 8 + bytes.length);
  answer.writeUInt16BE(BINDING_SUCCESS, 0);
  answer.writeUInt16BE(8 + bytes.length, 2);
  request.copy(answer, 4, 4, HEADER_BYTES); // cookie and transaction id
  answer.writeUInt16BE(XOR_MAPPED_ADDRESS, 20);
  answer.writeUInt16BE(4 + bytes.length, 22);
  answer.writeUInt8(bytes.length === 4 ? 1 : 2, 25);
  answer.writeUInt16BE(port ^ (MAGIC_COOKIE >>> 16), 26);
  for (const [i, byte] of bytes.entries()) {
    answer[28 + i] = byte ^ (request[4 + i] as number);
  } // cookie, then transaction id (section 14.2)
  return answer;
}

function addressBytes(address: string): number[] {
  if (net.isIPv4(address)) {
    return address.split('.').map(Number);
  }
  const halves = (address.split('%')[0] as string).split('::');
  const words = (part: string): number[] =>
    part === ''
      ? []
      : part
          .split(':')
          .flatMap((word) => (word.includes('.') ? ipv4Words(word) : [Number.parseInt(word, 16)]));
  const [front, back] = [words(halves[0] ?? ''), words(halves[1] ?? '')];
  const all = address.includes('::')
    ? [...front, ...Array.from({ length: 8 - front.length - back.length }, () => 0), ...back]
    : front;
  return all.flatMap((word) => [word >> 8, word & 0xff]);
}

function ipv4Words(address: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  return [(a << 8) | b, (c << 8) | d];
}
