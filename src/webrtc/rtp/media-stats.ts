// The counters that the sending side of a peer keeps.

/** Counters since the start of one peer. */
export interface MediaStats {
  /** Datagrams sent: RTP, retransmissions and RTCP. */
  packetsSent: number;
  /** Bytes of these datagrams, SRTP overhead included. */
  bytesSent: number;
  /** Retransmissions and duplicates. */
  packetsRetransmitted: number;
  /** Packets requested by NACK. One NACK message may request several. */
  nacksReceived: number;
  plisReceived: number;
  firsReceived: number;
  /**
   * Cumulative, from the latest report about the video stream (about audio if there is no video).
   */
  packetsLost: number;
  /** Share of packets lost, 0 to 1, over the latest LossWindow. */
  fractionLost: number;
  /** Interarrival jitter as the receiver reports it (RFC 3550 section 6.4.1). */
  jitterMs: number;
  roundTripMs: number;
  targetBitrateKbps: number;
  /** RTP timestamp of the latest video frame. */
  videoTimestamp: number;
}

/** All counters at 0. */
export const newMediaStats = (): MediaStats => ({
  packetsSent: 0,
  bytesSent: 0,
  packetsRetransmitted: 0,
  nacksReceived: 0,
  plisReceived: 0,
  firsReceived: 0,
  packetsLost: 0,
  fractionLost: 0,
  jitterMs: 0,
  roundTripMs: 0,
  targetBitrateKbps: 0,
  videoTimestamp: 0,
});
