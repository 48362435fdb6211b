// Figures of a connection, read from the browser.

/** Figures of a session. Null: not known yet. */
export interface SessionStats {
  readonly framesPerSecond: number | null;
  /** Video and audio that arrive, kbit/s since the last reading. */
  readonly kbps: number | null;
  readonly width: number;
  readonly height: number;
  /** 'video/VP8' or 'video/H264'; empty until known. */
  readonly codec: string;
  readonly packetsLost: number;
  readonly freezes: number;
  readonly framesDropped: number;
  /** Of the peer connection. */
  readonly roundTripMs: number | null;
  /** Of the WebSocket. */
  readonly socketRoundTripMs: number | null;
}

/** Reads the figures of a peer connection. Rates are since the reading before. */
export class StatsReader {
  #bytes = 0;
  #atMs = 0;

  async read(peer: RTCPeerConnection): Promise<Omit<SessionStats, 'socketRoundTripMs'>> {
    const report = [...(await peer.getStats()).values()] as Record<string, any>[];
    const inbound = report.filter(({ type }) => type === 'inbound-rtp');
    const video = inbound.find(({ kind }) => kind === 'video') ?? {};
    const pair = report.find(
      ({ type, nominated, state }) =>
        type === 'candidate-pair' && nominated && state === 'succeeded',
    );
    const bytes = inbound.reduce((sum, { bytesReceived = 0 }) => sum + Number(bytesReceived), 0);
    const nowMs = performance.now();
    const kbps =
      this.#atMs === 0 || bytes < this.#bytes
        ? null
        : ((bytes - this.#bytes) * 8) / (nowMs - this.#atMs);
    this.#bytes = bytes;
    this.#atMs = nowMs;
    return {
      framesPerSecond: video['framesPerSecond'] ?? null,
      kbps,
      width: video['frameWidth'] ?? 0,
      height: video['frameHeight'] ?? 0,
      codec: report.find(({ id }) => id === video['codecId'])?.['mimeType'] ?? '',
      packetsLost: inbound.reduce((sum, { packetsLost = 0 }) => sum + Number(packetsLost), 0),
      freezes: video['freezeCount'] ?? 0,
      framesDropped: video['framesDropped'] ?? 0,
      roundTripMs:
        pair?.['currentRoundTripTime'] === undefined ? null : pair['currentRoundTripTime'] * 1000,
    };
  }
}
