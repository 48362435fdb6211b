// Coded frames out of RTP payloads, written so that ffmpeg can read them: IVF for VP8, Annex B for
// H.264.
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { PICTURE_SIZE } from '../../src/media/picture.ts';
import { type ArrivedFrame, vp8DescriptorBytes } from './frames.ts';

export const writeBitstream = (codec: VideoCodec, frames: readonly ArrivedFrame[]): Buffer =>
  codec === 'vp8'
    ? writeIvf(
        frames.map(({ payloads }) =>
          Buffer.concat(payloads.map((payload) => payload.subarray(vp8DescriptorBytes(payload)))),
        ),
      )
    : Buffer.concat(frames.map(toAnnexB));

function writeIvf(frames: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(32);
  header.write('DKIF', 0);
  header.writeUInt16LE(32, 6);
  header.write('VP80', 8);
  header.writeUInt16LE(PICTURE_SIZE, 12);
  header.writeUInt16LE(PICTURE_SIZE, 14);
  header.writeUInt32LE(30, 16);
  header.writeUInt32LE(1, 20);
  header.writeUInt32LE(frames.length, 24);
  return Buffer.concat([
    header,
    ...frames.flatMap((frame, index) => {
      const entry = Buffer.alloc(12);
      entry.writeUInt32LE(frame.length, 0);
      entry.writeUInt32LE(index, 4);
      return [entry, frame];
    }),
  ]);
}

const START_CODE = Buffer.from([0, 0, 0, 1]);

/** Single units, STAP-A and FU-A (RFC 6184 sections 5.6 to 5.8). */
function toAnnexB({ payloads }: ArrivedFrame): Buffer {
  const out: Buffer[] = [];
  for (const payload of payloads) {
    const type = payload[0]! & 0x1f;
    if (type === 24) {
      for (let at = 1; at + 2 <= payload.length;) {
        const length = payload.readUInt16BE(at);
        out.push(START_CODE, payload.subarray(at + 2, at + 2 + length));
        at += 2 + length;
      }
    } else if (type === 28) {
      if (payload[1]! & 0x80) {
        out.push(START_CODE, Buffer.from([(payload[0]! & 0xe0) | (payload[1]! & 0x1f)]));
      }
      out.push(payload.subarray(2));
    } else {
      out.push(START_CODE, payload);
    }
  }
  return Buffer.concat(out);
}
