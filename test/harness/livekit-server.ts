// A real livekit-server on loopback, for tests. `npm run setup -- --livekit` builds it; LIVEKIT_SERVER
// names another one. Where there is none, the tests that need it are skipped.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { signAccessToken, type TokenClaims } from '../../src/front/rooms/access-token.ts';
import { sleep } from '../../src/base/time.ts';
import { findGoProgram } from '../../scripts/go-program.mjs';

export const LIVEKIT_KEY = { key: 'devkey', secret: 'secretsecretsecretsecretsecretsecret' };

/** The program; undefined: there is none on this machine. */
export const LIVEKIT_PROGRAM = findGoProgram('livekit-server');

const START_LIMIT_MS = 20_000;

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });

/** A livekit-server. It can be killed and started again on the same ports. */
export class LiveKitTestServer {
  readonly url: string;
  /** Of all media. */
  readonly udpPort: number;
  readonly #directory: string;
  readonly #port: number;
  #child: ChildProcess | undefined;

  private constructor(directory: string, port: number, udpPort: number) {
    this.#directory = directory;
    this.#port = port;
    this.udpPort = udpPort;
    this.url = `ws://127.0.0.1:${port}`;
  }

  static async start(): Promise<LiveKitTestServer> {
    const directory = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-livekit-'));
    const [port, udpPort, tcpPort] = await Promise.all([freePort(), freePort(), freePort()]);
    const server = new LiveKitTestServer(directory, port, udpPort);
    await writeFile(
      path.join(directory, 'config.yaml'),
      [
        `port: ${port}`,
        'bind_addresses: ["127.0.0.1"]',
        'logging: { level: warn, json: true }',
        'rtc:',
        `  udp_port: ${udpPort}`,
        `  tcp_port: ${tcpPort}`,
        '  use_external_ip: false',
        '  node_ip: 127.0.0.1',
        '  enable_loopback_candidate: true',
        '  interfaces: { includes: [lo] }',
        // An empty list would hand public STUN servers to clients.
        `  stun_servers: ["127.0.0.1:${udpPort}"]`,
        `keys: { ${LIVEKIT_KEY.key}: ${LIVEKIT_KEY.secret} }`,
        'room: { auto_create: true, empty_timeout: 30, departure_timeout: 5 }',
      ].join('\n'),
    );
    await server.run();
    return server;
  }

  /** Starts the program, and resolves when it answers. */
  async run(): Promise<void> {
    const config = path.join(this.#directory, 'config.yaml');
    const child = spawn(LIVEKIT_PROGRAM!, ['--config', config], {
      stdio: process.env['TEST_VERBOSE'] ? 'inherit' : 'ignore',
    });
    this.#child = child;
    for (let waitedMs = 0; ; waitedMs += 50) {
      if (child.exitCode !== null || waitedMs > START_LIMIT_MS) {
        throw new Error(`livekit-server did not start (exit code ${child.exitCode})`);
      }
      const isUp = await fetch(`http://127.0.0.1:${this.#port}/`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (isUp) {
        return;
      }
      await sleep(50);
    }
  }

  /** Ends it without goodbye. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) {
      return;
    }
    const gone = new Promise((resolve) => {
      child.once('exit', resolve);
    });
    child.kill('SIGKILL');
    await gone;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** With these, sessions get their rooms here. */
  get settings(): Record<string, string> {
    return {
      LIVEKIT_URL: this.url,
      LIVEKIT_API_KEY: LIVEKIT_KEY.key,
      LIVEKIT_API_SECRET: LIVEKIT_KEY.secret,
    };
  }

  token(claims: TokenClaims, ttlSeconds = 3600): string {
    return signAccessToken(LIVEKIT_KEY, claims, ttlSeconds, Math.floor(Date.now() / 1000));
  }

  /** For an avatar, or the agent whose avatar it is. */
  agentToken(identity: string, room: string, attributes = {}, ttlSeconds = 3600): string {
    const video = { room, roomJoin: true, canPublish: true, canSubscribe: true };
    const grants = { ...video, canPublishData: true };
    return this.token({ identity, kind: 'agent', attributes, video: grants }, ttlSeconds);
  }

  /** What its API answers. */
  async api(method: string, body: unknown): Promise<any> {
    const room = (body as { room?: string }).room;
    const video = { roomAdmin: true, roomCreate: true, roomList: true, ...(room ? { room } : {}) };
    const token = this.token({ identity: 'admin', video });
    const response = await fetch(
      `http://127.0.0.1:${this.#port}/twirp/livekit.RoomService/${method}`,
      {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      },
    );
    return await response.json();
  }
}
