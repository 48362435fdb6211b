// The worker's metric handles, resolved once from its sheet.
import { PeerMeter } from '../metrics/peer-meter.ts';
import type { SharedMetrics } from '../metrics/shared-metrics.ts';

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

export function createWorkerMetrics(sheet: SharedMetrics) {
  const stage = (
    name: 'drain' | 'features' | 'inference' | 'render' | 'encode' | 'packetize' | 'send' | 'audio',
  ) => sheet.histogram('mouthpiece_stage_duration_seconds', { stage: name });
  const lips = (input: 'socket' | 'track') => ({
    burst: sheet.histogram('mouthpiece_audio_to_lips_seconds', { input, pace: 'burst' }),
    paced: sheet.histogram('mouthpiece_audio_to_lips_seconds', { input, pace: 'paced' }),
    paced_network: sheet.histogram('mouthpiece_audio_to_lips_seconds', {
      input,
      pace: 'paced_network',
    }),
  });
  return {
    ticks: sheet.counter('mouthpiece_worker_ticks_total'),
    tickDuration: sheet.histogram('mouthpiece_worker_tick_duration_seconds'),
    peerMeter: new PeerMeter(sheet),
    sessions: {
      connecting: sheet.gauge('mouthpiece_worker_sessions', { state: 'connecting' }),
      idle: sheet.gauge('mouthpiece_worker_sessions', { state: 'idle' }),
      speaking: sheet.gauge('mouthpiece_worker_sessions', { state: 'speaking' }),
    },
    framesSent: {
      vp8: {
        idle: sheet.counter('mouthpiece_frames_sent_total', { codec: 'vp8', activity: 'idle' }),
        speaking: sheet.counter('mouthpiece_frames_sent_total', {
          codec: 'vp8',
          activity: 'speaking',
        }),
      },
      h264: {
        idle: sheet.counter('mouthpiece_frames_sent_total', { codec: 'h264', activity: 'idle' }),
        speaking: sheet.counter('mouthpiece_frames_sent_total', {
          codec: 'h264',
          activity: 'speaking',
        }),
      },
    },
    skippedLate: sheet.counter('mouthpiece_frames_skipped_total', { reason: 'late' }),
    skippedByRateControl: sheet.counter('mouthpiece_frames_skipped_total', {
      reason: 'rate_control',
    }),
    framesRepeated: sheet.counter('mouthpiece_frames_repeated_total'),
    lateness: sheet.histogram('mouthpiece_frame_lateness_seconds'),
    stage: {
      drain: stage('drain'),
      features: stage('features'),
      inference: stage('inference'),
      render: stage('render'),
      encode: stage('encode'),
      packetize: stage('packetize'),
      send: stage('send'),
      audio: stage('audio'),
    },
    batch: sheet.histogram('mouthpiece_inference_batch_sessions'),
    keyFrames: {
      vp8: {
        start: sheet.counter('mouthpiece_key_frames_total', { codec: 'vp8', cause: 'start' }),
        request: sheet.counter('mouthpiece_key_frames_total', { codec: 'vp8', cause: 'request' }),
        other: sheet.counter('mouthpiece_key_frames_total', { codec: 'vp8', cause: 'other' }),
      },
      h264: {
        start: sheet.counter('mouthpiece_key_frames_total', { codec: 'h264', cause: 'start' }),
        request: sheet.counter('mouthpiece_key_frames_total', { codec: 'h264', cause: 'request' }),
        other: sheet.counter('mouthpiece_key_frames_total', { codec: 'h264', cause: 'other' }),
      },
    },
    encodedBytes: {
      vp8: sheet.counter('mouthpiece_encoded_bytes_total', { codec: 'vp8' }),
      h264: sheet.counter('mouthpiece_encoded_bytes_total', { codec: 'h264' }),
    },
    audioToLips: { socket: lips('socket'), track: lips('track') },
    interrupt: sheet.histogram('mouthpiece_interrupt_seconds'),
    avOffset: sheet.histogram('mouthpiece_av_offset_seconds'),
    utterances: sheet.counter('mouthpiece_utterances_total'),
    speechSeconds: sheet.counter('mouthpiece_speech_seconds_total'),
    bufferDepth: sheet.histogram('mouthpiece_audio_buffer_seconds'),
    underruns: sheet.counter('mouthpiece_audio_underruns_total'),
    rtp: {
      video: sheet.counter('mouthpiece_rtp_packets_sent_total', { media: 'video' }),
      audio: sheet.counter('mouthpiece_rtp_packets_sent_total', { media: 'audio' }),
      videoBytes: sheet.counter('mouthpiece_rtp_bytes_sent_total', { media: 'video' }),
      audioBytes: sheet.counter('mouthpiece_rtp_bytes_sent_total', { media: 'audio' }),
    },
    peersClosed: {
      closed: sheet.counter('mouthpiece_peers_closed_total', { reason: 'closed' }),
      connect_timeout: sheet.counter('mouthpiece_peers_closed_total', {
        reason: 'connect_timeout',
      }),
      dtls_failed: sheet.counter('mouthpiece_peers_closed_total', { reason: 'dtls_failed' }),
      ice_failed: sheet.counter('mouthpiece_peers_closed_total', { reason: 'ice_failed' }),
      timeout: sheet.counter('mouthpiece_peers_closed_total', { reason: 'timeout' }),
      not_authentic: sheet.counter('mouthpiece_peers_closed_total', { reason: 'not_authentic' }),
      failed: sheet.counter('mouthpiece_peers_closed_total', { reason: 'failed' }),
    },
  };
}
