// One stack as a sender in a process of its own, so that its CPU time is that of the process.
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import type {
  JoinAnswer,
  Mode,
  RunAnswer,
  SenderCommand,
  SenderRequest,
  SenderResponse,
  Stack,
} from './protocol.ts';
import { FRAMES_PER_SECOND, OPUS_PER_SECOND } from './protocol.ts';
import { openSide, type SendingPeer } from './sides.ts';

interface Joined {
  readonly peer: SendingPeer;
  readonly joinMs: Promise<number>;
  frames: number;
  packets: number;
}

const side = await openSide(process.argv[2] as Stack);
const joined = new Map<number, Joined>();

/** CPU time of this process so far, in milliseconds. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

async function join(id: number, offer: string): Promise<string> {
  const startMs = cpuMs();
  const peer = side.createPeer();
  const joinMs = peer.connected.then(() => cpuMs() - startMs);
  joinMs.catch(() => {}); // `connected` tells it
  joined.set(id, { peer, joinMs, frames: 0, packets: 0 });
  return await peer.answer(offer);
}

function poll(): void {
  for (const { peer } of joined.values()) {
    peer.poll();
  }
}

/** A frame of `one`, and the sound that has come due with it. @returns RTP packets sent */
function sendFrame(one: Joined): number {
  let packets = one.peer.sendVideo(one.frames++);
  while (one.packets * FRAMES_PER_SECOND < one.frames * OPUS_PER_SECOND) {
    packets += one.peer.sendAudio(one.packets++);
  }
  return packets;
}

async function sendPaced(seconds: number, media: boolean): Promise<number> {
  const startMs = performance.now();
  let packets = 0;
  for (let tick = 1; tick <= seconds * FRAMES_PER_SECOND; tick++) {
    for (const one of joined.values()) {
      if (media) {
        packets += sendFrame(one);
        void one.peer.flush();
      }
      one.peer.poll();
    }
    await delay(Math.max(0, startMs + (tick * 1_000) / FRAMES_PER_SECOND - performance.now()));
  }
  return packets;
}

async function sendPacked(seconds: number): Promise<number> {
  let packets = 0;
  for (let second = 0; second < seconds; second++) {
    for (const one of joined.values()) {
      for (let index = 0; index < FRAMES_PER_SECOND; index++) {
        packets += sendFrame(one);
        await one.peer.flush();
      }
      one.peer.poll();
    }
  }
  return packets;
}

// The timer that a join needs. During a run its own ticks do this: one timer for all peers.
let isRunning = false;
setInterval(() => {
  if (!isRunning) {
    poll();
  }
}, 50);

async function run(seconds: number, mode: Mode): Promise<RunAnswer> {
  const before = process.cpuUsage();
  isRunning = true;
  const packets =
    mode === 'packed' ? await sendPacked(seconds) : await sendPaced(seconds, mode === 'paced');
  isRunning = false;
  const { user, system } = process.cpuUsage(before);
  const peerSeconds = joined.size * seconds;
  return { userMs: user / 1_000 / peerSeconds, systemMs: system / 1_000 / peerSeconds, packets };
}

async function obey(command: SenderCommand): Promise<unknown> {
  switch (command.op) {
    case 'join':
      return await join(command.peer, command.offer);
    case 'connected':
      return { cpuMs: await joined.get(command.peer)!.joinMs } satisfies JoinAnswer;
    case 'leave': {
      const one = joined.get(command.peer);
      joined.delete(command.peer);
      await one?.peer.close();
      return null;
    }
    case 'run':
      return await run(command.seconds, command.mode);
    default:
      throw new Error('unknown command');
  }
}

process.on('message', ({ id, command }: SenderRequest) => {
  const reply = (response: SenderResponse): void => {
    process.send!(response);
  };
  obey(command).then(
    (answer) => {
      reply({ id, answer });
    },
    (error: unknown) => {
      reply({ id, error: error instanceof Error ? error.message : String(error) });
    },
  );
});
process.on('disconnect', () => process.exit(0));
