// What an entry point is, and what all attacks on entry points share: a stated rate, a bound on
// what is open at once, and a count of what came back.
import { setTimeout as delay } from 'node:timers/promises';
import type { Arena, Tally } from './protocol.ts';

/**
 * One attack in progress: the entry points' way to count, and to leave things that must be closed
 * at its end.
 */
export interface Attack {
  readonly arena: Arena;
  /** Sessions of the attackers' key. */
  readonly places: Places;
  readonly perSecond: number;
  readonly seconds: number;
  /** Counts `units` as sent off. */
  attempted(units?: number): void;
  /** Counts what came back. */
  answered(answer: string, times?: number): void;
  /** Closes something when the attack ends. @returns a function that takes it off the list again */
  atEnd(close: () => void): () => void;
  /** The next of the attackers' addresses, in turn. */
  address(): string;
}

/**
 * The sessions that the attackers may have at once. A session takes a place on a worker whatever it
 * does: that is what a key is for, MAX_SESSIONS_PER_KEY bounds it, and it is not a flood. So they
 * leave places for others.
 */
export class Places {
  readonly most: number;
  /** What one entry point may hold for long, so that the others have places too. */
  readonly share: number;
  #taken = 0;

  /** @param entryPoints that need places, and are attacked at the same time */
  constructor(most: number, entryPoints = 1) {
    this.most = most;
    this.share = Math.max(1, Math.floor(most / entryPoints));
  }

  /** @returns false when all are taken */
  take(): boolean {
    if (this.#taken >= this.most) {
      return false;
    }
    this.#taken++;
    return true;
  }

  giveBack(): void {
    this.#taken--;
  }
}

export interface EntryPoint {
  readonly name: string;
  readonly about: string;
  /** What is counted: datagrams, messages, requests... */
  readonly unit: string;
  /** Units a second at `--rate 1`. */
  readonly perSecond: number;
  /** It opens sessions. */
  readonly needsPlaces?: true;
  attack(attack: Attack): Promise<void>;
}

/** Different answers kept apart; further ones are counted as 'other'. */
const MAX_ANSWERS = 24;
/** How often the pace is kept. */
const TICK_MS = 10;
/**
 * What fell due while the process was held up is made up for up to this much; more would be a burst
 * that nobody asked for.
 */
const CATCH_UP_MS = 50;

/** Runs one entry point's attack to its end and closes what it left open. */
export async function runAttack(
  entryPoint: EntryPoint,
  arena: Arena,
  perSecond: number,
  seconds: number,
  places = new Places(0),
): Promise<Tally> {
  let attempted = 0;
  let turn = 0;
  const answers = new Map<string, number>();
  const closers = new Set<() => void>();
  const attack: Attack = {
    arena,
    places,
    perSecond,
    seconds,
    attempted: (units = 1) => {
      attempted += units;
    },
    answered: (answer, times = 1) => {
      const name = answers.has(answer) || answers.size < MAX_ANSWERS ? answer : 'other';
      answers.set(name, (answers.get(name) ?? 0) + times);
    },
    atEnd: (close) => {
      closers.add(close);
      return () => {
        closers.delete(close);
      };
    },
    address: () => arena.addresses[turn++ % arena.addresses.length]!,
  };
  try {
    await entryPoint.attack(attack);
  } finally {
    for (const close of closers) {
      close();
    }
  }
  return { attempted, answers: Object.fromEntries(answers) };
}

/**
 * Calls `strike` at the attack's rate until its time is over. @param strike called with how many
 * units are due, at most `atMost`; it must not throw
 */
export async function paced(
  { perSecond, seconds }: Attack,
  strike: (due: number) => void,
  atMost = Number.POSITIVE_INFINITY,
): Promise<void> {
  const startMs = performance.now();
  let done = 0;
  for (;;) {
    const elapsedMs = performance.now() - startMs;
    if (elapsedMs >= seconds * 1000) {
      return;
    }
    // The first is due at once, so that even the slowest entry point is tried.
    const due = Math.floor((elapsedMs * perSecond) / 1000) + 1 - done;
    const most = Math.max(1, Math.ceil((perSecond * CATCH_UP_MS) / 1000));
    if (due > 0) {
      strike(Math.min(due, most, atMost));
    }
    done += due;
    await delay(TICK_MS);
  }
}

/**
 * Like `paced`, for units that take their time: at most `mostOpen` at once, further ones are left
 * out and counted as 'withheld'.
 * @param isHeld units stay open to the end, on purpose, and are then closed
 */
export async function pacedOpen(
  attack: Attack,
  mostOpen: number,
  strike: () => Promise<void>,
  isHeld = false,
): Promise<void> {
  let open = 0;
  await paced(attack, (due) => {
    for (let i = 0; i < due; i++) {
      if (open >= mostOpen) {
        attack.answered('withheld: too many open', due - i);
        return;
      }
      open++;
      attack.attempted();
      strike()
        .catch((error: unknown) => {
          attack.answered(reasonOf(error));
        })
        .finally(() => {
          open--;
        });
    }
  });
  if (isHeld) {
    return;
  }
  for (let waitedMs = 0; open > 0 && waitedMs < GRACE_MS; waitedMs += TICK_MS) {
    await delay(TICK_MS);
  }
  if (open > 0) {
    attack.answered('nothing by the end', open);
  }
}

/** What is still under way when the attack is over may be answered for so long. */
const GRACE_MS = 1000;

export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
