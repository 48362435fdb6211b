// The worker's metrics by name and labels, looked up once.
import { PeerMeter } from '../metrics/peer-meter.ts';
import type { SharedMetrics } from '../metrics/shared-metrics.ts';

/** Handles of all metrics that a worker writes. */
export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

/** @param metrics the worker's part of the shared memory that /metrics reads */
export function createWorkerMetrics(metrics: SharedMetrics) {
  const stage = (
    name: 'drain' | 'features' | 'inference' | 'render' | 'encode' | 'packetize' | 'send' | 'audio',
  ) => metrics.histogram('mouthpiece_stage_duration_seconds', { stage: name });
  const lips = (input: 'socket' | 'track') => ({
    burst: metrics.histogram('mouthpiece_audio_to_lips_seconds', { input, pace: 'burst' }),
    paced: metrics.histogram('mouthpiece_audio_to_lips_seconds', { input, pace: 'paced' }),
    paced_network: metrics.histogram('mouthpiece_audio_to_lips_seconds', {
      input,
      pace: 'paced_network',
    }),
  });
  return {
    ticks: metrics.counter('mouthpiece_worker_ticks_total'),
    tickDuration: metrics.histogram('mouthpiece_worker_tick_duration_seconds'),
    peerMeter: new PeerMeter(metrics),
    sessions: {
      connecting: metrics.gauge('mouthpiece_worker_sessions', { state: 'connecting' }),
      idle: metrics.gauge('mouthpiece_worker_sessions', { state: 'idle' }),
      speaking: metrics.gauge('mouthpiece_worker_sessions', { state: 'speaking' }),
    },
    framesSent: {
      vp8: {
        idle: metrics.counter('mouthpiece_frames_sent_total', { codec: 'vp8', activity: 'idle' }),
        speaking: metrics.counter('mouthpiece_frames_sent_total', {
          codec: 'vp8',
          activity: 'speaking',
        }),
      },
      h264: {
        idle: metrics.counter('mouthpiece_frames_sent_total', { codec: 'h264', activity: 'idle' }),
        speaking: metrics.counter('mouthpiece_frames_sent_total', {
          codec: 'h264',
          activity: 'speaking',
        }),
      },
    },
    skippedLate: metrics.counter('mouthpiece_frames_skipped_total', { reason: 'late' }),
    skippedByRateControl: metrics.counter('mouthpiece_frames_skipped_total', {
      reason: 'rate_control',
    }),
    framesRepeated: metrics.counter('mouthpiece_frames_repeated_total'),
    lateness: metrics.histogram('mouthpiece_frame_lateness_seconds'),
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
    batch: metrics.histogram('mouthpiece_inference_batch_sessions'),
    keyFrames: {
      vp8: {
        start: metrics.counter('mouthpiece_key_frames_total', { codec: 'vp8', cause: 'start' }),
        request: metrics.counter('mouthpiece_key_frames_total', { codec: 'vp8', cause: 'request' }),
        other: metrics.counter('mouthpiece_key_frames_total', { codec: 'vp8', cause: 'other' }),
      },
      h264: {
        start: metrics.counter('mouthpiece_key_frames_total', { codec: 'h264', cause: 'start' }),
        request: metrics.counter('mouthpiece_key_frames_total', {
          codec: 'h264',
          cause: 'request',
        }),
        other: metrics.counter('mouthpiece_key_frames_total', { codec: 'h264', cause: 'other' }),
      },
    },
    encodedBytes: {
      vp8: metrics.counter('mouthpiece_encoded_bytes_total', { codec: 'vp8' }),
      h264: metrics.counter('mouthpiece_encoded_bytes_total', { codec: 'h264' }),
    },
    audioToLips: { socket: lips('socket'), track: lips('track') },
    interrupt: metrics.histogram('mouthpiece_interrupt_seconds'),
    avOffset: metrics.histogram('mouthpiece_av_offset_seconds'),
    utterances: metrics.counter('mouthpiece_utterances_total'),
    roomData: {
      heeded: metrics.counter('mouthpiece_livekit_data_received_bytes_total', {
        verdict: 'heeded',
      }),
      other: metrics.counter('mouthpiece_livekit_data_received_bytes_total', { verdict: 'other' }),
      dropped: metrics.counter('mouthpiece_livekit_data_received_bytes_total', {
        verdict: 'dropped',
      }),
    },
    speechSeconds: metrics.counter('mouthpiece_speech_seconds_total'),
    bufferDepth: metrics.histogram('mouthpiece_audio_buffer_seconds'),
    underruns: metrics.counter('mouthpiece_audio_underruns_total'),
    rtp: {
      video: metrics.counter('mouthpiece_rtp_packets_sent_total', { media: 'video' }),
      audio: metrics.counter('mouthpiece_rtp_packets_sent_total', { media: 'audio' }),
      videoBytes: metrics.counter('mouthpiece_rtp_bytes_sent_total', { media: 'video' }),
      audioBytes: metrics.counter('mouthpiece_rtp_bytes_sent_total', { media: 'audio' }),
    },
    peersClosed: {
      closed: metrics.counter('mouthpiece_peers_closed_total', { reason: 'closed' }),
      connect_timeout: metrics.counter('mouthpiece_peers_closed_total', {
        reason: 'connect_timeout',
      }),
      dtls_failed: metrics.counter('mouthpiece_peers_closed_total', { reason: 'dtls_failed' }),
      ice_failed: metrics.counter('mouthpiece_peers_closed_total', { reason: 'ice_failed' }),
      timeout: metrics.counter('mouthpiece_peers_closed_total', { reason: 'timeout' }),
      not_authentic: metrics.counter('mouthpiece_peers_closed_total', { reason: 'not_authentic' }),
      failed: metrics.counter('mouthpiece_peers_closed_total', { reason: 'failed' }),
    },
  };
}
