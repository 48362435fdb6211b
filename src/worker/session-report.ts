// The statistics of a session as GET /sessions/{id}/stats and the demo page show them.
import type { SessionStatsReport } from '../link/messages.ts';
import type { WorkerSession } from './worker-session.ts';

/** Sorts the recent values: for requests, not for every frame. */
export function reportOf(session: WorkerSession): SessionStatsReport {
  const { id, stats, peer, state, stream, frames, isConnected } = session;
  const { latenessMs, audioToLipsMs } = stats;
  const { video } = frames;
  const activity = state.isSpeaking ? 'speaking' : 'idle';
  return {
    sessionId: id,
    codec: video?.codec ?? '',
    state: isConnected ? activity : 'connecting',
    framesSent: stats.framesSent,
    framesSkipped: stats.framesSkipped,
    frameLatenessMs: { p50: latenessMs.percentile(0.5), p99: latenessMs.percentile(0.99) },
    audioToLipsMs: {
      last: audioToLipsMs.last,
      p50: audioToLipsMs.percentile(0.5),
      p99: audioToLipsMs.percentile(0.99),
    },
    stageMs: { ...stats.stageMs },
    bufferedAudioMs: stream.bufferedMs,
    underruns: stream.underruns,
    bitrateKbps: video === undefined ? 0 : Math.round(video.actualKbps),
    targetBitrateKbps: video?.bitrateKbps ?? 0,
    roundTripMs: peer?.stats.roundTripMs ?? 0,
    packetsLost: peer?.stats.packetsLost ?? 0,
    nacks: peer?.stats.nacksReceived ?? 0,
    keyFrames: stats.keyFrames,
  };
}
