// A STUN server of a few lines, for the default ICE list: a client that gathers candidates gets its answer at once, instead of waiting for a server that is not there.
import { createSocket } from 'node:dgram';
import net from 'node:net';
import type { Logger } from '../base/log.ts';

export interface StunServer { readonly port: number; close(): Promise<void> }

const MAGIC_COOKIE = 0x2112a442;
const BINDING_REQUEST = 0x0001;
const BINDING_SUCCESS = 0x0101;
const XOR_MAPPED_ADDRESS = 0x0020;
const HEADER_BYTES = 20;

/** Answers Binding requests (RFC 8489 section 6.3.1) on UDP; on any free port when `port` is taken. Undefined, with a complaint, when it cannot bind at all. */
export async function startStunServer(host: string, port: number, log: Logger): Promise<StunServer | undefined> {
  for (const candidate of [port, 0]) {
    const socket = createSocket({ type: net.isIPv6(host) ? 'udp6' : 'udp4' });
    socket.on('message', (message, { address, port: from }) => {
      const answer = bindingResponse(message, address, from);
      if (answer) socket.send(answer, from, address, () => {}); // a client that is gone is no concern of ours
    });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.bind(candidate, host, () => { socket.off('error', reject); resolve(); });
      });
    } catch (error) {
      socket.close();
      if (candidate === 0) log.warn({ err: error }, 'the STUN server cannot bind; set ICE_SERVERS');
      continue;
    }
    socket.on('error', (error) => { log.warn({ err: error }, 'the STUN server had an error'); });
    return { port: socket.address().port, close: () => new Promise((resolve) => { socket.close(() => resolve()); }) };
  }
  return undefined;
}

/** @returns undefined for whatever is no Binding request. The answer is 12 bytes longer than the shortest request (24 with IPv6), so it amplifies next to nothing. */
export function bindingResponse(message: Uint8Array, address: string, port: number): Buffer | undefined {
  if (message.length < HEADER_BYTES) return undefined;
  const request = Buffer.from(message.buffer, message.byteOffset, message.length);
  if (request.readUInt16BE(0) !== BINDING_REQUEST || request.readUInt32BE(4) !== MAGIC_COOKIE || request.readUInt16BE(2) !== message.length - HEADER_BYTES) return undefined;
  const bytes = addressBytes(address);
  const answer = Buffer.alloc(HEADER_BYTES + 8 + bytes.length);
  answer.writeUInt16BE(BINDING_SUCCESS, 0);
  answer.writeUInt16BE(8 + bytes.length, 2);
  request.copy(answer, 4, 4, HEADER_BYTES); // cookie and transaction id
  answer.writeUInt16BE(XOR_MAPPED_ADDRESS, 20);
  answer.writeUInt16BE(4 + bytes.length, 22);
  answer.writeUInt8(bytes.length === 4 ? 1 : 2, 25);
  answer.writeUInt16BE(port ^ (MAGIC_COOKIE >>> 16), 26);
  for (const [i, byte] of bytes.entries()) answer[28 + i] = byte ^ (request[4 + i] as number); // cookie, then transaction id (section 14.2)
  return answer;
}

function addressBytes(address: string): number[] {
  if (net.isIPv4(address)) return address.split('.').map(Number);
  const halves = (address.split('%')[0] as string).split('::');
  const words = (part: string): number[] => part === '' ? [] : part.split(':').flatMap((word) => word.includes('.') ? ipv4Words(word) : [Number.parseInt(word, 16)]);
  const [front, back] = [words(halves[0] ?? ''), words(halves[1] ?? '')];
  const all = address.includes('::') ? [...front, ...Array.from({ length: 8 - front.length - back.length }, () => 0), ...back] : front;
  return all.flatMap((word) => [word >> 8, word & 0xff]);
}

function ipv4Words(address: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  return [(a << 8) | b, (c << 8) | d];
}
