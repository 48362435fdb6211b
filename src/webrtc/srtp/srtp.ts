// SRTP and SRTCP (RFC 3711, RFC 7714): derives keys, encrypts and decrypts the packets of one DTLS
// association.
import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto';
import { ReplayWindow } from './replay-window.ts';

/**
 * Protection profiles (RFC 7714 section 14.2, RFC 5764 section 4.1.2), the preferred one first:
 * AEAD_AES_128_GCM takes one pass, AES128_CM_HMAC_SHA1_80 two.
 */
export const SRTP_PROFILES = [0x0007, 0x0001] as const;
/** One of SRTP_PROFILES. */
export type SrtpProfile = (typeof SRTP_PROFILES)[number];
const GCM: SrtpProfile = 0x0007;

/** Length of the master salt. */
export const saltBytes = (profile: SrtpProfile): number => (profile === GCM ? 12 : 14);
/** Length of the master key. */
export const KEY_BYTES = 16;

/** Length of the authentication tag, of SRTP and of SRTCP. */
const TAG_BYTES: Readonly<Record<SrtpProfile, number>> = { 0x0007: 16, 0x0001: 10 };
const AUTH_KEY_BYTES = 20;
/** Received SSRCs per direction and kind. A client sends one audio stream. */
const MAX_STREAMS = 8;
/** Key derivation labels of SRTP; those of SRTCP follow (RFC 3711 section 4.3.2). */
const RTP_LABEL = 0;
const RTCP_LABEL = 3;

/** Derives a session key from a master key (RFC 3711 section 4.3), with key derivation rate 0. */
function deriveKey(masterKey: Buffer, masterSalt: Buffer, label: number, length: number): Buffer {
  const iv = Buffer.alloc(16);
  // RFC 7714 section 11: the 12-byte salt of GCM is padded at the end, with two zero bytes.
  masterSalt.copy(iv, 0);
  iv[7] = (iv[7] ?? 0) ^ label;
  return createCipheriv('aes-128-ctr', masterKey, iv).update(Buffer.alloc(length));
}

/** Session keys of one direction, for SRTP or SRTCP. */
interface DirectionKeys {
  readonly key: Buffer;
  readonly salt: Buffer;
  readonly auth: Buffer;
}

const directionKeys = (
  profile: SrtpProfile,
  key: Buffer,
  salt: Buffer,
  firstLabel: number,
): DirectionKeys => ({
  key: deriveKey(key, salt, firstLabel, KEY_BYTES),
  auth: deriveKey(key, salt, firstLabel + 1, AUTH_KEY_BYTES),
  salt: deriveKey(key, salt, firstLabel + 2, saltBytes(profile)),
});

/**
 * Encrypts what we send. One instance per association. The caller keeps the rollover counter of
 * each stream.
 */
export class SrtpSender {
  readonly #profile: SrtpProfile;
  readonly #rtp: DirectionKeys;
  readonly #rtcp: DirectionKeys;
  readonly #iv: Buffer;
  readonly #word = Buffer.alloc(4);
  #rtcpIndex = 0;

  constructor(profile: SrtpProfile, masterKey: Buffer, masterSalt: Buffer) {
    this.#profile = profile;
    this.#rtp = directionKeys(profile, masterKey, masterSalt, RTP_LABEL);
    this.#rtcp = directionKeys(profile, masterKey, masterSalt, RTCP_LABEL);
    this.#iv = Buffer.alloc(profile === GCM ? 12 : 16);
  }

  /**
   * Encrypts an RTP packet.
   * @param plain header of `headerBytes`, then payload
   * @param rollover rollover counter of the packet (RFC 3711 section 3.3.1)
   * @param out receives the SRTP packet; must have room for 16 bytes more than `plain`
   * @returns bytes written
   */
  protectRtp(plain: Buffer, headerBytes: number, rollover: number, out: Buffer): number {
    const ssrc = plain.readUInt32BE(8);
    const sequence = plain.readUInt16BE(2);
    const end = plain.length;
    plain.copy(out, 0, 0, headerBytes);
    const payload = plain.subarray(headerBytes);
    if (this.#profile === GCM) {
      gcmIv(this.#iv, this.#rtp.salt, ssrc, rollover, sequence);
      const cipher = createCipheriv('aes-128-gcm', this.#rtp.key, this.#iv);
      cipher.setAAD(plain.subarray(0, headerBytes));
      cipher.update(payload).copy(out, headerBytes);
      cipher.final();
      cipher.getAuthTag().copy(out, end);
      return end + 16;
    }
    cmIv(this.#iv, this.#rtp.salt, ssrc, rollover * 65536 + sequence);
    createCipheriv('aes-128-ctr', this.#rtp.key, this.#iv).update(payload).copy(out, headerBytes);
    this.#word.writeUInt32BE(rollover, 0);
    createHmac('sha1', this.#rtp.auth)
      .update(out.subarray(0, end))
      .update(this.#word)
      .digest()
      .copy(out, end, 0, 10);
    return end + 10;
  }

  /** Encrypts a compound RTCP packet. */
  protectRtcp(plain: Buffer): Buffer {
    const index = (this.#rtcpIndex = (this.#rtcpIndex + 1) % 0x8000_0000);
    const ssrc = plain.readUInt32BE(4);
    const header = plain.subarray(0, 8);
    const body = plain.subarray(8);
    const trailer = Buffer.alloc(4);
    trailer.writeUInt32BE((index | 0x8000_0000) >>> 0, 0);
    if (this.#profile === GCM) {
      gcmIv(this.#iv, this.#rtcp.salt, ssrc, index >>> 16, index & 0xffff);
      const cipher = createCipheriv('aes-128-gcm', this.#rtcp.key, this.#iv);
      cipher.setAAD(Buffer.concat([header, trailer]));
      const sealed = cipher.update(body);
      cipher.final();
      return Buffer.concat([header, sealed, cipher.getAuthTag(), trailer]);
    }
    cmIv(this.#iv, this.#rtcp.salt, ssrc, index);
    const sealed = createCipheriv('aes-128-ctr', this.#rtcp.key, this.#iv).update(body);
    const covered = Buffer.concat([header, sealed, trailer]);
    return Buffer.concat([
      covered,
      createHmac('sha1', this.#rtcp.auth).update(covered).digest().subarray(0, 10),
    ]);
  }
}

interface InboundStream {
  rollover: number;
  lastSequence: number;
  readonly window: ReplayWindow;
}

/**
 * Decrypts what we receive. Returns undefined for a packet that is not authentic, a replay, or
 * malformed.
 */
export class SrtpReceiver {
  readonly #profile: SrtpProfile;
  readonly #rtp: DirectionKeys;
  readonly #rtcp: DirectionKeys;
  readonly #iv: Buffer;
  readonly #word = Buffer.alloc(4);
  readonly #rtpStreams = new Map<number, InboundStream>();
  readonly #rtcpWindows = new Map<number, ReplayWindow>();

  constructor(profile: SrtpProfile, masterKey: Buffer, masterSalt: Buffer) {
    this.#profile = profile;
    this.#rtp = directionKeys(profile, masterKey, masterSalt, RTP_LABEL);
    this.#rtcp = directionKeys(profile, masterKey, masterSalt, RTCP_LABEL);
    this.#iv = Buffer.alloc(profile === GCM ? 12 : 16);
  }

  /** @returns the payload of an SRTP packet, without header, extensions and padding */
  unprotectRtp(data: Buffer): Buffer | undefined {
    const headerBytes = rtpHeaderBytes(data);
    const tag = TAG_BYTES[this.#profile];
    if (headerBytes === 0 || data.length < headerBytes + tag) {
      return undefined;
    }
    const ssrc = data.readUInt32BE(8);
    const sequence = data.readUInt16BE(2);
    const known = this.#rtpStreams.get(ssrc);
    if (known === undefined && this.#rtpStreams.size >= MAX_STREAMS) {
      return undefined;
    }
    const stream = known ?? { rollover: 0, lastSequence: sequence, window: new ReplayWindow() };
    // RFC 3711 section 3.3.1: the rollover counter that puts this packet closest to the last one.
    const difference = sequence - stream.lastSequence;
    const rollover =
      difference > 32768
        ? stream.rollover - 1
        : difference < -32768
          ? stream.rollover + 1
          : stream.rollover;
    if (rollover < 0) {
      return undefined;
    }
    const index = rollover * 65536 + sequence;
    if (!stream.window.isNew(index)) {
      return undefined;
    }
    const payload = this.#openRtp(data, headerBytes, ssrc, rollover, sequence);
    if (payload === undefined) {
      return undefined;
    }
    if (known === undefined) {
      this.#rtpStreams.set(ssrc, stream);
    }
    stream.window.accept(index);
    if (index >= stream.rollover * 65536 + stream.lastSequence) {
      stream.rollover = rollover;
      stream.lastSequence = sequence;
    }
    const padding = ((data[0] ?? 0) & 0x20) !== 0 ? (payload[payload.length - 1] ?? 0) : 0;
    return padding > payload.length ? undefined : payload.subarray(0, payload.length - padding);
  }

  #openRtp(
    data: Buffer,
    headerBytes: number,
    ssrc: number,
    rollover: number,
    sequence: number,
  ): Buffer | undefined {
    const end = data.length - TAG_BYTES[this.#profile];
    const sealed = data.subarray(headerBytes, end);
    if (this.#profile === GCM) {
      gcmIv(this.#iv, this.#rtp.salt, ssrc, rollover, sequence);
      return openGcm(
        this.#rtp.key,
        this.#iv,
        data.subarray(0, headerBytes),
        sealed,
        data.subarray(end),
      );
    }
    this.#word.writeUInt32BE(rollover, 0);
    const expected = createHmac('sha1', this.#rtp.auth)
      .update(data.subarray(0, end))
      .update(this.#word)
      .digest()
      .subarray(0, 10);
    if (!timingSafeEqual(expected, data.subarray(end))) {
      return undefined;
    }
    cmIv(this.#iv, this.#rtp.salt, ssrc, rollover * 65536 + sequence);
    return createCipheriv('aes-128-ctr', this.#rtp.key, this.#iv).update(sealed);
  }

  /** @returns the compound RTCP packet of an SRTCP packet */
  unprotectRtcp(data: Buffer): Buffer | undefined {
    const gcm = this.#profile === GCM;
    const tag = TAG_BYTES[this.#profile];
    if (data.length < 8 + 4 + tag) {
      return undefined;
    }
    const trailerAt = gcm ? data.length - 4 : data.length - tag - 4;
    const trailer = data.readUInt32BE(trailerAt);
    // E flag: unencrypted SRTCP is not negotiated.
    if ((trailer & 0x8000_0000) === 0) {
      return undefined;
    }
    const index = trailer & 0x7fff_ffff;
    const ssrc = data.readUInt32BE(4);
    const known = this.#rtcpWindows.get(ssrc);
    if (known === undefined && this.#rtcpWindows.size >= MAX_STREAMS) {
      return undefined;
    }
    if (known !== undefined && !known.isNew(index)) {
      return undefined;
    }
    const header = data.subarray(0, 8);
    let body: Buffer | undefined;
    if (gcm) {
      gcmIv(this.#iv, this.#rtcp.salt, ssrc, index >>> 16, index & 0xffff);
      const tagAt = trailerAt - 16;
      body = openGcm(
        this.#rtcp.key,
        this.#iv,
        Buffer.concat([header, data.subarray(trailerAt)]),
        data.subarray(8, tagAt),
        data.subarray(tagAt, trailerAt),
      );
    } else {
      const expected = createHmac('sha1', this.#rtcp.auth)
        .update(data.subarray(0, trailerAt + 4))
        .digest()
        .subarray(0, 10);
      if (!timingSafeEqual(expected, data.subarray(trailerAt + 4))) {
        return undefined;
      }
      cmIv(this.#iv, this.#rtcp.salt, ssrc, index);
      body = createCipheriv('aes-128-ctr', this.#rtcp.key, this.#iv).update(
        data.subarray(8, trailerAt),
      );
    }
    if (body === undefined) {
      return undefined;
    }
    const window = known ?? new ReplayWindow();
    if (known === undefined) {
      this.#rtcpWindows.set(ssrc, window);
    }
    window.accept(index);
    return Buffer.concat([header, body]);
  }
}

/**
 * Length of an RTP header with CSRCs and extension; 0 if the packet is shorter than its header
 * says.
 */
export function rtpHeaderBytes(data: Buffer): number {
  if (data.length < 12) {
    return 0;
  }
  const first = data[0] ?? 0;
  let bytes = 12 + (first & 15) * 4;
  if ((first & 0x10) !== 0) {
    if (data.length < bytes + 4) {
      return 0;
    }
    bytes += 4 + data.readUInt16BE(bytes + 2) * 4;
  }
  return bytes <= data.length ? bytes : 0;
}

function openGcm(
  key: Buffer,
  iv: Buffer,
  aad: Buffer,
  sealed: Buffer,
  tag: Buffer,
): Buffer | undefined {
  const decipher = createDecipheriv('aes-128-gcm', key, iv, { authTagLength: 16 });
  decipher.setAAD(aad);
  decipher.setAuthTag(tag);
  const plain = decipher.update(sealed);
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  return plain;
}

/**
 * RFC 7714 sections 8.1 and 9.1: 00 00 SSRC ROC SEQ, XOR salt. For SRTCP the index replaces ROC and
 * SEQ.
 */
function gcmIv(iv: Buffer, salt: Buffer, ssrc: number, high: number, low: number): void {
  iv[0] = salt[0] ?? 0;
  iv[1] = salt[1] ?? 0;
  iv.writeUInt32BE((ssrc ^ salt.readUInt32BE(2)) >>> 0, 2);
  iv.writeUInt32BE((high ^ salt.readUInt32BE(6)) >>> 0, 6);
  iv.writeUInt16BE(low ^ salt.readUInt16BE(10), 10);
}

/**
 * RFC 3711 section 4.1.1: salt * 2^16 XOR SSRC * 2^64 XOR index * 2^16; `index` has up to 48 bits.
 */
function cmIv(iv: Buffer, salt: Buffer, ssrc: number, index: number): void {
  salt.copy(iv, 0, 0, 14);
  iv[14] = 0;
  iv[15] = 0;
  iv.writeUInt32BE((iv.readUInt32BE(4) ^ ssrc) >>> 0, 4);
  iv.writeUInt32BE((iv.readUInt32BE(8) ^ Math.floor(index / 65536)) >>> 0, 8);
  iv.writeUInt16BE(iv.readUInt16BE(12) ^ (index & 0xffff), 12);
}
