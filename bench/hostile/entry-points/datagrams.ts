// Entry points on UDP: what reaches a worker's socket, or the STUN server's, from sources that
// nobody knows.
import { randomBytes, randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { setTimeout as delay } from 'node:timers/promises';
import { bindingRequest } from '../../../src/webrtc/ice/stun.ts';
import { type Attack, type EntryPoint, paced } from '../entry-point.ts';

/**
 * Datagrams are made ahead: the attackers share the cores with the server, and must not spend them
 * on chance.
 */
const MADE_AHEAD = 512;
const LONGEST = 1400;

const between = (low: number, high: number): number => randomInt(low, high + 1);

async function openSockets(attack: Attack): Promise<Socket[]> {
  return await Promise.all(
    attack.arena.addresses.map(
      (address) =>
        new Promise<Socket>((resolve, reject) => {
          const socket = createSocket('udp4');
          socket.once('error', reject);
          socket.bind({ address, port: 0 }, () => {
            socket.on('error', () => {
              attack.answered('not sent');
            });
            attack.atEnd(() => {
              socket.close();
            });
            resolve(socket);
          });
        }),
    ),
  );
}

/** Sends `make`'s datagrams at the attack's rate. */
async function flood(
  attack: Attack,
  port: number,
  make: (index: number) => Buffer,
  onAnswer?: (data: Buffer) => void,
): Promise<void> {
  const datagrams = Array.from({ length: MADE_AHEAD }, (_, index) => make(index));
  const sockets = await openSockets(attack);
  if (onAnswer !== undefined) {
    for (const socket of sockets) {
      socket.on('message', onAnswer);
    }
  }
  const host = new URL(attack.arena.url).hostname;
  let next = 0;
  await paced(attack, (due) => {
    for (let i = 0; i < due; i++) {
      next++;
      sockets[next % sockets.length]!.send(datagrams[next % MADE_AHEAD]!, port, host);
    }
    attack.attempted(due);
  });
}

/** A record of DTLS 1.2 that begins as a ClientHello would and goes on by chance. */
function dtlsLike(): Buffer {
  const body = randomBytes(between(60, 300));
  body[0] = 1;
  const head = Buffer.from([22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt16BE(body.length, 11);
  return Buffer.concat([head, body]);
}

/** RTP (payload types of audio and video) or RTCP by its first bytes. */
function srtpLike(index: number): Buffer {
  const packet = randomBytes(between(40, 1200));
  packet[0] = 0x80;
  packet[1] = [96, 111, 200, 201, 206][index % 5]!;
  return packet;
}

export const junkDatagrams: EntryPoint = {
  name: 'junk',
  about: 'UDP datagrams of chance to a media port',
  unit: 'datagrams',
  perSecond: 4000,
  attack: (attack) => flood(attack, attack.arena.mediaPort, () => randomBytes(between(1, LONGEST))),
};

export const forgedStun: EntryPoint = {
  name: 'stun',
  about:
    'STUN Binding requests to a media port, well-formed, with names and signatures that ' +
    "are nobody's",
  unit: 'datagrams',
  perSecond: 4000,
  attack: (attack) =>
    flood(attack, attack.arena.mediaPort, () =>
      bindingRequest(
        randomBytes(12),
        `${randomBytes(6).toString('base64')}:x`,
        randomBytes(8).toString('hex'),
        randomBytes(8),
      ),
    ),
};

export const foreignMedia: EntryPoint = {
  name: 'media',
  about:
    'DTLS, SRTP and SRTCP to a media port, by their first bytes, from sources that ICE never saw',
  unit: 'datagrams',
  perSecond: 4000,
  attack: (attack) =>
    flood(attack, attack.arena.mediaPort, (index) =>
      index % 2 === 0 ? dtlsLike() : srtpLike(index),
    ),
};

/** Binding request without attributes, as clients gather by (RFC 8489 section 6). */
function gathering(): Buffer {
  const request = Buffer.alloc(20);
  request.writeUInt16BE(1, 0);
  request.writeUInt32BE(0x2112a442, 4);
  randomBytes(12).copy(request, 8);
  return request;
}

/** What is on its way when the flood ends may still arrive. */
const LAST_ANSWERS_MS = 200;

export const publicStun: EntryPoint = {
  name: 'public-stun',
  about: 'good and bad Binding requests to the STUN server at the number of PORT',
  unit: 'datagrams',
  perSecond: 3000,
  async attack(attack) {
    let [sent, answers] = [0, 0];
    const counting: Attack = {
      ...attack,
      attempted: (units = 1) => {
        sent += units;
        attack.attempted(units);
      },
    };
    await flood(
      counting,
      Number(new URL(attack.arena.url).port),
      (index) => (index % 4 === 0 ? randomBytes(between(1, LONGEST)) : gathering()),
      () => {
        answers++;
      },
    );
    await delay(LAST_ANSWERS_MS);
    attack.answered('answered', answers);
    attack.answered('no answer', sent - answers);
  },
};
