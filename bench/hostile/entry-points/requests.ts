// Entry points on HTTP: keys that are wrong, bodies that are large, slow or never whole, paths that
// need no key, connections left open.
import { randomBytes, randomInt } from 'node:crypto';
import http from 'node:http';
import { connect } from 'node:net';
import { type Attack, type EntryPoint, pacedOpen, reasonOf } from '../entry-point.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const ANSWER_MS = 5000;

interface Sent {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: Buffer;
  readonly agent?: http.Agent;
}

/** One request. @returns the status, or why there was none */
function send(attack: Attack, { method, path, headers = {}, body, agent }: Sent): Promise<string> {
  return new Promise((resolve) => {
    const request = http.request(attack.arena.url + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-length': body.length }) },
      ...(agent === undefined ? { agent: false, localAddress: attack.address() } : { agent }),
    });
    const forget = attack.atEnd(() => {
      request.destroy();
    });
    const timer = setTimeout(() => {
      settle('no answer in 5 s');
    }, ANSWER_MS);
    const settle = (answer: string): void => {
      clearTimeout(timer);
      forget();
      if (answer.startsWith('no answer')) {
        request.destroy();
      }
      resolve(answer);
    };
    request.once('response', (response) => {
      response.resume();
      response.once('close', () => {
        settle(String(response.statusCode));
      });
    });
    request.on('error', (error) => {
      settle(reasonOf(error));
    });
    request.end(body);
  });
}

const keyHeader = (attack: Attack): Record<string, string> => ({
  'x-service-api-key': attack.arena.apiKey,
});
const JSON_TYPE = { 'content-type': 'application/json' };

export const wrongKeys: EntryPoint = {
  name: 'wrong-key',
  about: 'keys that are wrong, each with a body of 64 kB',
  unit: 'requests',
  perSecond: 300,
  async attack(attack) {
    const body = Buffer.from(JSON.stringify({ faceId: 'x'.repeat(64 * KIB - 100) }));
    await pacedOpen(attack, 64, async () => {
      attack.answered(
        await send(attack, {
          method: 'POST',
          path: '/compose/token',
          headers: { ...JSON_TYPE, 'x-service-api-key': randomBytes(12).toString('hex') },
          body,
        }),
      );
    });
  },
};

const BOUNDARY = 'xXxXxXxX';
const PORTRAIT_HEAD = Buffer.from(
  `--${BOUNDARY}\r\ncontent-disposition: form-data; name="image"; filename="a.jpg"\r\n` +
    'content-type: image/jpeg\r\n\r\n',
);
const PORTRAIT_END = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
const LARGEST_PORTRAIT = 20 * MIB;
/** What the first bytes of a JPEG are; what follows is chance. */
const JPEG_HEAD = Buffer.from([0xff, 0xd8, 0xff, 0xe0]);

export const uploads: EntryPoint = {
  name: 'uploads',
  about: 'portraits of 1 to 20 MB that are not pictures, several at once, every third incomplete',
  unit: 'uploads',
  perSecond: 3,
  async attack(attack) {
    const chance = randomBytes(LARGEST_PORTRAIT);
    JPEG_HEAD.copy(chance);
    const headers = {
      ...keyHeader(attack),
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
    };
    let turn = 0;
    await pacedOpen(attack, MAX_UPLOADS, async () => {
      const bytes = randomInt(MIB, LARGEST_PORTRAIT);
      if (turn++ % 3 === 2) {
        attack.answered(
          await unfinished(
            attack,
            '/faces/legacy',
            headers,
            bytes,
            chance.subarray(0, Math.floor(bytes * 0.7)),
          ),
        );
      } else {
        attack.answered(
          await send(attack, {
            method: 'POST',
            path: '/faces/legacy',
            headers,
            body: Buffer.concat([PORTRAIT_HEAD, chance.subarray(0, bytes), PORTRAIT_END]),
          }),
        );
      }
    });
  },
};

const MAX_UPLOADS = 24;

/** Declares `bytes`, sends `some` of them, and waits. @returns the status, or how it ended */
function unfinished(
  attack: Attack,
  path: string,
  headers: Readonly<Record<string, string>>,
  bytes: number,
  some: Buffer,
  dripMs = 0,
): Promise<string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(attack.arena.url);
    const socket = connect({ host: hostname, port: Number(port), localAddress: attack.address() });
    let drip: NodeJS.Timeout | undefined;
    const settle = (answer: string): void => {
      clearInterval(drip);
      forget();
      socket.destroy();
      resolve(answer);
    };
    const forget = attack.atEnd(() => {
      settle('held to the end');
    });
    socket.once('connect', () => {
      const lines = [
        `POST ${path} HTTP/1.1`,
        `Host: ${hostname}:${port}`,
        `Content-Length: ${bytes}`,
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      ];
      socket.write(`${lines.join('\r\n')}\r\n\r\n`);
      socket.write(some);
      if (dripMs > 0) {
        drip = setInterval(() => {
          socket.write('x');
        }, dripMs);
      }
    });
    socket.once('data', (data) => {
      settle(/^HTTP\/1\.1 (\d{3})/.exec(data.toString('latin1', 0, 12))?.[1] ?? 'something');
    });
    socket.on('error', (error) => {
      settle(reasonOf(error));
    });
    socket.on('close', () => {
      settle('closed');
    });
  });
}

const MAX_SLOW = 600;
const DRIP_MS = 500;

export const slowBodies: EntryPoint = {
  name: 'slow-body',
  about: 'bodies of 60 kB, a byte every half second, with a good key and with a wrong one',
  unit: 'requests',
  perSecond: 50,
  async attack(attack) {
    let turn = 0;
    await pacedOpen(
      attack,
      MAX_SLOW,
      async () => {
        const key = turn++ % 2 === 0 ? keyHeader(attack) : { 'x-service-api-key': 'wrong' };
        attack.answered(
          await unfinished(
            attack,
            '/compose/token',
            { ...JSON_TYPE, ...key },
            60_000,
            Buffer.from('{'),
            DRIP_MS,
          ),
        );
      },
      true,
    );
  },
};

const MAX_LEFT_OPEN = 1500;

export const idleConnections: EntryPoint = {
  name: 'idle-http',
  about: 'TCP connections opened and left: without a word, or in the middle of a head',
  unit: 'connections',
  perSecond: 150,
  async attack(attack) {
    let turn = 0;
    await pacedOpen(
      attack,
      MAX_LEFT_OPEN,
      () =>
        new Promise<void>((resolve) => {
          const { hostname, port } = new URL(attack.arena.url);
          const socket = connect({
            host: hostname,
            port: Number(port),
            localAddress: attack.address(),
          });
          const settle = (answer: string): void => {
            forget();
            attack.answered(answer);
            socket.destroy();
            resolve();
          };
          const forget = attack.atEnd(() => {
            settle('held to the end');
          });
          socket.once('connect', () => {
            if (turn++ % 2 === 0) {
              socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nX-Filler: ');
            }
          });
          socket.once('data', (data) => {
            settle(data.toString('latin1', 9, 12));
          });
          socket.on('error', (error) => {
            settle(reasonOf(error));
          });
          socket.on('close', () => {
            settle('closed by the server');
          });
        }),
      true,
    );
  },
};

const BLANKS = 4 * MIB;

export const blankAudio: EntryPoint = {
  name: 'base64',
  about:
    'POST /static/audio with 4 MiB of Base64 that is blanks, or blanks and then something else',
  unit: 'requests',
  perSecond: 2,
  async attack(attack) {
    const bodies = [
      ' '.repeat(BLANKS),
      `${' '.repeat(BLANKS)}!`,
      `${'A'.repeat(BLANKS)}=!`,
      `data:${','.repeat(BLANKS)}`,
    ].map((audioBase64) =>
      Buffer.from(JSON.stringify({ faceId: attack.arena.faceId, audioBase64 })),
    );
    let next = 0;
    await pacedOpen(attack, 12, async () => {
      attack.answered(
        await send(attack, {
          method: 'POST',
          path: '/static/audio',
          headers: { ...keyHeader(attack), ...JSON_TYPE },
          body: bodies[next++ % bodies.length]!,
        }),
      );
    });
  },
};

/** Nothing here needs a key. The ids are of the form that exists, and of nobody. */
const OPEN_PATHS: readonly string[] = [
  '/docs',
  '/openapi.json',
  '/static/status?id=AAAAAAAAAAAAAAAAAAAAAA',
  '/static/hls/AAAAAAAAAAAAAAAAAAAAAA/output.m3u8',
  '/static/mp4/AAAAAAAAAAAAAAAAAAAAAA/output.mp4',
  '/',
  '/readyz',
  '/no/such/path',
  `/static/status?id=${'A'.repeat(2000)}`,
];

export const openPaths: EntryPoint = {
  name: 'open-paths',
  about: 'paths that need no key: the documents, renderings that are not there, readiness, nothing',
  unit: 'requests',
  perSecond: 600,
  async attack(attack) {
    const agents = attack.arena.addresses.map(
      (localAddress) => new http.Agent({ keepAlive: true, maxSockets: 8, localAddress }),
    );
    for (const agent of agents) {
      attack.atEnd(() => {
        agent.destroy();
      });
    }
    let next = 0;
    await pacedOpen(attack, 32, async () => {
      const agent = agents[next % agents.length]!;
      attack.answered(
        await send(attack, { method: 'GET', path: OPEN_PATHS[next++ % OPEN_PATHS.length]!, agent }),
      );
    });
  },
};
