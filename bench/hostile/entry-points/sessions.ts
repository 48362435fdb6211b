// Entry points that a session token opens: half-open handshakes, floods of messages, offers made to
// cost, sockets opened and left.
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { setTimeout as delay } from 'node:timers/promises';
import { createCertificate } from '../../../src/webrtc/dtls/certificate.ts';
import { bindingRequest, bindingSuccess } from '../../../src/webrtc/ice/stun.ts';
import { LyingClient } from '../../../test/harness/dtls-client.ts';
import { type Attack, type EntryPoint, paced, pacedOpen, reasonOf } from '../entry-point.ts';
import type { Arena } from '../protocol.ts';
import { HOSTILE_OFFERS, newIdentity, plainOffer } from '../offers.ts';
import { frame, RawWebSocket, textFrame } from '../raw-web-socket.ts';

const SIGNALLING = '/compose/webrtc/p2p';
/** How long an attacker waits for an answer to anything. */
const ANSWER_MS = 4000;

/** The entry points that need tokens: each has its part, so that all can be attacked at once. */
const HOLDERS = ['half-open', 'messages', 'idle-sockets', 'offers'] as const;

/** Lends each token of an entry point to one socket at a time. */
class Tokens {
  readonly #free: string[];
  constructor({ tokens }: Arena, holder: (typeof HOLDERS)[number]) {
    this.#free = tokens.filter((_, index) => index % HOLDERS.length === HOLDERS.indexOf(holder));
  }
  get free(): number {
    return this.#free.length;
  }
  take(): string {
    return this.#free.shift() ?? 'none-is-free-just-now';
  }
  giveBack(token: string): void {
    this.#free.push(token);
  }
}

const signalling = (attack: Attack, token: string): Promise<RawWebSocket> =>
  RawWebSocket.open({
    url: attack.arena.url,
    path: `${SIGNALLING}?session_token=${token}`,
    localAddress: attack.address(),
  });

/** What a session's socket was told, with the code kept and everything else cut off. */
const wordOf = (text: string): string =>
  text.startsWith('{"sdp"') ? 'answer' : text.split(' ', 2).join(' ').slice(0, 48);

/** Sends an offer. @returns the SDP of the answer, or what the server said instead */
async function offer(
  attack: Attack,
  socket: RawWebSocket,
  sdp: string,
): Promise<{ sdp?: string; said: string }> {
  return await new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve({ said: 'no answer in 4 s' });
    }, ANSWER_MS);
    attack.atEnd(() => {
      clearTimeout(timer);
    });
    const settle = (result: { sdp?: string; said: string }): void => {
      clearTimeout(timer);
      resolve(result);
    };
    socket.onText = (text) => {
      if (text.startsWith('{"sdp"')) {
        settle({ sdp: (JSON.parse(text) as { sdp: string }).sdp, said: 'answer' });
      } else if (!text.startsWith('{')) {
        settle({ said: wordOf(text) });
      }
    };
    socket.onClose = (reason) => {
      settle({ said: reason });
    };
    socket.write(textFrame(JSON.stringify({ type: 'offer', sdp })));
  });
}

const lineOf = (sdp: string, pattern: RegExp): string => pattern.exec(sdp)?.[1] ?? '';

function openUdp(address: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4');
    socket.once('error', reject);
    socket.bind({ address, port: 0 }, () => {
      socket.on('error', () => {});
      resolve(socket);
    });
  });
}

const BINDING_REQUEST = 1;
/**
 * A connection that stops between the server's first flight and its own second is held for so long.
 */
const HELD_MS = 100;

async function halfHandshake(
  attack: Attack,
  tokens: Tokens,
  identity: ReturnType<typeof createCertificate>,
): Promise<void> {
  if (!attack.places.take()) {
    attack.answered('withheld: no place');
    return;
  }
  const token = tokens.take();
  let socket: RawWebSocket | undefined;
  let udp: Socket | undefined;
  const close = (): void => {
    socket?.destroy();
  };
  const forgetSocket = attack.atEnd(close);
  try {
    socket = await signalling(attack, token);
    const own = { ...newIdentity(), fingerprint: identity.fingerprint };
    const { sdp, said } = await offer(attack, socket, plainOffer(own));
    if (sdp === undefined) {
      attack.answered(said);
      return;
    }
    const port = Number(lineOf(sdp, /^a=candidate:\S+ 1 udp \d+ \S+ (\d+) /im));
    const [ufrag, password] = [
      lineOf(sdp, /^a=ice-ufrag:(.+?)\r?$/m),
      lineOf(sdp, /^a=ice-pwd:(.+?)\r?$/m),
    ];
    udp = await openUdp(attack.address());
    const host = new URL(attack.arena.url).hostname;
    let flightBytes = 0;
    let isIceUp = false;
    udp.on('message', (data, from) => {
      // A check of the server's: only an address that answers it is sent more than a little.
      if (data.readUInt16BE(0) === BINDING_REQUEST) {
        udp?.send(bindingSuccess(data, from.address, from.port, own.password), port, host);
      }
      if (data[0]! >= 20) {
        flightBytes += data.length;
      } else if (!isIceUp) {
        isIceUp = true;
        for (const datagram of new LyingClient(identity).hello()) {
          udp?.send(datagram, port, host);
        }
      }
    });
    udp.send(
      bindingRequest(randomBytes(12), `${ufrag}:${own.ufrag}`, password, randomBytes(8)),
      port,
      host,
    );
    await delay(HELD_MS);
    attack.answered(
      flightBytes > 0 ? 'first flight of the server' : isIceUp ? 'ICE only' : 'nothing',
    );
  } finally {
    udp?.close();
    close();
    forgetSocket();
    tokens.giveBack(token);
    attack.places.giveBack();
  }
}

export const halfOpenDtls: EntryPoint = {
  name: 'half-open',
  about: 'sessions with good ICE credentials that send a ClientHello and never finish',
  unit: 'handshakes',
  perSecond: 25,
  needsPlaces: true,
  async attack(attack) {
    const tokens = new Tokens(attack.arena, 'half-open');
    const identity = createCertificate(Date.now());
    const most = Math.min(tokens.free, attack.places.most);
    await pacedOpen(attack, most, () => halfHandshake(attack, tokens, identity));
  },
};

/** What a hostile client of a live session says, in turn. */
const SAYINGS: readonly Buffer[] = [
  frame(Buffer.from([1, 2])),
  frame(Buffer.from([7])),
  textFrame('SKIP'),
  textFrame('ping 1'),
  textFrame('anything else'),
  textFrame('{"type":"offer","sdp":1}'),
  frame(Buffer.from('PLAY_IMMEDIATE\u0001\u0001')),
  textFrame(''),
  frame(Buffer.alloc(64, 3)),
  textFrame('{'),
];
const MAX_TALKERS = 4;
/**
 * Beyond this the server reads more slowly than is written, and no more is handed over: the rate is
 * then the server's.
 */
const MAX_BACKLOG_BYTES = 1 << 20;

export const messages: EntryPoint = {
  name: 'messages',
  about: 'tiny audio pieces, SKIP, pings and junk on the sockets of live sessions',
  unit: 'messages',
  perSecond: 30_000,
  needsPlaces: true,
  async attack(attack) {
    const tokens = new Tokens(attack.arena, 'messages');
    const talkers = Math.min(MAX_TALKERS, attack.places.share);
    const sockets: (RawWebSocket | undefined)[] = Array.from({ length: talkers });
    const open = async (index: number): Promise<void> => {
      if (!attack.places.take()) {
        attack.answered('withheld: no place');
        return;
      }
      const token = tokens.take();
      const over = (): void => {
        tokens.giveBack(token);
        attack.places.giveBack();
      };
      const socket = await signalling(attack, token).catch((error: unknown) => {
        over();
        throw error;
      });
      attack.atEnd(() => {
        socket.destroy();
      });
      sockets[index] = socket;
      socket.onText = (text) => {
        if (!text.startsWith('{')) {
          attack.answered(wordOf(text));
        }
      };
      socket.onClose = (reason) => {
        attack.answered(reason);
        sockets[index] = undefined;
        over();
      };
      socket.write(textFrame(JSON.stringify({ type: 'offer', sdp: plainOffer() })));
    };
    await Promise.all(
      sockets.map((_, index) =>
        open(index).catch((error: unknown) => {
          attack.answered(reasonOf(error));
        }),
      ),
    );
    let said = 0;
    let reopenedMs = performance.now();
    await paced(attack, (due) => {
      const live = sockets.filter(
        (socket) => socket?.isOpen === true && socket.backlogBytes < MAX_BACKLOG_BYTES,
      );
      for (const [turn, socket] of live.entries()) {
        const count = Math.floor(due / live.length) + (turn < due % live.length ? 1 : 0);
        socket!.write(
          Buffer.concat(Array.from({ length: count }, () => SAYINGS[said++ % SAYINGS.length]!)),
        );
        attack.attempted(count);
      }
      const gone = sockets.findIndex((socket) => socket === undefined);
      if (gone < 0 || performance.now() - reopenedMs < REOPEN_MS) {
        return;
      }
      reopenedMs = performance.now();
      open(gone).catch((error: unknown) => {
        attack.answered(reasonOf(error));
      });
    });
  },
};

/** A client that was thrown out comes back this soon. */
const REOPEN_MS = 250;

export const hostileOffers: EntryPoint = {
  name: 'offers',
  about: 'SDP offers made to cost: the longest, the widest, and those whose parts multiply',
  unit: 'offers',
  perSecond: 5,
  needsPlaces: true,
  async attack(attack) {
    const tokens = new Tokens(attack.arena, 'offers');
    const made = Object.values(HOSTILE_OFFERS).map((make) => make());
    let next = 0;
    await pacedOpen(attack, Math.min(MAX_OFFERS_OPEN, attack.places.most), async () => {
      if (!attack.places.take()) {
        attack.answered('withheld: no place');
        return;
      }
      const token = tokens.take();
      let socket: RawWebSocket | undefined;
      const close = (): void => {
        socket?.destroy();
      };
      const forget = attack.atEnd(close);
      try {
        socket = await signalling(attack, token);
        attack.answered((await offer(attack, socket, made[next++ % made.length]!)).said);
      } finally {
        close();
        forget();
        tokens.giveBack(token);
        attack.places.giveBack();
      }
    });
  },
};

const MAX_OFFERS_OPEN = 8;

export const idleSockets: EntryPoint = {
  name: 'idle-sockets',
  about: 'WebSockets opened and left, every fourth with a good token, as far as there are places',
  unit: 'sockets',
  perSecond: 40,
  needsPlaces: true,
  async attack(attack) {
    const tokens = new Tokens(attack.arena, 'idle-sockets');
    let [turn, held] = [0, 0];
    await pacedOpen(
      attack,
      MAX_IDLE,
      async () => {
        const isGood = turn++ % 4 === 0 && held < attack.places.share && attack.places.take();
        held += Number(isGood);
        const token = isGood ? tokens.take() : 'not-a-token-of-this-server';
        const socket = await signalling(attack, token).catch((error: unknown) => {
          if (isGood) {
            held--;
            tokens.giveBack(token);
            attack.places.giveBack();
          }
          throw error;
        });
        const forget = attack.atEnd(() => {
          attack.answered('held to the end');
          socket.destroy();
        });
        await new Promise<void>((resolve) => {
          socket.onText = (text) => {
            attack.answered(wordOf(text));
          };
          socket.onClose = () => {
            forget();
            resolve();
          };
        });
      },
      true,
    );
  },
};

const MAX_IDLE = 400;
