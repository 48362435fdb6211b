// The audio level of a packet of sound, as RTP tells it (RFC 6464).

/** The level of digital silence, in -dBov: nothing is quieter. */
const SILENT = 127;
/** Set in the byte: the packet carries speech. */
const VOICE = 0x80;

/** The byte of a packet without sound or speech. */
export const NO_SOUND = SILENT;

/**
 * The byte of the header extension (RFC 6464 section 3): the root mean square of the samples below
 * the overload point, 0 to 127 in -dBov, and whether they are speech.
 * @param pcm PCM16 of one packet
 */
export function audioLevelByte(pcm: Int16Array, isSpeech: boolean): number {
  let sum = 0;
  for (let index = 0; index < pcm.length; index++) {
    const sample = pcm[index]!;
    sum += sample * sample;
  }
  const belowOverload = 10 * Math.log10((pcm.length * 32_768 ** 2) / sum);
  const level = Math.min(SILENT, Math.round(belowOverload)); // infinite for silence
  return isSpeech && level < SILENT ? VOICE | level : level;
}
