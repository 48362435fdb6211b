// Messages on a session's WebSocket, and the speech in them on its way to the worker.
import assert from 'node:assert/strict';
import { PcmIngress } from '../../../src/front/sessions/pcm-ingress.ts';
import { parseClientMessage } from '../../../src/front/sessions/wire-protocol.ts';
import { SpeechRingReader } from '../../../src/link/speech-ring.ts';
import { readScript } from '../engine/script.ts';
import type { FuzzTarget } from '../engine/target.ts';

/** A step with this bit is a text message; with the next one the worker reads before it. */
const TEXT = 1;
const READ = 2;
const MAX_PONG_CHARS = 300;
// One speech ring (2 MB) serves all inputs; it is emptied after each.
const ingress = new PcmIngress();
const reader = new SpeechRingReader(ingress.memory);
const heard = new Int16Array(4096);

export const target: FuzzTarget = {
  // JSON.parse takes 5 ms for 64 KiB of opening brackets; it is linear.
  budget: { leastMs: 2, per64KiBMs: 10 },
  run(data) {
    let pushed = 0;
    let read = 0;
    for (const { op, payload } of readScript(data)) {
      if ((op & READ) !== 0) {
        const count = Math.min(reader.length, heard.length);
        read += reader.read(heard, 0, count);
        ingress.pump(1);
      }
      const message = new Uint8Array(payload).buffer;
      const parsed = parseClientMessage(message, (op & TEXT) === 0);
      if (parsed.kind === 'ping') {
        assert.ok(parsed.payload.length <= MAX_PONG_CHARS);
      }
      if (parsed.kind === 'offer') {
        assert.equal(typeof parsed.sdp, 'string');
      }
      if (parsed.kind === 'skip' || parsed.kind === 'playImmediate') {
        ingress.flush(1);
        reader.takeFlush();
        pushed = 0;
        read = 0;
      }
      if (parsed.kind !== 'audio' && parsed.kind !== 'playImmediate') {
        continue;
      }
      assert.ok(parsed.bytes.buffer === message && parsed.bytes.length <= payload.length);
      assert.equal(ingress.push(parsed.bytes, 1), 0, 'speech was dropped');
      pushed += parsed.bytes.length;
      assert.ok(
        Math.abs(reader.length + read - pushed / 2) <= 64,
        `${reader.length} samples of ${pushed} bytes`,
      );
    }
    ingress.flush(1);
    reader.takeFlush();
  },
};
