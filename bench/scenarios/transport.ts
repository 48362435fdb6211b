// Our transport and werift's, side by side: CPU of a join, of a peer's second of media, of silence.
import { quantile } from '../report/stats.ts';
import { type Context, type Outcome, type Scenario, atLeast, atMost, number } from '../scenario.ts';
import type { Mode, RunAnswer, Stack } from '../transport/protocol.ts';
import { PACKETS_PER_SECOND } from '../transport/protocol.ts';
import { Sender } from '../transport/sender.ts';

const MODES = ['silence', 'paced', 'packed'] as const satisfies readonly Mode[];

interface Measured {
  readonly stack: Stack;
  /** CPU milliseconds of each join. */
  readonly joinsMs: number[];
  /** One answer for each round. */
  readonly runs: Readonly<Record<Mode, RunAnswer[]>>;
  /** Packets of the paced runs. */
  sent: number;
  received: number;
}

/**
 * Joins one after another, each peer leaving before the next, so that peers at rest cost nothing.
 */
async function measureJoins(sender: Sender, measured: Measured, joins: number): Promise<void> {
  const warmUp = Math.ceil(joins / 3);
  for (let round = 0; round < warmUp + joins; round++) {
    const { peer, cpuMs } = await sender.join();
    if (round >= warmUp) {
      measured.joinsMs.push(cpuMs);
    }
    await sender.leave(peer);
  }
}

async function measureRun(
  sender: Sender,
  measured: Measured,
  seconds: number,
  mode: Mode,
): Promise<void> {
  const before = sender.received;
  const answer = await sender.run(seconds, mode);
  measured.runs[mode].push(answer);
  if (mode === 'paced') {
    measured.sent += answer.packets;
    measured.received += sender.received - before;
  }
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  if (context.target !== undefined) {
    throw new Error('transport measures two stacks of its own: leave --target out');
  }
  const [peers, seconds] = [number(options, 'peers'), number(options, 'seconds')];
  const sides = (['ours', 'werift'] as const).map((stack) => {
    const sender = new Sender(stack);
    context.defer(() => sender.close());
    const runs = { silence: [], paced: [], packed: [] };
    const measured: Measured = { stack, joinsMs: [], runs, sent: 0, received: 0 };
    return { sender, measured };
  });
  for (const { sender, measured } of sides) {
    await measureJoins(sender, measured, number(options, 'joins'));
    while (sender.peers < peers) {
      await sender.join();
    }
    await sender.run(seconds, 'packed'); // until it is compiled
    const joinMs = quantile(measured.joinsMs, 0.5).toFixed(2);
    context.progress(`${measured.stack}: a join ${joinMs} ms of CPU`);
  }
  // In turns, so that other work on the machine meets both.
  for (let round = 0; round < number(options, 'rounds'); round++) {
    for (const mode of MODES) {
      for (const { sender, measured } of sides) {
        await measureRun(sender, measured, seconds, mode);
        const { userMs, systemMs } = measured.runs[mode].at(-1)!;
        context.record(`${measured.stack}: a second, ${mode}`, userMs + systemMs, 'ms of CPU');
        const figures = `${userMs.toFixed(2)} + ${systemMs.toFixed(2)} ms (user + system)`;
        context.progress(`${measured.stack}: a second, ${mode}: ${figures}`);
      }
    }
  }
  return outcomeOf(
    sides.map(({ measured }) => measured),
    peers,
    number(options, 'ratio'),
  );
}

const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
const median = (values: readonly number[]): number => quantile(values, 0.5);
const userOf = ({ runs }: Measured, mode: Mode): number =>
  median(runs[mode].map(({ userMs }) => userMs));
const totalOf = ({ runs }: Measured, mode: Mode): number =>
  median(runs[mode].map(({ userMs, systemMs }) => userMs + systemMs));

function outcomeOf(measured: readonly Measured[], peers: number, limit: number): Outcome {
  const [ours, werift] = measured as readonly [Measured, Measured];
  const ratio = totalOf(ours, 'packed') / totalOf(werift, 'packed');
  const arrived = Math.min(...measured.map(({ sent, received }) => received / sent));
  const figures = Object.fromEntries(
    measured.flatMap((one) => [
      [`${one.stack}JoinMs`, median(one.joinsMs)],
      ...MODES.flatMap((mode) => [
        [`${one.stack}${capitalised(mode)}Ms`, totalOf(one, mode)],
        [`${one.stack}${capitalised(mode)}UserMs`, userOf(one, mode)],
      ]),
    ]),
  ) as Record<string, number>;
  return {
    figures: { ...figures, packedRatio: ratio, arrived },
    bounds: [
      atMost("CPU of a second of media against werift's, packed", ratio, limit, 'x'),
      atLeast('share of the paced packets that arrived', arrived, 0.99),
    ],
    tables: [
      {
        title: `CPU milliseconds of one peer (of them outside the kernel), ${peers} peers, medians`,
        columns: [
          'stack',
          'join',
          'join p90',
          'silence',
          'in user mode',
          'media, paced',
          'in user mode',
          'media, packed',
          'in user mode',
        ],
        rows: measured.map((one) => [
          one.stack,
          median(one.joinsMs),
          quantile(one.joinsMs, 0.9),
          ...MODES.flatMap((mode) => [totalOf(one, mode), userOf(one, mode)]),
        ]),
      },
    ],
    plots: [],
    notes: [
      `A second of media is ${PACKETS_PER_SECOND} packets: 30 frames of three, 50 of sound.`,
      'Silence, paced and packed are a second each. Paced: in real time, a frame at a time ' +
        'to all peers; packed: as fast as the thread can.',
      'CPU of the whole process that sends; the kernel delivers over loopback within the ' +
        'send. The clients are werift connections in another process.',
      'Ours is given coded frames and does all that a worker asks of it. werift is given ' +
        'packets by its cheapest way (dtlsTransport.sendRtp): it cuts no frames and keeps ' +
        'nothing for retransmission.',
    ],
  };
}

export const transport: Scenario = {
  name: 'transport',
  about:
    'CPU of our WebRTC transport beside that of werift: a join, a second of media, a ' +
    'second of silence.',
  options: { peers: 20, joins: 60, rounds: 5, seconds: 3, ratio: 0.7 },
  small: { peers: 2, joins: 3, rounds: 1, seconds: 1, ratio: 20 },
  run,
};
