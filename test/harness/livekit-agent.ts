// An agent of LiveKit's Python SDK, for tests on a real livekit-server.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { LIVEKIT_PROGRAM } from './livekit-server.ts';
import { ROOT } from './server.ts';
import { until } from './until.ts';

/** A Python with LiveKit's SDK; LIVEKIT_PYTHON names another one than python3. */
const PYTHON = process.env['LIVEKIT_PYTHON'] ?? 'python3';

function hasSdk(): boolean {
  try {
    execFileSync(PYTHON, ['-c', 'from livekit import rtc'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Whether there are a server and an agent. Says so when there are not. */
export const canRunAgents = LIVEKIT_PROGRAM !== undefined && hasSdk();
if (!canRunAgents) {
  console.warn(
    'no livekit-server, or no Python with the package livekit (LIVEKIT_PYTHON): the tests with an ' +
      'agent are skipped',
  );
}

/** Identities in the room. */
export const AGENT = 'agent-1';
export const AVATAR = 'avatar-1';
const QUIT_LIMIT_MS = 5000;

/** What the agent tells; times on its clock. */
export interface AgentEvent {
  readonly event: string;
  readonly atMs: number;
  readonly [field: string]: any;
}

/** The Python program. */
export class Agent {
  readonly events: AgentEvent[] = [];
  readonly #child: ChildProcess;

  constructor(url: string, token: string) {
    const program = path.join(ROOT, 'test/harness/livekit_agent.py');
    this.#child = spawn(PYTHON, [program, url, token, AVATAR], {
      stdio: ['pipe', 'pipe', process.env['TEST_VERBOSE'] ? 'inherit' : 'ignore'],
    });
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      this.events.push(JSON.parse(line) as AgentEvent);
    });
  }

  of(event: string): AgentEvent[] {
    return this.events.filter((one) => one.event === event);
  }
  async have(event: string, count: number, limitMs = 20_000): Promise<AgentEvent[]> {
    await until(() => this.of(event).length >= count, limitMs, `${count} ${event}`);
    return this.of(event);
  }
  tell(command: string): void {
    this.#child.stdin!.write(`${command}\n`);
  }
  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      const gone = new Promise((resolve) => {
        this.#child.once('exit', resolve);
      });
      // With a goodbye its avatar leaves at once; else when the server misses it.
      this.tell('quit');
      const timer = setTimeout(() => this.#child.kill('SIGKILL'), QUIT_LIMIT_MS);
      await gone;
      clearTimeout(timer);
    }
  }
}
