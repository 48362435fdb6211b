// A process of attackers, told what to do over IPC. Loopback only; ends when its parent goes, and
// in any case after a while.
import os from 'node:os';
import { answerCommands } from '../child-process.ts';
import { Places, runAttack } from './entry-point.ts';
import { ENTRY_POINTS } from './entry-points.ts';
import type { Arena, AttackCommand, Tallies } from './protocol.ts';

/** No run is longer: what is left over after it, for whatever reason, ends itself. */
const LONGEST_LIFE_MS = 20 * 60_000;
/**
 * In real life attackers have machines of their own: here they get what the server and its honest
 * clients leave of the cores.
 */
const NICE = 10;

let arena: Arena | undefined;

async function obey(command: AttackCommand): Promise<Tallies> {
  if (command.op === 'setUp') {
    const { hostname } = new URL(command.arena.url);
    if (!hostname.startsWith('127.')) {
      throw new Error(`attackers stay on the loopback interface: not ${hostname}`);
    }
    arena = command.arena;
    return {};
  }
  const strikes = command.strikes.map(({ entryPoint: name, perSecond }) => {
    const entryPoint = ENTRY_POINTS.find((one) => one.name === name);
    if (entryPoint === undefined) {
      throw new Error(`no entry point '${name}'`);
    }
    return { entryPoint, perSecond };
  });
  const needy = strikes.filter(({ entryPoint }) => entryPoint.needsPlaces === true).length;
  const places = new Places(command.sessions, Math.max(1, needy));
  const found = await Promise.all(
    strikes.map(async ({ entryPoint, perSecond }) => {
      if (arena === undefined) {
        throw new Error('no arena yet');
      }
      return [
        entryPoint.name,
        await runAttack(entryPoint, arena, perSecond, command.seconds, places),
      ] as const;
    }),
  );
  return Object.fromEntries(found);
}

os.setPriority(NICE);
setTimeout(() => process.exit(1), LONGEST_LIFE_MS).unref();
answerCommands('attacker process', obey);
// A broken connection must not end the attack on the other entry points.
process.on('uncaughtException', (error) => {
  console.error(`attacker process: ${error.stack ?? String(error)}`);
});
