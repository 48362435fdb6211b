// Opus packets to send to a server.
import { native } from '../../src/native/addon.ts';

/** Packets of a tone, 20 ms each. */
export function tonePackets(count: number): Uint8Array[] {
  const encoder = new native.OpusEncoder({ sampleRate: 16_000, channels: 1, bitrate: 24_000 });
  const out = new Uint8Array(1500);
  const made = Array.from({ length: count }, (_packet, n) => {
    const pcm = Int16Array.from(
      { length: 320 },
      (_sample, i) => Math.sin((n * 320 + i) / 8) * 8000,
    );
    return out.slice(0, encoder.encode(pcm, out));
  });
  encoder.close();
  return made;
}
