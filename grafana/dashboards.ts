// The five dashboards: what is on them and what each panel tells the engineer on call.
import {
  bargauge,
  buckets,
  falling,
  heatmap,
  mean,
  metric,
  quantile,
  quantiles,
  rate,
  rising,
  stat,
  sumBy,
  table,
  timeseries,
  toGrafana,
  type Dashboard,
} from './panels.ts';

const overview: Dashboard = {
  uid: 'mouthpiece-overview',
  title: 'Mouthpiece: overview',
  about:
    'Is it well, is there room, and are the objectives kept? Begin here; every panel leads ' +
    'on to the dashboard that says why.',
  rows: [
    {
      title: 'Now',
      panels: [
        stat(
          'Ready',
          'bool_yes_no',
          'Whether every server answers /readyz with 200. A server that drains is not ' +
            'ready on purpose.',
          `min(${metric('mouthpiece_ready')})`,
          { width: 2, thresholds: falling(0.5, 1) },
        ),
        stat(
          'Sessions',
          'short',
          'Sessions now, of every kind and state.',
          `sum(${metric('mouthpiece_sessions')})`,
          { more: 'mouthpiece-live' },
        ),
        stat(
          'Speaking',
          'short',
          'Sessions whose face is speaking now: these cost the CPU.',
          `sum(${metric('mouthpiece_sessions', 'state="speaking"')})`,
          { width: 2, more: 'mouthpiece-live' },
        ),
        stat(
          'Room left',
          'short',
          'Sessions that the workers would still take before placement refuses. 0: full, ' +
            'and /readyz says so.',
          `sum(${metric('mouthpiece_room_sessions')})`,
          { thresholds: falling(2, 5), more: 'mouthpiece-workers' },
        ),
        stat(
          'Bursts to lips, p99',
          's',
          'From the arrival of speech that comes faster than real time to the first frame ' +
            'with moving lips leaving. Objective: 99 % within 120 ms.',
          quantile(0.99, 'mouthpiece_audio_to_lips_seconds', '', 'pace="burst"'),
          { thresholds: rising(0.07, 0.12), more: 'mouthpiece-live' },
        ),
        stat(
          'Paced speech to lips, p99',
          's',
          'The same for speech that comes in real time: its look-ahead of 60 ms has to ' +
            'come in first. Objective: 99 % within 200 ms.',
          quantile(0.99, 'mouthpiece_audio_to_lips_seconds', '', 'pace="paced"'),
          { thresholds: rising(0.15, 0.2), more: 'mouthpiece-live' },
        ),
        stat(
          'Frames on time',
          'percentunit',
          'Share of frames that left within 15 ms of their time. Objective: 99 %.',
          `${sumBy('', rate('mouthpiece_frame_lateness_seconds_bucket', 'le="0.015"'))} / ` +
            `(${sumBy('', rate('mouthpiece_frame_lateness_seconds_count'))} > 0)`,
          { thresholds: falling(0.98, 0.99), more: 'mouthpiece-live' },
        ),
        stat(
          'Set-up, p99',
          's',
          "From a client's offer to the first frame sent. Objective: 99 % within 500 ms.",
          quantile(0.99, 'mouthpiece_session_setup_seconds', '', 'step="total"'),
          { thresholds: rising(0.3, 0.5), more: 'mouthpiece-live' },
        ),
        stat(
          'Alerts firing',
          'short',
          'Alert rules of this project that fire now; each names its runbook.',
          'count(ALERTS{alertstate="firing",alertname=~"Mouthpiece.*"}) or vector(0)',
          { width: 2, thresholds: rising(1, 1) },
        ),
      ],
    },
    {
      title: 'Objectives',
      panels: [
        bargauge(
          'Error budget left, 30 days',
          'percentunit',
          'What is left of the errors that each objective allows in 30 days: 100 % ' +
            'untouched, 0 % used up.',
          [{ expr: 'mouthpiece:slo_budget_left:ratio30d', legend: '{{slo}}' }],
          { thresholds: falling(0.1, 0.5), min: 0, max: 1 },
        ),
        timeseries(
          'Burn rate',
          'none',
          'How many times faster than allowed the error budget is used, over the last ' +
            'hour. 1 spends exactly the budget; 14.4 wakes somebody.',
          [{ expr: 'mouthpiece:slo_burn:rate1h', legend: '{{slo}}' }],
          {
            thresholds: [
              { from: undefined, color: 'green' },
              { from: 6, color: 'yellow' },
              { from: 14.4, color: 'red' },
            ],
          },
        ),
        timeseries(
          'Load of the workers',
          'percentunit',
          'Share of its core that each worker used; above the limit new sessions are refused.',
          [
            {
              expr: metric('mouthpiece_worker_load_ratio'),
              legend: '{{instance}} worker {{worker}}',
            },
            { expr: `max(${metric('mouthpiece_worker_load_limit_ratio')})`, legend: 'limit' },
          ],
          { min: 0, max: 1, thresholds: rising(0.7, 0.8), more: 'mouthpiece-workers' },
        ),
      ],
    },
    {
      title: 'Sessions',
      panels: [
        timeseries(
          'Sessions by state',
          'short',
          'Sessions now, by state.',
          [{ expr: sumBy('state', metric('mouthpiece_sessions')), legend: '{{state}}' }],
          { stack: true, width: 6, min: 0 },
        ),
        timeseries(
          'Started, by kind',
          'ops',
          'Sessions whose socket presented a good token, per second.',
          [{ expr: sumBy('kind', rate('mouthpiece_sessions_started_total')), legend: '{{kind}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Ended, by reason',
          'ops',
          'worker_lost and error are our fault; connect_timeout and ice_failed are nearly ' +
            'always a firewall or NAT in between; peer_lost a network that went away.',
          [
            {
              expr: `${sumBy('reason', rate('mouthpiece_sessions_ended_total'))} > 0 or vector(0)`,
              legend: '{{reason}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Turned away',
          'ops',
          'Tokens and sockets refused, by code. SERVER_OVERLOADED means that somebody ' +
            'found no room.',
          [
            {
              expr: `${sumBy('code', rate('mouthpiece_tokens_refused_total'))} > 0 or vector(0)`,
              legend: 'token {{code}}',
            },
            {
              expr: `${sumBy('code', rate('mouthpiece_sessions_refused_total'))} > 0 or vector(0)`,
              legend: 'socket {{code}}',
            },
          ],
          { width: 6, min: 0 },
        ),
      ],
    },
    {
      title: 'Process',
      panels: [
        timeseries(
          'Memory',
          'bytes',
          'Resident memory of the whole process. It should follow the number of sessions ' +
            'and come back with it.',
          [{ expr: metric('process_resident_memory_bytes'), legend: '{{instance}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'CPU',
          'percentunit',
          'Cores used by the whole process.',
          [{ expr: rate('process_cpu_seconds_total'), legend: '{{instance}}' }],
          { width: 6, min: 0, more: 'mouthpiece-workers' },
        ),
        timeseries(
          'File descriptors',
          'short',
          'Open descriptors; a slope that does not follow the sessions is a leak. Near the ' +
            'limit new connections are refused, each second as many as the last line says.',
          [
            { expr: metric('process_open_fds'), legend: '{{instance}}' },
            { expr: `min(${metric('process_max_fds')})`, legend: 'limit' },
            {
              expr: sumBy('reason', rate('mouthpiece_connections_refused_total')),
              legend: 'refused a second ({{reason}})',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Errors, by code',
          'ops',
          'Errors that were our fault or cost a session.',
          [
            {
              expr: `${sumBy('code', rate('mouthpiece_errors_total'))} > 0 or vector(0)`,
              legend: '{{code}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        table(
          'What runs',
          'none',
          'Version, commit and Node of each server.',
          [{ expr: metric('mouthpiece_build_info'), legend: '' }],
          { width: 12, height: 5 },
        ),
        stat(
          'Started',
          'dateTimeFromNow',
          'Start of the youngest process.',
          `max(${metric('process_start_time_seconds')}) * 1000`,
          { width: 4, height: 5 },
        ),
        stat(
          'Draining',
          'short',
          'Servers that finish their sessions before they end.',
          `sum(${metric('mouthpiece_draining')})`,
          { width: 4, height: 5, thresholds: rising(1, 1) },
        ),
        stat(
          'Cost of a scrape',
          's',
          'Mean time to write one answer of /metrics.',
          mean('mouthpiece_scrape_duration_seconds'),
          { width: 4, height: 5, thresholds: rising(0.005, 0.05) },
        ),
      ],
    },
  ],
};

const live: Dashboard = {
  uid: 'mouthpiece-live',
  title: 'Mouthpiece: live sessions',
  about: 'What people see and hear: latency, lateness, sync and the network under it.',
  rows: [
    {
      title: 'Speech to lips',
      panels: [
        heatmap(
          'Audio to lips',
          's',
          'Every utterance: from the arrival of its first speech to its first frame with ' +
            'moving lips leaving. A second band tells of a second population, for instance ' +
            'clients that pace their audio.',
          buckets('mouthpiece_audio_to_lips_seconds'),
        ),
        timeseries(
          'Audio to lips, by pace',
          's',
          'Median and 99th percentile. Objectives: 99 % of bursts within 120 ms, of paced ' +
            "speech within 200 ms. A user's own network looks further ahead and has none.",
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
          'From SKIP or PLAY_IMMEDIATE to the first packet without the old speech.',
          quantiles('mouthpiece_interrupt_seconds', [0.5, 0.99]),
          { width: 6, height: 8, thresholds: rising(0.05, 0.1), min: 0 },
        ),
        timeseries(
          'Speech in and out',
          's',
          'Seconds of speech a second: received, played, thrown away. Played above ' +
            'received means that a backlog is being spoken.',
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
          'Depth of the speech buffer of speaking sessions. Deep is normal for clients ' +
            'that send faster than real time.',
          quantiles('mouthpiece_audio_buffer_seconds', [0.1, 0.5, 0.9]),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Underruns',
          'ops',
          'Times a second that speech ran dry in mid-utterance: the client does not keep up.',
          [
            { expr: sumBy('', rate('mouthpiece_audio_underruns_total')), legend: 'underruns' },
            { expr: sumBy('', rate('mouthpiece_utterances_total')), legend: 'utterances' },
          ],
          { width: 6, min: 0 },
        ),
        heatmap(
          'Picture against sound',
          's',
          'Media time of the picture minus that of the sound when sent; below zero the ' +
            'sound is ahead. Objective: −15 to +45 ms.',
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
          'From the moment a frame was due to its last packet leaving.',
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
          'Frames that were due and not sent, by reason, and those that a network of the ' +
            "user's own (WAV2LIP_MODEL) left with the last mouth: it is too slow for what " +
            'else this machine does.',
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
          'Thirty a second for every session.',
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
          'Mean time of each stage for one frame (inference: one batched run, or a mouth ' +
            "of a user's own network).",
          [{ expr: mean('mouthpiece_stage_duration_seconds', 'stage'), legend: '{{stage}}' }],
          { width: 6, stack: true, min: 0, more: 'mouthpiece-workers' },
        ),
        timeseries(
          'CPU by stage',
          'percentunit',
          'Cores that each stage uses, over all workers.',
          [
            {
              expr: sumBy('stage', rate('mouthpiece_stage_duration_seconds_sum')),
              legend: '{{stage}}',
            },
          ],
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
          'Each costs three to four times a normal frame; many by request tell of loss.',
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
          [{ expr: sumBy('codec', rate('mouthpiece_encoded_bytes_total')), legend: '{{codec}}' }],
          { min: 0 },
        ),
        timeseries(
          'Set-up by step, p99',
          's',
          'Where the time goes between token and picture.',
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
          'Share lost of the packets of about a second, as receivers report it: mean, and ' +
            'the 99th percentile of sessions.',
          [
            { expr: mean('mouthpiece_rtp_fraction_lost_ratio'), legend: 'mean' },
            { expr: quantile(0.99, 'mouthpiece_rtp_fraction_lost_ratio'), legend: 'p99' },
          ],
          { width: 6, min: 0, thresholds: rising(0.02, 0.05) },
        ),
        timeseries(
          'Round trip',
          's',
          'Round trip from receiver reports.',
          quantiles('mouthpiece_rtp_round_trip_seconds', [0.5, 0.99]),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Jitter',
          's',
          'Interarrival jitter as receivers report it.',
          quantiles('mouthpiece_rtp_jitter_seconds', [0.5, 0.99]),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Rate of a session',
          'Bps',
          'What the path is believed to carry, and what is sent.',
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
          'RTP packets sent, sent again (asked for, or as copies where 3 to 12 % are ' +
            'lost), and received from microphones.',
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
          'RTP payload, by medium.',
          [{ expr: sumBy('media', rate('mouthpiece_rtp_bytes_sent_total')), legend: '{{media}}' }],
          { width: 6, stack: true, min: 0 },
        ),
        timeseries(
          'Repair',
          'ops',
          'Packets asked for again, key frames asked for, packets reported lost.',
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
          'not_authentic: somebody tried to pass for another; connect_timeout, ice_failed ' +
            'and timeout: the path.',
          [{ expr: sumBy('reason', rate('mouthpiece_peers_closed_total')), legend: '{{reason}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Datagrams',
          'pps',
          'Datagrams that reached the sockets, and those thrown away.',
          [
            { expr: sumBy('', rate('mouthpiece_datagrams_received_total')), legend: 'received' },
            { expr: sumBy('', rate('mouthpiece_datagrams_rejected_total')), legend: 'rejected' },
          ],
          { min: 0 },
        ),
        timeseries(
          'Rejected datagrams, by reason',
          'pps',
          'Thrown away before they could do harm. A steady trickle of unknown_source is ' +
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
          'queue_full: more than the network takes. refused: the system did not take it.',
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
          'Datagrams at our own STUN server. rate_limited: an address asks more often than ' +
            'clients do.',
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
          'Sessions that ended, median and 90th percentile.',
          quantiles('mouthpiece_session_duration_seconds', [0.5, 0.9]),
          { min: 0 },
        ),
      ],
    },
  ],
};

const worker = (expr: string): { expr: string; legend: string }[] => [
  { expr, legend: '{{instance}} worker {{worker}}' },
];

const workers: Dashboard = {
  uid: 'mouthpiece-workers',
  title: 'Mouthpiece: workers',
  about:
    'One worker thread is one core. Which of them is full, late, blocked or collecting ' +
    'garbage; and the main thread beside them.',
  rows: [
    {
      title: 'Per core',
      panels: [
        timeseries(
          'Room left',
          'short',
          'Sessions that each server would still take. At 0 it refuses with ' +
            'SERVER_OVERLOADED: send people to another one.',
          [{ expr: metric('mouthpiece_room_sessions'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Load',
          'percentunit',
          'Share of its core that each worker used over the last second, and the limit ' +
            'above which it takes no more sessions.',
          [
            ...worker(metric('mouthpiece_worker_load_ratio')),
            { expr: `max(${metric('mouthpiece_worker_load_limit_ratio')})`, legend: 'limit' },
          ],
          { min: 0, max: 1, thresholds: rising(0.7, 0.8) },
        ),
        timeseries(
          'CPU',
          'percentunit',
          'CPU time of each worker thread, in cores.',
          worker(rate('mouthpiece_worker_cpu_seconds_total')),
          { min: 0 },
        ),
        timeseries(
          'Sessions',
          'short',
          'Sessions on each worker, and the most it takes.',
          [
            ...worker(`sum without (state) (${metric('mouthpiece_worker_sessions')})`),
            { expr: `max(${metric('mouthpiece_worker_sessions_limit')})`, legend: 'limit' },
          ],
          { min: 0 },
        ),
        timeseries(
          'Frame lateness, p99',
          's',
          'One late core among punctual ones has a noisy neighbour or a session that costs ' +
            'too much.',
          worker(quantile(0.99, 'mouthpiece_frame_lateness_seconds', 'instance, worker')),
          { min: 0, thresholds: rising(0.01, 0.015) },
        ),
        timeseries(
          'Event-loop delay, p99',
          's',
          'How late a timer fires: what else the thread was busy with.',
          worker(quantile(0.99, 'mouthpiece_worker_event_loop_delay_seconds', 'instance, worker')),
          { min: 0 },
        ),
        timeseries(
          'Turns of the frame loop',
          'ops',
          'About thirty a second while there are sessions. Less: the loop cannot keep its pace.',
          worker(rate('mouthpiece_worker_ticks_total')),
          { min: 0 },
        ),
        timeseries(
          'One turn of the frame loop',
          's',
          'All due sessions together; it must stay well under 33 ms.',
          quantiles('mouthpiece_worker_tick_duration_seconds', [0.5, 0.9, 0.99]),
          { min: 0, thresholds: rising(0.02, 0.033) },
        ),
        timeseries(
          'Garbage collection',
          'percentunit',
          'Share of time in garbage collection.',
          worker(sumBy('instance, worker', rate('mouthpiece_worker_gc_seconds_total'))),
          { min: 0 },
        ),
        timeseries(
          'Heap',
          'bytes',
          'JavaScript heap of each worker; codecs and pictures live outside of it.',
          worker(metric('mouthpiece_worker_heap_used_bytes')),
          { min: 0 },
        ),
      ],
    },
    {
      title: 'CPU of a frame',
      panels: [
        timeseries(
          'CPU of a session',
          'percentunit',
          'Cores of worker time per session that is up; the figure behind sizing.',
          [
            {
              expr:
                `${sumBy('', rate('mouthpiece_worker_cpu_seconds_total'))} / ` +
                `(sum(${metric('mouthpiece_worker_sessions', 'state!="connecting"')}) > 0)`,
              legend: 'per session',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Stage, p99',
          's',
          '99th percentile of each stage.',
          [
            {
              expr: quantile(0.99, 'mouthpiece_stage_duration_seconds', 'stage'),
              legend: '{{stage}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'State of workers',
          'short',
          'Workers by state; ready should equal the configured number.',
          [{ expr: sumBy('state', metric('mouthpiece_workers')), legend: '{{state}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Restarts',
          'short',
          'Workers replaced in the last ten minutes. Any is a bug: read the log of that moment.',
          [
            {
              expr: sumBy('reason', `increase(${metric('mouthpiece_worker_restarts_total')}[10m])`),
              legend: '{{reason}}',
            },
          ],
          { width: 6, min: 0, thresholds: rising(1, 1) },
        ),
      ],
    },
    {
      title: 'Main thread',
      panels: [
        timeseries(
          'CPU',
          'percentunit',
          'CPU time of the main thread, in cores.',
          [{ expr: rate('mouthpiece_front_cpu_seconds_total'), legend: '{{instance}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Event-loop delay',
          's',
          'The control plane answers late by this much.',
          quantiles('mouthpiece_front_event_loop_delay_seconds', [0.5, 0.99]),
          { width: 6, min: 0, thresholds: rising(0.05, 0.1) },
        ),
        timeseries(
          'Garbage collection',
          'percentunit',
          'Share of time, by kind.',
          [{ expr: sumBy('kind', rate('mouthpiece_front_gc_seconds_total')), legend: '{{kind}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Heap',
          'bytes',
          'JavaScript heap of the main thread.',
          [{ expr: metric('mouthpiece_front_heap_used_bytes'), legend: '{{instance}}' }],
          { width: 6, min: 0 },
        ),
      ],
    },
  ],
};

const rest: Dashboard = {
  uid: 'mouthpiece-rest',
  title: 'Mouthpiece: REST and jobs',
  about: 'HTTP by route, the sockets, and the offline jobs: static videos and faces.',
  rows: [
    {
      title: 'HTTP',
      panels: [
        timeseries(
          'Requests, by status',
          'reqps',
          'Requests answered.',
          [{ expr: sumBy('status', rate('mouthpiece_http_requests_total')), legend: '{{status}}' }],
          { stack: true, min: 0 },
        ),
        timeseries(
          'Requests, by route',
          'reqps',
          'The route template, never the path itself.',
          [
            {
              expr: sumBy('method, route', rate('mouthpiece_http_requests_total')),
              legend: '{{method}} {{route}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Latency, p99',
          's',
          '99th percentile of each route.',
          [
            {
              expr: quantile(0.99, 'mouthpiece_http_request_duration_seconds', 'route'),
              legend: '{{route}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Errors',
          'percentunit',
          "Share of answers that are 5xx (ours) and 4xx (the client's).",
          [
            {
              expr:
                `(${sumBy('', rate('mouthpiece_http_requests_total', 'status=~"5.."'))} or ` +
                `vector(0)) / ${sumBy('', rate('mouthpiece_http_requests_total'))}`,
              legend: '5xx',
            },
            {
              expr:
                `(${sumBy('', rate('mouthpiece_http_requests_total', 'status=~"4.."'))} or ` +
                `vector(0)) / ${sumBy('', rate('mouthpiece_http_requests_total'))}`,
              legend: '4xx',
            },
          ],
          { min: 0, max: 1, thresholds: rising(0.01, 0.05) },
        ),
        timeseries(
          'In flight',
          'short',
          'Requests being answered.',
          [{ expr: metric('mouthpiece_http_requests_in_flight'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Refused',
          'ops',
          'Requests and connections refused to protect the server, by the limit that they met.',
          [{ expr: sumBy('reason', rate('mouthpiece_http_refused_total')), legend: '{{reason}}' }],
          { min: 0 },
        ),
        timeseries(
          'Memory of bodies',
          'bytes',
          'Uploads that are being received or handled. Not ready at 90 % of 256 MiB.',
          [{ expr: metric('mouthpiece_http_body_bytes'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Connections',
          'short',
          'Open TCP connections, WebSockets among them.',
          [{ expr: metric('mouthpiece_http_connections'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Tokens',
          'ops',
          'Session tokens handed out.',
          [{ expr: sumBy('', rate('mouthpiece_tokens_issued_total')), legend: 'issued' }],
          { min: 0 },
        ),
      ],
    },
    {
      title: 'WebSocket',
      panels: [
        timeseries(
          'Open sockets',
          'short',
          'Session sockets that are open now.',
          [{ expr: metric('mouthpiece_websocket_connections'), legend: '{{instance}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Messages',
          'ops',
          'By direction and meaning; "ignored" is what the protocol does not know.',
          [
            {
              expr:
                `${sumBy('direction, type', rate('mouthpiece_websocket_messages_total'))} > ` +
                '0 or vector(0)',
              legend: '{{direction}} {{type}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Bytes',
          'Bps',
          'Payload of WebSocket messages, by direction.',
          [
            {
              expr: sumBy('direction', rate('mouthpiece_websocket_bytes_total')),
              legend: '{{direction}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Messages dropped',
          'ops',
          'Thrown away unread: a socket, or all of them together, sent more than their budget.',
          [
            {
              expr: sumBy('reason', rate('mouthpiece_websocket_messages_dropped_total')),
              legend: '{{reason}}',
            },
          ],
          { width: 6, min: 0 },
        ),
      ],
    },
    {
      title: 'Offline jobs',
      panels: [
        timeseries(
          'Queue',
          'short',
          'Jobs now, by kind and state.',
          [{ expr: sumBy('kind, state', metric('mouthpiece_jobs')), legend: '{{kind}} {{state}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Oldest waiting job',
          's',
          'Growing without end: more jobs come in than the threads can do.',
          [{ expr: metric('mouthpiece_job_oldest_queued_seconds'), legend: '{{kind}}' }],
          { width: 6, min: 0, thresholds: rising(60, 300) },
        ),
        timeseries(
          'Finished and refused',
          'ops',
          'Jobs over, by result; refused: the queue was full.',
          [
            {
              expr: sumBy('kind, result', rate('mouthpiece_jobs_finished_total')),
              legend: '{{kind}} {{result}}',
            },
            {
              expr: sumBy('kind', rate('mouthpiece_jobs_refused_total')),
              legend: '{{kind}} refused',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Speed',
          'none',
          'Seconds of video made per second of work. Under 1 a viewer would catch up with ' +
            'the renderer.',
          [{ expr: quantile(0.5, 'mouthpiece_job_realtime_factor'), legend: 'median' }],
          { width: 6, min: 0, thresholds: falling(1, 8) },
        ),
        timeseries(
          'Waiting time',
          's',
          'From acceptance to start.',
          [{ expr: quantile(0.9, 'mouthpiece_job_wait_seconds', 'kind'), legend: 'p90 {{kind}}' }],
          { width: 12, min: 0 },
        ),
        timeseries(
          'Duration',
          's',
          "From a job's start to its end.",
          [
            {
              expr: quantile(0.9, 'mouthpiece_job_duration_seconds', 'kind'),
              legend: 'p90 {{kind}}',
            },
          ],
          { width: 12, min: 0 },
        ),
      ],
    },
  ],
};

const redis: Dashboard = {
  uid: 'mouthpiece-redis',
  title: 'Mouthpiece: Redis',
  about:
    'The database as the servers see it. Live sessions go on without it; new tokens, ' +
    'history and jobs do not.',
  rows: [
    {
      title: 'Redis',
      panels: [
        stat(
          'Connected',
          'bool_yes_no',
          'Whether every server has an answer from Redis.',
          `min(${metric('mouthpiece_redis_connected')})`,
          { thresholds: falling(0.5, 1), width: 4, height: 7 },
        ),
        stat(
          'Records waiting',
          'short',
          'Session records that could not be written yet; written when Redis is back.',
          `sum(${metric('mouthpiece_history_pending_records')})`,
          { thresholds: rising(1, 1000), width: 4, height: 7 },
        ),
        timeseries(
          'Errors',
          'ops',
          'Commands that failed, by cause.',
          [{ expr: sumBy('cause', rate('mouthpiece_redis_errors_total')), legend: '{{cause}}' }],
          { min: 0 },
        ),
        timeseries(
          'Commands',
          'ops',
          'Commands a second, by command or script.',
          [
            {
              expr: sumBy('command', rate('mouthpiece_redis_command_duration_seconds_count')),
              legend: '{{command}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Latency',
          's',
          'Round trip of all commands.',
          quantiles('mouthpiece_redis_command_duration_seconds', [0.5, 0.99]),
          { width: 12, min: 0, thresholds: rising(0.01, 0.05) },
        ),
        timeseries(
          'Latency by command, p99',
          's',
          'Which command is slow.',
          [
            {
              expr: quantile(0.99, 'mouthpiece_redis_command_duration_seconds', 'command'),
              legend: '{{command}}',
            },
          ],
          { width: 12, min: 0 },
        ),
      ],
    },
  ],
};

export const DASHBOARDS: readonly Dashboard[] = [overview, live, workers, rest, redis];

/** What lies in grafana/dashboards/. */
export const dashboardFiles = (): { path: URL; text: string }[] =>
  DASHBOARDS.map((dashboard) => ({
    path: new URL(`./dashboards/${dashboard.uid}.json`, import.meta.url),
    text: `${JSON.stringify(toGrafana(dashboard, DASHBOARDS), null, 1)}\n`,
  }));
