// Speaks just enough of the wire protocol for light peers to connect to aiortc: a token, a socket,
// an offer and an answer.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { App, type WebSocket, us_listen_socket_close, us_socket_local_port } from 'uWebSockets.js';
import { PICTURE_SIZE } from '../../src/media/picture.ts';
import type { Target } from '../scenario.ts';

export interface BaselineOptions {
  readonly pictures: string;
  readonly speech: string;
  readonly kbps: number;
  readonly cpuUsed: number;
  readonly cpus: string | undefined;
}
export interface Baseline extends Target {
  readonly pid: number;
  stop(): Promise<void>;
}

const SCRIPT = path.join(import.meta.dirname, 'aiortc_peers.py');
const PYTHONS = ['/usr/bin/python3', 'python3'];

/** The Python that has aiortc (Debian: python3-aiortc); undefined: there is none. */
export const findPython = (): string | undefined =>
  PYTHONS.find(
    (python) => spawnSync(python, ['-c', 'import aiortc, numpy'], { stdio: 'ignore' }).status === 0,
  ) ?? undefined;

interface SocketData {
  id: string;
}
type FromPython =
  | { readonly ready: true }
  | { readonly id: string; readonly answer: string }
  | { readonly id: string; readonly state: string };

export async function startBaseline(
  python: string,
  { pictures, speech, kbps, cpuUsed, cpus }: BaselineOptions,
): Promise<Baseline> {
  const command = [
    ...(cpus === undefined ? [] : ['taskset', '-c', cpus]),
    python,
    SCRIPT,
    pictures,
    String(PICTURE_SIZE),
    String(PICTURE_SIZE),
    speech,
    String(Math.round(kbps)),
    String(cpuUsed),
  ];
  const child: ChildProcess = spawn(command[0]!, command.slice(1), {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const sockets = new Map<string, WebSocket<SocketData>>();
  const ready = Promise.withResolvers<void>();
  child.once('exit', (code) => {
    ready.reject(new Error(`aiortc ended with ${code}`));
  });
  createInterface({ input: child.stdout! }).on('line', (line) => {
    const message = JSON.parse(line) as FromPython;
    if ('ready' in message) {
      ready.resolve();
      return;
    }
    const socket = sockets.get(message.id);
    if (socket === undefined) {
      return;
    }
    if ('answer' in message) {
      socket.send(JSON.stringify({ sdp: message.answer, type: 'answer' }));
      socket.send(JSON.stringify({ destination: 'aiortc', session_id: message.id }));
    } else if (message.state === 'connected') {
      socket.send('START');
    }
  });
  await ready.promise;
  const tell = (message: object): void => {
    child.stdin!.write(`${JSON.stringify(message)}\n`);
  };
  const app = App()
    .get('/faces', (response) => {
      response.end('[{"id":"baseline"}]');
    })
    .post('/compose/token', (response) => {
      response
        .onAborted(() => {})
        .onData((_, isLast) => {
          if (isLast) {
            response.end('{"session_token":"baseline"}');
          }
        });
    })
    .ws<SocketData>('/compose/webrtc/p2p', {
      upgrade: (response, request, context) => {
        response.upgrade(
          { id: randomUUID() },
          request.getHeader('sec-websocket-key'),
          request.getHeader('sec-websocket-protocol'),
          request.getHeader('sec-websocket-extensions'),
          context,
        );
      },
      open: (socket) => {
        sockets.set(socket.getUserData().id, socket);
      },
      message: (socket, data, isBinary) => {
        if (isBinary) {
          return;
        } // speech: aiortc plays a file
        const { sdp } = JSON.parse(Buffer.from(data).toString()) as { sdp: string };
        tell({ id: socket.getUserData().id, offer: sdp });
      },
      close: (socket) => {
        sockets.delete(socket.getUserData().id);
        tell({ id: socket.getUserData().id, close: true });
      },
    });
  const listening = await new Promise<Parameters<typeof us_listen_socket_close>[0]>(
    (resolve, reject) => {
      app.listen('127.0.0.1', 0, (token) => {
        if (token) {
          resolve(token);
        } else {
          reject(new Error('the baseline could not listen'));
        }
      });
    },
  );
  return {
    url: `http://127.0.0.1:${us_socket_local_port(listening)}`,
    apiKey: 'none',
    pid: child.pid!,
    async stop() {
      us_listen_socket_close(listening);
      for (const socket of sockets.values()) {
        socket.end();
      }
      const exited = once(child, 'exit');
      child.stdin!.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
      if (child.exitCode === null && child.signalCode === null) {
        await exited;
      }
      clearTimeout(timer);
    },
  };
}
