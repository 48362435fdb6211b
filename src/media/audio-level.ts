// The level of sound: as RTP tells it of a packet (RFC 6464), and whether it can be heard.

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

/** Standard deviation from which on sound is audible, of 32768: -50 dBFS. Rooms are quieter. */
const AUDIBLE = 104;
/** A larger mean is no offset of a converter: 1.5 % of full scale. */
const CONVERTER_OFFSET = 512;
/** Samples: 10 ms at SPEECH_RATE. */
const AUDIBLE_BLOCK = 160;

/**
 * Whether some 10 ms of the sound can be heard. The noise of a room, and an offset of the converter,
 * cannot: a microphone that stays open is not speech.
 * @param pcm PCM16 at SPEECH_RATE, of which the first `count` samples count
 */
export function isAudible(pcm: Int16Array, count: number): boolean {
  for (let start = 0; start < count; start += AUDIBLE_BLOCK) {
    const end = Math.min(count, start + AUDIBLE_BLOCK);
    let [sum, squares] = [0, 0];
    for (let i = start; i < end; i++) {
      const sample = pcm[i]!;
      sum += sample;
      squares += sample * sample;
    }
    const length = end - start;
    const isWave = squares * length - sum * sum >= (AUDIBLE * length) ** 2;
    if (isWave || Math.abs(sum) > CONVERTER_OFFSET * length) {
      return true;
    }
  }
  return false;
}
