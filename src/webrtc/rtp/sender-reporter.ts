// RTCP sender reports: both streams on one media clock, and the bitrate sent between two reports.
import type { MediaStats } from './media-stats.ts';
import { senderReport } from './rtcp.ts';
import type { MediaStreams } from './rtp-stream.ts';

const SENDER_REPORT_MS = 1_000;
/** A packet up to this much late is late; beyond that the media clock has been reset. */
const CLOCK_SLACK_MS = 1_000;

/** What reports need besides the streams. */
export interface SenderReporterOptions {
  /**
   * Wall-clock time minus monotonic time, taken once: NTP times then never jump.
   */
  readonly wallOffsetMs: number;
  readonly cname: string;
}

/** Times are `monotonicMs()`. */
export class SenderReporter {
  readonly #streams: MediaStreams;
  readonly #options: SenderReporterOptions;
  readonly #stats: MediaStats;
  /**
   * nowMs - mediaMs. One mapping for both streams: lip sync depends on their relation alone. NaN
   * before the first packet.
   */
  #mediaOffsetMs = Number.NaN;
  #nextReportMs = 0;
  #lastReport = { atMs: 0, bytesSent: 0 };
  #sentKbps = 0;

  constructor(streams: MediaStreams, options: SenderReporterOptions, stats: MediaStats) {
    this.#streams = streams;
    this.#options = options;
    this.#stats = stats;
  }

  /** Everything sent between the last two reports, in kbit/s; 0 before the second report. */
  get sentKbps(): number {
    return this.#sentKbps;
  }

  /** A packet of media time `mediaMs` is about to be sent. */
  onMedia(mediaMs: number, nowMs: number): void {
    const offsetMs = nowMs - mediaMs;
    if (!(Math.abs(offsetMs - this.#mediaOffsetMs) <= CLOCK_SLACK_MS)) {
      this.#mediaOffsetMs = offsetMs;
      // Report at once: the receiver cannot align the streams before the first report.
      this.#nextReportMs = 0;
    }
  }

  /**
   * The reports about all streams, once a second; undefined in between and before the first packet.
   */
  poll(nowMs: number): Buffer | undefined {
    if (nowMs < this.#nextReportMs || Number.isNaN(this.#mediaOffsetMs)) {
      return undefined;
    }
    this.#measureBitrate(nowMs);
    this.#nextReportMs = nowMs + SENDER_REPORT_MS;
    const { wallOffsetMs, cname } = this.#options;
    const reports: Buffer[] = [];
    for (const stream of [this.#streams.video, this.#streams.audio]) {
      if (stream === undefined) {
        continue;
      }
      const { ssrc, packets, payloadBytes: octets } = stream;
      const rtpTimestamp = stream.timestampOf(nowMs - this.#mediaOffsetMs);
      const report = { ssrc, rtpTimestamp, packets, octets };
      reports.push(senderReport(report, nowMs + wallOffsetMs, cname));
    }
    return Buffer.concat(reports);
  }

  #measureBitrate(nowMs: number): void {
    const { bytesSent } = this.#stats;
    const last = this.#lastReport;
    if (last.atMs > 0) {
      this.#sentKbps = ((bytesSent - last.bytesSent) * 8) / (nowMs - last.atMs);
    }
    this.#lastReport = { atMs: nowMs, bytesSent };
  }
}
