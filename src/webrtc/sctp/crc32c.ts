// The checksum of SCTP packets.

/** For the reflected polynomial 0x82f63b78. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) {
    value = (value & 1) === 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  }
  return value;
});

/** Place and size of the checksum in the common header. It counts as zero. */
const CHECKSUM = { from: 8, to: 12 } as const;

/** CRC-32C of a packet (RFC 9260 appendix A), whatever its checksum field contains. */
export function crc32c(packet: Uint8Array): number {
  let value = 0xffffffff;
  for (let index = 0; index < packet.length; index++) {
    const isChecksum = index >= CHECKSUM.from && index < CHECKSUM.to;
    const byte = isChecksum ? 0 : (packet[index] ?? 0);
    value = (TABLE[(value ^ byte) & 255] ?? 0) ^ (value >>> 8);
  }
  return (value ^ 0xffffffff) >>> 0;
}
