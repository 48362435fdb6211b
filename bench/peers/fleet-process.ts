// A process full of light peers, told what to do over IPC. Started by fleet.ts, ends when its
// parent goes.
import { readFileSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { SPEECH_RATE } from '../../src/media/timeline.ts';
import { answerCommands } from '../child-process.ts';
import { writeBitstream } from './bitstream.ts';
import { LightPeer } from './light-peer.ts';
import type { FleetCommand, FleetFigures, FleetSetUp, TalkPlan } from './protocol.ts';

let setUp: FleetSetUp;
let speech = new Int16Array(0);
const peers = new Map<number, LightPeer>();
const loop = monitorEventLoopDelay({ resolution: 10 });
loop.enable();

/** `seconds` of the speech from `fromSeconds` on, beginning again at its end. */
function cut(fromSeconds: number, seconds: number): Int16Array {
  const out = new Int16Array(Math.round(seconds * SPEECH_RATE));
  let from = Math.round(fromSeconds * SPEECH_RATE) % speech.length;
  for (let at = 0; at < out.length;) {
    const count = Math.min(out.length - at, speech.length - from);
    out.set(speech.subarray(from, from + count), at);
    at += count;
    from = 0;
  }
  return out;
}

/**
 * Talks as planned until the session is over. A plan of nothing but speech begins with some in
 * hand, so that it never runs dry.
 */
async function talk(
  peer: LightPeer,
  { cycleSeconds, speechSeconds, pace }: TalkPlan,
): Promise<void> {
  await delay(Math.random() * (speechSeconds < cycleSeconds ? cycleSeconds * 1000 : 500));
  let fromSeconds = Math.random() * 60;
  if (speechSeconds >= cycleSeconds && pace === 'burst') {
    await peer.speak(cut(fromSeconds, 1), pace);
  }
  for (let dueMs = performance.now(); peer.figures.state === 'live'; dueMs += cycleSeconds * 1000) {
    await delay(Math.max(0, dueMs - performance.now()));
    await peer.speak(cut(fromSeconds, speechSeconds), pace);
    fromSeconds += speechSeconds;
  }
}

function figures(): FleetFigures {
  const { user, system } = process.cpuUsage();
  const answer = {
    peers: Object.fromEntries([...peers].map(([id, peer]) => [id, peer.figures])),
    loopDelayP99Ms: loop.percentile(99) / 1e6 - 10,
    cpuSeconds: (user + system) / 1e6,
  };
  loop.reset();
  return answer;
}

async function obey(command: FleetCommand): Promise<unknown> {
  switch (command.op) {
    case 'setUp': {
      ({ setUp } = command);
      const file = readFileSync(setUp.speechFile);
      speech = new Int16Array(file.buffer, file.byteOffset, file.byteLength >> 1);
      return null;
    }
    case 'open': {
      const peer = await LightPeer.connect({
        target: setUp.target,
        kind: setUp.kind,
        codec: setUp.codec,
        faceId: setUp.faceId,
        token: setUp.token,
        keepFrames: command.keepFrames,
        impairment: command.impairment,
        microphone: setUp.converses === true ? speech : undefined,
      });
      peers.set(command.peer, peer);
      if (command.plan !== undefined && command.plan.speechSeconds > 0) {
        talk(peer, command.plan).catch(() => {});
      }
      return { sessionId: peer.sessionId, figures: peer.figures };
    }
    case 'speak':
      return peers
        .get(command.peer)!
        .speak(cut(command.fromSeconds, command.seconds), command.pace);
    case 'impair':
      peers.get(command.peer)!.impair(command.impairment);
      return null;
    case 'skip':
      return peers.get(command.peer)!.skip();
    case 'close': {
      const peer = peers.get(command.peer);
      peers.delete(command.peer);
      await peer?.close(command.how);
      return null;
    }
    case 'waitOver': {
      const peer = peers.get(command.peer)!;
      await Promise.race([peer.over, delay(command.timeoutMs, undefined, { ref: false })]);
      return peer.figures;
    }
    case 'dump': {
      const { kept } = peers.get(command.peer)!;
      writeFileSync(command.file, writeBitstream(setUp.codec, kept));
      return { arrivalsMs: kept.map(({ completedMs }) => completedMs) };
    }
    case 'figures':
      break;
  }
  return figures();
}

answerCommands('peer process', obey);
