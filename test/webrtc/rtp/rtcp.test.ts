// RTCP: exact fields and clocks, and robust parsing of feedback.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import * as fc from 'fast-check';
import { RtcpPacketConverter, RtcpSourceDescriptionPacket, RtcpSrPacket } from 'werift';
import {
  bye,
  compactNtp,
  parseRtcp,
  senderReport,
  writeNtp,
  type RtcpHandler,
} from '../../../src/webrtc/rtp/rtcp.ts';

class Recorder implements RtcpHandler {
  readonly messages: unknown[] = [];
  onReport(...report: readonly number[]): void {
    this.messages.push(['report', ...report]);
  }
  onNack(ssrc: number, sequenceNumber: number): void {
    this.messages.push(['nack', ssrc, sequenceNumber]);
  }
  onPli(ssrc: number): void {
    this.messages.push(['pli', ssrc]);
  }
  onFir(ssrc: number, sequenceNumber: number): void {
    this.messages.push(['fir', ssrc, sequenceNumber]);
  }
  onRemb(bitsPerSecond: number): void {
    this.messages.push(['remb', bitsPerSecond]);
  }
  onBye(): void {
    this.messages.push(['bye']);
  }
}

const messagesIn = (hex: string): unknown[] => {
  const recorder = new Recorder();
  assert.equal(parseRtcp(Buffer.from(hex.replaceAll(' ', ''), 'hex'), recorder), true);
  return recorder.messages;
};

test('NTP time is exact to the microsecond; compact NTP is its middle 32 bits', () => {
  for (const wallMs of [0, 1_784_600_000_123.25, 4_102_444_799_999.5, 2_085_978_496_000]) {
    const out = Buffer.alloc(8);
    writeNtp(out, 0, wallMs);
    const unixMs =
      (out.readUInt32BE(0) - 2_208_988_800 + (out.readUInt32BE(0) < 2_208_988_800 ? 2 ** 32 : 0)) *
        1000 +
      (out.readUInt32BE(4) / 2 ** 32) * 1000;
    assert.ok(Math.abs(unixMs - wallMs) < 0.001, `${unixMs} ${wallMs}`);
    const middle = out.readUInt32BE(2);
    assert.ok(Math.abs(compactNtp(wallMs) - middle) <= 1, `${compactNtp(wallMs)} ${middle}`);
  }
});

test('an independent parser reads our sender report, SDES and BYE', () => {
  const [report, description] = RtcpPacketConverter.deSerialize(
    senderReport(
      { ssrc: 0xfedcba98, rtpTimestamp: 0x89abcdef, packets: 12, octets: 3_456 },
      1_784_600_000_500,
      'me@here',
    ),
  );
  assert.ok(report instanceof RtcpSrPacket && description instanceof RtcpSourceDescriptionPacket);
  assert.equal(report.ssrc, 0xfedcba98);
  assert.equal(report.senderInfo.rtpTimestamp, 0x89abcdef);
  assert.equal(report.senderInfo.packetCount, 12);
  assert.equal(report.senderInfo.octetCount, 3_456);
  assert.equal(report.senderInfo.ntpTimestamp & 0xffff_ffffn, 2n ** 31n);
  assert.equal(description.chunks[0]?.items[0]?.text, 'me@here');
  const recorder = new Recorder();
  assert.ok(parseRtcp(bye([1, 2]), recorder));
  assert.deepEqual(recorder.messages, [['bye']]);
});

test('each feedback message is parsed', () => {
  assert.deepEqual(messagesIn('81cd0003 00000001 000000aa fffe8001'), [
    ['nack', 0xaa, 0xfffe],
    ['nack', 0xaa, 0xffff],
    ['nack', 0xaa, 0x000e],
  ]);
  assert.deepEqual(messagesIn('81ce0002 00000001 000000aa'), [['pli', 0xaa]]);
  assert.deepEqual(messagesIn('84ce0004 00000001 00000000 000000aa 07000000'), [['fir', 0xaa, 7]]);
  assert.deepEqual(messagesIn('8fce0005 00000001 00000000 52454d42 010fffff 000000aa'), [
    ['remb', 0x3ffff * 8],
  ]);
  assert.deepEqual(
    messagesIn('81c90007 00000001 000000aa 40fffffe 00000010 00000020 00010000 00008000'),
    [['report', 0xaa, 0.25, -2, 16, 32, 65_536, 32_768]],
  );
});

test('garbage is rejected or ignored; its cost is bounded by its length', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 1_200 }),
      fc.constantFrom(200, 201, 205, 206),
      (bytes, type) => {
        const data = Buffer.from(bytes);
        if (data.length > 4) {
          data[0] = 0x80 | ((data[0] ?? 0) & 31);
          data[1] = type;
          if ((data[2] ?? 0) < 128) {
            data.writeUInt16BE(Math.floor(data.length / 4) - 1, 2);
          }
        }
        const recorder = new Recorder();
        parseRtcp(data, recorder);
        assert.ok(recorder.messages.length <= data.length * 5);
      },
    ),
    { seed: 11, numRuns: 2_000 },
  );
});
