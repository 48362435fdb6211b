// A sender process as the scenario sees it, with werift clients that receive what it sends.
import { type ChildProcess, fork } from 'node:child_process';
import path from 'node:path';
import type { RTCPeerConnection } from 'werift';
import { createConnection } from '../peers/connection.ts';
import type {
  JoinAnswer,
  Mode,
  RunAnswer,
  SenderCommand,
  SenderRequest,
  SenderResponse,
  Stack,
} from './protocol.ts';

const ANSWER_LIMIT_MS = 60_000;

interface Waiter {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

export class Sender {
  readonly stack: Stack;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiter>();
  readonly #clients = new Map<number, RTCPeerConnection>();
  #nextId = 0;
  #nextPeer = 0;
  /** RTP packets that the clients have received. */
  received = 0;

  constructor(stack: Stack) {
    this.stack = stack;
    this.#child = fork(path.join(import.meta.dirname, 'sender-process.ts'), [stack]);
    this.#child.on('message', (response: SenderResponse) => {
      const waiter = this.#waiting.get(response.id);
      this.#waiting.delete(response.id);
      if ('error' in response) {
        waiter?.reject(new Error(`${stack}: ${response.error}`));
      } else {
        waiter?.resolve(response.answer);
      }
    });
    this.#child.once('exit', () => {
      for (const waiter of this.#waiting.values()) {
        waiter.reject(new Error(`the sender process of ${stack} ended`));
      }
    });
  }

  get peers(): number {
    return this.#clients.size;
  }

  /** Connects one more peer. @returns CPU milliseconds that the join took the sender's process */
  async join(): Promise<{ readonly peer: number; readonly cpuMs: number }> {
    const peer = this.#nextPeer++;
    const client = createConnection('vp8', '127.0.0.1');
    this.#clients.set(peer, client);
    await client.setLocalDescription(await client.createOffer());
    const offer = client.localDescription!.sdp;
    const answer = (await this.#ask({ op: 'join', peer, offer })) as string;
    await client.setRemoteDescription({ type: 'answer', sdp: answer });
    const { cpuMs } = (await this.#ask({ op: 'connected', peer })) as JoinAnswer;
    if (client.connectionState !== 'connected') {
      const connected = (state: string): boolean => state === 'connected';
      await client.connectionStateChange.watch(connected, ANSWER_LIMIT_MS);
    }
    client.dtlsTransports[0]!.onRtp.subscribe(() => {
      this.received++;
    });
    return { peer, cpuMs };
  }

  async leave(peer: number): Promise<void> {
    await this.#ask({ op: 'leave', peer });
    await this.#clients.get(peer)?.close();
    this.#clients.delete(peer);
  }

  async run(seconds: number, mode: Mode): Promise<RunAnswer> {
    return (await this.#ask({ op: 'run', seconds, mode })) as RunAnswer;
  }

  async close(): Promise<void> {
    this.#child.kill();
    await Promise.all([...this.#clients.values()].map((client) => client.close()));
    this.#clients.clear();
  }

  #ask(command: SenderCommand): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = this.#nextId++;
    const limit = setTimeout(() => {
      this.#waiting.delete(id);
      reject(new Error(`${this.stack}: no answer to ${command.op}`));
    }, ANSWER_LIMIT_MS);
    this.#waiting.set(id, { resolve, reject });
    this.#child.send({ id, command } satisfies SenderRequest);
    return promise.finally(() => {
      clearTimeout(limit);
    });
  }
}
