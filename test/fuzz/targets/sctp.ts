// SCTP and DCEP over DTLS, after the handshake: packets with the right tags, cookies and checksums.
import assert from 'node:assert/strict';
import { crc32c, DataChannelResponder } from '../../../src/webrtc/sctp/data-channel.ts';
import { readScript } from '../engine/script.ts';
import type { FuzzTarget } from '../engine/target.ts';

const INIT = 1;
const INIT_ACK = 2;
const COOKIE_ECHO = 10;
const HEADER_BYTES = 12;
/** Longest packet in one DTLS record. */
const MAX_PACKET_BYTES = 2048;
/**
 * Answers to one packet: COOKIE ACK, SACK, and one for each channel that it opens.
 */
const MAX_ANSWERS = 26;
/** Steps with this bit are sent unchanged. */
const AS_IT_IS = 1;
const POLL = 2;

function seal(chunks: Buffer, tag: number): Buffer {
  const packet = Buffer.concat([Buffer.alloc(HEADER_BYTES), chunks]);
  packet.writeUInt16BE(5000, 0);
  packet.writeUInt16BE(5000, 2);
  packet.writeUInt32BE(tag, 4);
  packet.writeUInt32LE(crc32c(packet), 8);
  return packet;
}

function assertWellFormed(packet: Buffer): void {
  const copy = Buffer.from(packet);
  copy.writeUInt32LE(0, 8);
  assert.equal(crc32c(copy), packet.readUInt32LE(8), 'a packet of ours has a wrong checksum');
  const length = packet.readUInt16BE(HEADER_BYTES + 2);
  assert.equal(
    HEADER_BYTES + Math.ceil(length / 4) * 4,
    packet.length,
    'a packet of ours has a wrong length',
  );
}

export const target: FuzzTarget = {
  maxBytes: 8 * 1024,
  run(data) {
    let tag = 0;
    let cookie: Buffer = Buffer.alloc(16);
    let sent: Buffer[] = [];
    const responder = new DataChannelResponder((packet) => {
      sent.push(Buffer.from(packet));
    });
    let nowMs = 0;
    for (const { op, payload } of readScript(data)) {
      sent = [];
      if ((op & POLL) !== 0) {
        responder.poll((nowMs += 1000));
      } else if ((op & AS_IT_IS) !== 0) {
        responder.receive(Buffer.from(payload));
      } else {
        const chunks = Buffer.from(payload.subarray(0, MAX_PACKET_BYTES - HEADER_BYTES));
        if (chunks[0] === COOKIE_ECHO && chunks.length >= 4 + cookie.length) {
          cookie.copy(chunks, 4);
        }
        responder.receive(seal(chunks, chunks[0] === INIT ? 0 : tag));
      }
      assert.ok(sent.length <= MAX_ANSWERS, `${sent.length} answers to one packet`);
      for (const packet of sent) {
        assertWellFormed(packet);
        if (packet[HEADER_BYTES] !== INIT_ACK) {
          continue;
        }
        tag = packet.readUInt32BE(HEADER_BYTES + 4);
        cookie = packet.subarray(-cookie.length);
      }
    }
  },
};
