// SCTP and DCEP over DTLS, after the handshake: packets with the right tags, cookies and checksums.
import assert from 'node:assert/strict';
import { MAX_PACKET_BYTES } from '../../../src/webrtc/sctp/congestion.ts';
import { crc32c } from '../../../src/webrtc/sctp/crc32c.ts';
import { DataChannels } from '../../../src/webrtc/sctp/data-channel.ts';
import { chunksOf } from '../../../src/webrtc/sctp/packets.ts';
import { readScript } from '../engine/script.ts';
import type { FuzzTarget } from '../engine/target.ts';

const INIT = 1;
const INIT_ACK = 2;
const HEARTBEAT_ACK = 5;
const COOKIE_ECHO = 10;
const HEADER_BYTES = 12;
/** Of a chunk at most. */
const PADDING_BYTES = 3;
/** Longest packet in one DTLS record. */
const MAX_RECORD_BYTES = 2048;
/**
 * Answers to one packet: COOKIE ACK, SACK, one for each channel that it opens, and what a SACK in it
 * releases. A window has 256 KiB, in packets of 1160 bytes.
 */
const MAX_ANSWERS = 300;
/** The cookie in an INIT ACK of ours: after its header and the header of the parameter. */
const COOKIE_AT = HEADER_BYTES + 4 + 16 + 4;
/** Messages that are sent back; the others are only read. */
const MAX_ECHOES = 64;
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

/**
 * A HEARTBEAT ACK returns all information of its HEARTBEAT (RFC 9260 section 3.3.6), so it is as long.
 * @param received bytes of the packet that it answers
 */
function assertWellFormed(packet: Buffer, received: number): void {
  assert.ok(chunksOf(packet) !== undefined, 'a packet of ours is malformed');
  const isEcho = packet[HEADER_BYTES] === HEARTBEAT_ACK;
  const most = isEcho ? Math.max(received, MAX_PACKET_BYTES) : MAX_PACKET_BYTES;
  assert.ok(packet.length <= most, `a packet of ours has ${packet.length} bytes`);
}

export const target: FuzzTarget = {
  maxBytes: 8 * 1024,
  budget: { leastMs: 6, per64KiBMs: 20 },
  run(data) {
    let tag = 0;
    let cookie: Buffer = Buffer.alloc(16);
    let sent: Buffer[] = [];
    let echoes = 0;
    let nowMs = 0;
    const responder = new DataChannels(
      (packet) => {
        sent.push(Buffer.from(packet));
      },
      () => nowMs,
      {
        onMessage: (channel, message, isText) => {
          assert.ok(message.length <= 65_536, 'a message is too long');
          if (++echoes <= MAX_ECHOES) {
            channel.send(message, isText);
          }
        },
      },
    );
    responder.create('ours', { isOrdered: false, maxRetransmits: 1 }).send(Buffer.alloc(3_000));
    responder.start();
    for (const { op, payload } of readScript(data)) {
      sent = [];
      if ((op & POLL) !== 0) {
        responder.poll((nowMs += 1000));
      } else if ((op & AS_IT_IS) !== 0) {
        responder.receive(Buffer.from(payload));
      } else {
        const chunks = Buffer.from(payload.subarray(0, MAX_RECORD_BYTES - HEADER_BYTES));
        if (chunks[0] === COOKIE_ECHO && chunks.length >= 4 + cookie.length) {
          cookie.copy(chunks, 4);
        }
        responder.receive(seal(chunks, chunks[0] === INIT ? 0 : tag));
      }
      assert.ok(sent.length <= MAX_ANSWERS, `${sent.length} answers to one packet`);
      for (const packet of sent) {
        assertWellFormed(packet, HEADER_BYTES + payload.length + PADDING_BYTES);
        if (packet[HEADER_BYTES] !== INIT_ACK) {
          continue;
        }
        tag = packet.readUInt32BE(HEADER_BYTES + 4);
        cookie = packet.subarray(COOKIE_AT, COOKIE_AT + cookie.length);
      }
    }
  },
};
