// Turns a peer's running totals, read once a second, into the worker's metrics.
import type { Counter, Histogram } from './catalogue.ts';
import type { SharedMetrics } from './shared-metrics.ts';

/**
 * The statistics of a peer that become metrics: totals since its start, and values of the latest
 * report.
 */
export interface PeerTotals {
  readonly packetsRetransmitted: number;
  readonly nacksReceived: number;
  readonly plisReceived: number;
  readonly firsReceived: number;
  readonly packetsLost: number;
  readonly packetsReceived: number;
  readonly bytesSent: number;
  readonly fractionLost: number; // 0..1
  readonly jitterMs: number;
  readonly roundTripMs: number; // 0 until the first report with a round trip
  readonly targetBitrateKbps: number;
}

const COUNTED = [
  'packetsRetransmitted',
  'nacksReceived',
  'plisReceived',
  'firsReceived',
  'packetsLost',
  'packetsReceived',
] as const;
type Counted = (typeof COUNTED)[number];

/** What was already counted of one peer. Keep one per peer. */
export interface PeerReading {
  readonly counted: Record<Counted, number>;
  bytesSent: number;
  readMs: number;
}

/** The reading of a peer that starts now. */
export const newPeerReading = (nowMs: number): PeerReading => ({
  counted: {
    packetsRetransmitted: 0,
    nacksReceived: 0,
    plisReceived: 0,
    firsReceived: 0,
    packetsLost: 0,
    packetsReceived: 0,
  },
  bytesSent: 0,
  readMs: nowMs,
});

/**
 * One for a worker. `read` about once a second for each connected peer, and once more when it ends.
 */
export class PeerMeter {
  readonly #counters: Readonly<Record<Counted, Counter>>;
  readonly #fractionLost: Histogram;
  readonly #jitter: Histogram;
  readonly #roundTrip: Histogram;
  readonly #target: Histogram;
  readonly #actual: Histogram;

  constructor(metrics: SharedMetrics) {
    this.#counters = {
      packetsRetransmitted: metrics.counter('mouthpiece_rtp_packets_retransmitted_total'),
      nacksReceived: metrics.counter('mouthpiece_rtp_nacks_received_total'),
      plisReceived: metrics.counter('mouthpiece_rtp_key_frame_requests_total', { kind: 'pli' }),
      firsReceived: metrics.counter('mouthpiece_rtp_key_frame_requests_total', { kind: 'fir' }),
      packetsLost: metrics.counter('mouthpiece_rtp_packets_lost_total'),
      packetsReceived: metrics.counter('mouthpiece_rtp_packets_received_total'),
    };
    this.#fractionLost = metrics.histogram('mouthpiece_rtp_fraction_lost_ratio');
    this.#jitter = metrics.histogram('mouthpiece_rtp_jitter_seconds');
    this.#roundTrip = metrics.histogram('mouthpiece_rtp_round_trip_seconds');
    this.#target = metrics.histogram('mouthpiece_send_rate_target_bytes_per_second');
    this.#actual = metrics.histogram('mouthpiece_send_rate_actual_bytes_per_second');
  }

  read(totals: PeerTotals, reading: PeerReading, nowMs: number): void {
    for (const name of COUNTED) {
      // The reported loss decreases when late packets arrive (RFC 3550 section 6.4.1). A counter
      // must not.
      const grown = totals[name] - reading.counted[name];
      if (grown <= 0) {
        continue;
      }
      this.#counters[name].add(grown);
      reading.counted[name] = totals[name];
    }
    this.#fractionLost.observe(totals.fractionLost);
    if (totals.roundTripMs > 0) {
      this.#roundTrip.observe(totals.roundTripMs / 1000);
      this.#jitter.observe(totals.jitterMs / 1000);
    }
    this.#target.observe((totals.targetBitrateKbps * 1000) / 8);
    const elapsedSeconds = (nowMs - reading.readMs) / 1000;
    if (elapsedSeconds > 0.1) {
      this.#actual.observe((totals.bytesSent - reading.bytesSent) / elapsedSeconds);
    }
    reading.bytesSent = totals.bytesSent;
    reading.readMs = nowMs;
  }
}
