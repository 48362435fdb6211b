// Dashboard: what users see and hear, and the network below.
import {
  buckets,
  heatmap,
  mean,
  metric,
  quantile,
  quantiles,
  rate,
  rising,
  sumBy,
  timeseries,
  type Dashboard,
  ratesBy,
} from '../panels.ts';

/** The dashboard of what users see and hear, and the network below. */
export const live: Dashboard = {
  uid: 'mouthpiece-live',
  title: 'Mouthpiece: live sessions',
  about:
    'What users see and hear: latency, frame lateness, audio-video sync, and the network ' +
    'below.',
  rows: [
    {
      title: 'Speech to lips',
      panels: [
        heatmap(
          'Audio to lips',
          's',
          'Each utterance: time from the arrival of its first audio to the sending of its ' +
            'first frame with moving lips. A second band means a second group of clients, ' +
            'for example those that send in real time.',
          buckets('mouthpiece_audio_to_lips_seconds'),
        ),
        timeseries(
          'Audio to lips, by pace',
          's',
          'Median and 99th percentile. Objectives: 99 % of bursts within 120 ms, 99 % of ' +
            'real-time speech within 200 ms. Wav2Lip models need more look-ahead and have no ' +
            'objective.',
          [
            {
              expr: quantile(0.5, 'mouthpiece_audio_to_lips_seconds', 'pace, input'),
              legend: 'p50 {{pace}}, {{input}}',
            },
            {
              expr: quantile(0.99, 'mouthpiece_audio_to_lips_seconds', 'pace, input'),
              legend: 'p99 {{pace}}, {{input}}',
            },
          ],
          { width: 6, height: 8, thresholds: rising(0.12, 0.2), min: 0 },
        ),
        timeseries(
          'Interrupt to silence',
          's',
          'Time from SKIP or PLAY_IMMEDIATE to the first packet without the old speech.',
          quantiles('mouthpiece_interrupt_seconds', [0.5, 0.99]),
          { width: 6, height: 8, thresholds: rising(0.05, 0.1), min: 0 },
        ),
        timeseries(
          'Speech in and out',
          's',
          'Seconds of speech per second: received, played and discarded. Played above ' +
            'received: the server is working off a backlog.',
          [
            {
              expr: sumBy('', rate('mouthpiece_audio_received_seconds_total')),
              legend: 'received',
            },
            { expr: sumBy('', rate('mouthpiece_speech_seconds_total')), legend: 'played' },
            {
              expr: sumBy('reason', rate('mouthpiece_audio_dropped_seconds_total')),
              legend: 'dropped: {{reason}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Waiting speech',
          's',
          'Speech in the buffers of speaking sessions. High values are normal for clients ' +
            'that send faster than real time.',
          quantiles('mouthpiece_audio_buffer_seconds', [0.1, 0.5, 0.9]),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Underruns',
          'ops',
          'Buffer underruns per second in the middle of an utterance: the client sends too slowly.',
          [
            { expr: sumBy('', rate('mouthpiece_audio_underruns_total')), legend: 'underruns' },
            { expr: sumBy('', rate('mouthpiece_utterances_total')), legend: 'utterances' },
          ],
          { width: 6, min: 0 },
        ),
        heatmap(
          'Picture against sound',
          's',
          'Media time of the video minus media time of the audio when sent. Below zero the ' +
            'audio is ahead. Objective: −15 to +45 ms.',
          buckets('mouthpiece_av_offset_seconds'),
          { width: 6, height: 7 },
        ),
      ],
    },
    {
      title: 'Frames',
      panels: [
        heatmap(
          'Frame lateness',
          's',
          "Time from a frame's due time to the sending of its last packet.",
          buckets('mouthpiece_frame_lateness_seconds'),
        ),
        timeseries(
          'Frame lateness, quantiles',
          's',
          'Objective: 99 % within 15 ms.',
          quantiles('mouthpiece_frame_lateness_seconds', [0.5, 0.9, 0.99]),
          { width: 6, height: 8, thresholds: rising(0.01, 0.015), min: 0 },
        ),
        timeseries(
          'Skipped frames',
          'ops',
          'Due frames that were not sent, by reason, and frames that repeated the last ' +
            'mouth because the Wav2Lip model was too slow.',
          [
            {
              expr: sumBy('reason', rate('mouthpiece_frames_skipped_total')),
              legend: '{{reason}}',
            },
            { expr: sumBy('', rate('mouthpiece_frames_repeated_total')), legend: 'mouth repeated' },
          ],
          { width: 6, height: 8, min: 0 },
        ),
        timeseries(
          'Frames sent',
          'ops',
          'Each session sends 30 frames per second.',
          [
            {
              expr: sumBy('codec, activity', rate('mouthpiece_frames_sent_total')),
              legend: '{{codec}} {{activity}}',
            },
          ],
          { width: 6, stack: true, min: 0 },
        ),
        timeseries(
          'Time by stage, mean',
          's',
          'Mean time of each stage for one frame (inference: one batched run of the speech ' +
            'model, or one Wav2Lip run).',
          [{ expr: mean('mouthpiece_stage_duration_seconds', 'stage'), legend: '{{stage}}' }],
          { width: 6, stack: true, min: 0, more: 'mouthpiece-workers' },
        ),
        timeseries(
          'CPU by stage',
          'percentunit',
          'Cores that each stage uses, over all workers.',
          ratesBy('stage', 'mouthpiece_stage_duration_seconds_sum'),
          { width: 6, stack: true, min: 0 },
        ),
        timeseries(
          'Sessions in one inference',
          'short',
          'Batch size of the speech model.',
          quantiles('mouthpiece_inference_batch_sessions', [0.5, 0.99]),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Key frames',
          'ops',
          'A key frame has three to four times the bytes of another frame. Many requested ' +
            'key frames are a sign of packet loss.',
          [
            {
              expr: sumBy('codec, cause', rate('mouthpiece_key_frames_total')),
              legend: '{{codec}} {{cause}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Encoded',
          'Bps',
          'Bytes out of the video encoders.',
          ratesBy('codec', 'mouthpiece_encoded_bytes_total'),
          { min: 0 },
        ),
        timeseries(
          'Set-up by step, p99',
          's',
          'Time of each step between the token request and the first frame.',
          [
            {
              expr: quantile(0.99, 'mouthpiece_session_setup_seconds', 'step'),
              legend: '{{step}}',
            },
          ],
          { min: 0 },
        ),
      ],
    },
    {
      title: 'Network',
      panels: [
        timeseries(
          'Loss',
          'percentunit',
          'Share of packets lost in about one second, from receiver reports: mean and 99th ' +
            'percentile over sessions.',
          [
            { expr: mean('mouthpiece_rtp_fraction_lost_ratio'), legend: 'mean' },
            { expr: quantile(0.99, 'mouthpiece_rtp_fraction_lost_ratio'), legend: 'p99' },
          ],
          { width: 6, min: 0, thresholds: rising(0.02, 0.05) },
        ),
        timeseries(
          'Round trip',
          's',
          'Round-trip time computed from receiver reports.',
          quantiles('mouthpiece_rtp_round_trip_seconds', [0.5, 0.99]),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Jitter',
          's',
          'Interarrival jitter from receiver reports.',
          quantiles('mouthpiece_rtp_jitter_seconds', [0.5, 0.99]),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Rate of a session',
          'Bps',
          'Estimated bandwidth of the path, and the rate that is sent.',
          [
            ...quantiles('mouthpiece_send_rate_target_bytes_per_second', [0.1, 0.5]).map(
              ({ expr, legend }) => ({ expr, legend: `target ${legend}` }),
            ),
            ...quantiles('mouthpiece_send_rate_actual_bytes_per_second', [0.5, 0.9]).map(
              ({ expr, legend }) => ({ expr, legend: `sent ${legend}` }),
            ),
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Packets',
          'pps',
          'RTP packets sent, retransmitted (on NACK, or duplicated at 3 to 12 % loss), and ' +
            'received from microphones.',
          [
            {
              expr: sumBy('media', rate('mouthpiece_rtp_packets_sent_total')),
              legend: 'sent {{media}}',
            },
            {
              expr: sumBy('', rate('mouthpiece_rtp_packets_retransmitted_total')),
              legend: 'sent again',
            },
            { expr: sumBy('', rate('mouthpiece_rtp_packets_received_total')), legend: 'received' },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Payload sent',
          'Bps',
          'RTP payload by media kind.',
          ratesBy('media', 'mouthpiece_rtp_bytes_sent_total'),
          { width: 6, stack: true, min: 0 },
        ),
        timeseries(
          'Repair',
          'ops',
          'Packets requested again (NACK), key frames requested (PLI, FIR), packets reported lost.',
          [
            { expr: sumBy('', rate('mouthpiece_rtp_nacks_received_total')), legend: 'NACK' },
            {
              expr: sumBy('kind', rate('mouthpiece_rtp_key_frame_requests_total')),
              legend: '{{kind}}',
            },
            { expr: sumBy('', rate('mouthpiece_rtp_packets_lost_total')), legend: 'lost' },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Peers closed',
          'ops',
          "not_authentic: the peer's certificate or signature did not match. " +
            'connect_timeout, ice_failed and timeout: the network path.',
          ratesBy('reason', 'mouthpiece_peers_closed_total'),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Datagrams',
          'pps',
          'Datagrams received on the media sockets, and those discarded.',
          [
            { expr: sumBy('', rate('mouthpiece_datagrams_received_total')), legend: 'received' },
            { expr: sumBy('', rate('mouthpiece_datagrams_rejected_total')), legend: 'rejected' },
          ],
          { min: 0 },
        ),
        timeseries(
          'Rejected datagrams, by reason',
          'pps',
          'Datagrams discarded before processing. A few unknown_source per second are ' +
            'normal on the open internet.',
          [
            {
              expr:
                `${sumBy('reason', rate('mouthpiece_datagrams_rejected_total'))} > 0 or ` +
                'vector(0)',
              legend: '{{reason}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Datagrams not sent',
          'pps',
          'queue_full: the send queue was full. refused: the operating system did not ' +
            'accept the datagram.',
          [
            {
              expr:
                `${sumBy('reason', rate('mouthpiece_datagrams_unsent_total'))} > 0 or ` +
                'vector(0)',
              legend: '{{reason}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'STUN server',
          'pps',
          'Datagrams received by the built-in STUN server. rate_limited: an address asks ' +
            'more often than clients do.',
          [
            {
              expr: `${sumBy('outcome', rate('mouthpiece_stun_requests_total'))} > 0 or vector(0)`,
              legend: '{{outcome}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Length of sessions',
          's',
          'Length of ended sessions: median and 90th percentile.',
          quantiles('mouthpiece_session_duration_seconds', [0.5, 0.9]),
          { min: 0 },
        ),
      ],
    },
    {
      title: 'LiveKit rooms',
      panels: [
        timeseries(
          'Sessions in rooms',
          'short',
          'Current sessions in LiveKit rooms by state. connecting: nobody is in the room.',
          [
            {
              expr: sumBy('state', metric('mouthpiece_sessions', 'kind=~"livekit|agent"')),
              legend: '{{state}}',
            },
          ],
          { stack: true, min: 0 },
        ),
        timeseries(
          'Joins and reconnects',
          'ops',
          'Signal connections of rooms, by what came of them. Where many resume or are ' +
            'restarted, connections are lost.',
          [
            {
              expr: `${sumBy('result', rate('mouthpiece_livekit_joins_total'))} > 0 or vector(0)`,
              legend: '{{result}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Faults of rooms',
          'short',
          'Rooms on LiveKit servers that could not be joined, connections to them that were lost, ' +
            'and those that could not be restored in a minute. In ten minutes.',
          [
            {
              expr: sumBy(
                'reason',
                `increase(${metric('mouthpiece_livekit_room_errors_total')}[10m])`,
              ),
              legend: '{{reason}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Data received in rooms',
          'Bps',
          'Data messages of the agent, of others in the room, and of those that are not read.',
          [
            {
              expr: sumBy('verdict', rate('mouthpiece_livekit_data_received_bytes_total')),
              legend: '{{verdict}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Signal messages dropped',
          'ops',
          'Signal messages of viewers that were not read, by reason.',
          [
            {
              expr:
                `${sumBy('reason', rate('mouthpiece_livekit_messages_dropped_total'))} > 0 or ` +
                'vector(0)',
              legend: '{{reason}}',
            },
          ],
          { min: 0 },
        ),
      ],
    },
  ],
};
