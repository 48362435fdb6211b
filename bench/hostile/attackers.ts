// The attackers as the bench sees them: processes of their own, bounded in number, that answer with
// what they saw.
import path from 'node:path';
import { ProgramProcess } from '../child-process.ts';
import type { Arena, AttackCommand, Strike, Tallies, Tally } from './protocol.ts';

const MAX_PROCESSES = 8;
/** An attack that runs over its time by this much has failed. */
const OVERTIME_MS = 15_000;

const PROGRAM = path.join(import.meta.dirname, 'attacker-process.ts');

class AttackerProcess extends ProgramProcess<AttackCommand> {
  constructor(cpus: string | undefined) {
    super('an attacker process', PROGRAM, cpus === undefined ? [] : ['taskset', '-c', cpus]);
  }

  /** @returns what each entry point saw; empty after `setUp` */
  override async ask(command: AttackCommand, limitMs: number): Promise<Tallies> {
    return (await super.ask(command, limitMs)) as Tallies;
  }
}

export class Attackers {
  readonly #processes: readonly AttackerProcess[];

  private constructor(processes: readonly AttackerProcess[]) {
    this.#processes = processes;
  }

  /** @param cpus CPUs they keep to, as `taskset` takes them; undefined: any */
  static async start(processes: number, arena: Arena, cpus?: string): Promise<Attackers> {
    if (processes < 1 || processes > MAX_PROCESSES) {
      throw new Error(`--attackers must be 1 to ${MAX_PROCESSES}`);
    }
    const all = Array.from({ length: processes }, () => new AttackerProcess(cpus));
    const perProcess = Math.ceil(arena.tokens.length / processes);
    // A token serves one session at a time, so no two processes share one.
    await Promise.all(
      all.map((one, index) =>
        one.ask(
          {
            op: 'setUp',
            arena: {
              ...arena,
              tokens: arena.tokens.slice(index * perProcess, (index + 1) * perProcess),
            },
          },
          OVERTIME_MS,
        ),
      ),
    );
    return new Attackers(all);
  }

  /**
   * All entry points at once, each at its rate, shared by the processes.
   * @param sessions how many they may have at once; each process has one at least
   * @returns what each entry point saw, over all processes
   */
  async attack(strikes: readonly Strike[], seconds: number, sessions: number): Promise<Tallies> {
    const each = Math.max(1, Math.floor(sessions / this.#processes.length));
    const share = strikes.map(({ entryPoint, perSecond }) => ({
      entryPoint,
      perSecond: perSecond / this.#processes.length,
    }));
    const found = await Promise.all(
      this.#processes.map((one) =>
        one.ask(
          { op: 'attack', strikes: share, seconds, sessions: each },
          seconds * 1000 + OVERTIME_MS,
        ),
      ),
    );
    return Object.fromEntries(
      strikes.map(({ entryPoint }) => [
        entryPoint,
        sum(found.map((tallies) => tallies[entryPoint]!)),
      ]),
    );
  }

  get pids(): number[] {
    return this.#processes.map(({ pid }) => pid).filter((pid) => pid !== undefined);
  }

  async end(): Promise<void> {
    await Promise.all(this.#processes.map((one) => one.end()));
  }
}

function sum(tallies: readonly Tally[]): Tally {
  const answers = new Map<string, number>();
  for (const tally of tallies) {
    for (const [answer, times] of Object.entries(tally.answers)) {
      answers.set(answer, (answers.get(answer) ?? 0) + times);
    }
  }
  return {
    attempted: tallies.reduce((total, { attempted }) => total + attempted, 0),
    answers: Object.fromEntries(answers),
  };
}
