// RTP and RTCP of a connected client, encrypted with its keys, so that they are authentic and get
// processed.
import assert from 'node:assert/strict';
import { SpeechRingReader, createSpeechRing } from '../../../src/link/speech-ring.ts';
import { AudioReceiver } from '../../../src/pipeline/speech/audio-receiver.ts';
import { SessionSpeech } from '../../../src/pipeline/speech/speech-source.ts';
import { MediaSender } from '../../../src/webrtc/rtp/media-sender.ts';
import { newMediaStats } from '../../../src/webrtc/rtp/media-stats.ts';
import { planAnswer } from '../../../src/webrtc/sdp/answer.ts';
import { parseOffer } from '../../../src/webrtc/sdp/offer.ts';
import {
  KEY_BYTES,
  rtpHeaderBytes,
  saltBytes,
  SRTP_PROFILES,
  SrtpReceiver,
  SrtpSender,
} from '../../../src/webrtc/srtp/srtp.ts';
import { chromium } from '../../webrtc/sdp/offers.ts';
import { readScript } from '../engine/script.ts';
import type { FuzzTarget } from '../engine/target.ts';

/**
 * Kinds of steps: an RTCP or RTP packet to encrypt, a raw datagram, time that passes, or a frame to
 * send.
 */
export const OP = { rtcp: 0, rtp: 1, raw: 2, wait: 3, frame: 4 } as const;
/** Placeholders for the SSRCs of our streams, which are random. */
export const VIDEO = 'VIDE';
export const AUDIO = 'AUDI';

const LIMITS = { minBitrateKbps: 150, maxBitrateKbps: 1500 };
const MAX_DATAGRAM_BYTES = 2048;
/** RETRANSMIT_BURST_BYTES plus what a second adds to the budget, times two. */
const MAX_SENT_BYTES_PER_STEP = 200_000;
const plan = planAnswer(parseOffer(chromium));
/** Without a history for retransmission: three times as many inputs a second. */
const planWithoutHistory = planAnswer(
  parseOffer(chromium.replaceAll(/a=rtcp-fb:\d+ nack\r\n/g, '')),
);
const speechRing = createSpeechRing();
const frame = Buffer.alloc(4000, 0x30);
const out = Buffer.alloc(MAX_DATAGRAM_BYTES + 64);

/**
 * Replaces the placeholders by the SSRCs, and SEQn by the sequence number n before the latest one.
 */
function insertSsrcs(plain: Buffer, media: MediaSender): Buffer {
  const copy = Buffer.from(plain);
  for (let at = 0; at + 4 <= copy.length; at += 4) {
    const word = copy.toString('latin1', at, at + 4);
    if (word === VIDEO) {
      copy.writeUInt32BE(media.video?.ssrc ?? 0, at);
    } else if (word === AUDIO) {
      copy.writeUInt32BE(media.audio?.ssrc ?? 0, at);
    } else if (word.startsWith('SEQ')) {
      copy.writeUInt16BE(((media.video?.nextSequence ?? 0) - 1 - (copy[at + 3] ?? 0)) & 0xffff, at);
    }
  }
  return copy;
}

export const target: FuzzTarget = {
  maxBytes: 16 * 1024,
  words: [VIDEO, AUDIO, 'SEQ\0', 'REMB'],
  budget: { leastMs: 10, per64KiBMs: 20 },
  run(data) {
    const [profile, hasHistory] = [SRTP_PROFILES[(data[0] ?? 0) & 1]!, ((data[0] ?? 0) & 2) === 0];
    const [key, salt] = [Buffer.alloc(KEY_BYTES, 3), Buffer.alloc(saltBytes(profile), 5)];
    const [client, receiver] = [
      new SrtpSender(profile, key, salt),
      new SrtpReceiver(profile, key, salt),
    ];
    const stats = newMediaStats();
    let sentBytes = 0;
    const media = new MediaSender(
      hasHistory ? plan : planWithoutHistory,
      { ...LIMITS, wallOffsetMs: 1_700_000_000_000, cname: 'cname' },
      {
        onKeyFrameRequest: () => {},
        onTargetBitrate: (kbps) => {
          assert.ok(
            kbps >= LIMITS.minBitrateKbps && kbps <= LIMITS.maxBitrateKbps,
            `${kbps} kbit/s`,
          );
        },
      },
      stats,
      () => out,
      (_datagram, length) => {
        sentBytes += length;
      },
    );
    let microphone: AudioReceiver | undefined;
    let nowMs = 10_000;
    media.start(new SrtpSender(profile, key, salt), nowMs);
    media.sendVideo(frame, frame.length, true, 0, nowMs);
    media.sendAudio(frame, 80, 0, nowMs, false);
    try {
      for (const { op, payload } of readScript(data.subarray(1))) {
        nowMs++;
        sentBytes = 0;
        const plain = insertSsrcs(payload.subarray(0, MAX_DATAGRAM_BYTES), media);
        if (op === OP.wait) {
          media.poll((nowMs += 10 * (payload[0] ?? 1)));
        } else if (op === OP.frame) {
          media.sendVideo(frame, frame.length, (payload[0] ?? 0) === 1, nowMs - 10_000, nowMs);
        } else if (op === OP.raw) {
          receiver.unprotectRtp(plain);
          receiver.unprotectRtcp(plain);
        } else if (op === OP.rtp) {
          rtp(plain);
        } else if (plain.length >= 8) {
          rtcp(plain);
        }
        assert.ok(
          sentBytes <= MAX_SENT_BYTES_PER_STEP,
          `${sentBytes} bytes in answer to one datagram`,
        );
        for (const [name, value] of Object.entries(stats)) {
          assert.ok(Number.isFinite(value) && value >= 0, `${name} is ${String(value)}`);
        }
      }
    } finally {
      microphone?.close();
    }

    function rtp(plain: Buffer): void {
      const headerBytes = rtpHeaderBytes(plain);
      if (headerBytes === 0) {
        return;
      }
      const sealed = Buffer.from(out.subarray(0, client.protectRtp(plain, headerBytes, 0, out)));
      const payload = receiver.unprotectRtp(sealed);
      if (payload === undefined) {
        return;
      }
      assert.ok(
        payload.equals(plain.subarray(headerBytes, headerBytes + payload.length)),
        'the decrypted packet differs from the original',
      );
      if (payload.length === 0) {
        return;
      }
      microphone ??= new AudioReceiver(new SessionSpeech(new SpeechRingReader(speechRing)));
      microphone.receive(payload, plain.readUInt16BE(2), nowMs);
    }

    function rtcp(plain: Buffer): void {
      const opened = receiver.unprotectRtcp(client.protectRtcp(plain));
      // Undefined: SRTCP accepts eight SSRCs per connection.
      if (opened === undefined) {
        return;
      }
      assert.ok(opened.equals(plain), 'the decrypted packet differs from the original');
      media.receive(opened, nowMs);
    }
  },
};
