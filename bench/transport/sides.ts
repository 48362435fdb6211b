// The two stacks as senders behind one small interface: ours as a worker uses it, and werift.
import { randomBytes } from 'node:crypto';
import { MediaStreamTrack, RtpHeader, type RTCRtpSender } from 'werift';
import { monotonicMs } from '../../src/base/time.ts';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { createEndpoint } from '../../src/webrtc/endpoint.ts';
import { createConnection } from '../peers/connection.ts';
import { FRAME_BYTES, OPUS_BYTES, PACKETS_PER_FRAME, type Stack } from './protocol.ts';

export interface SendingPeer {
  answer(offer: string): Promise<string>;
  readonly connected: Promise<void>;
  /** Frame `index` of the media, 1/30 s each. @returns RTP packets sent */
  sendVideo(index: number): number;
  /** Packet `index` of the sound, 20 ms each. @returns RTP packets sent */
  sendAudio(index: number): number;
  /** Resolves when what was sent is out of the stack's hands. */
  flush(): Promise<void>;
  /** What has to be done now and then. */
  poll(): void;
  close(): Promise<void>;
}

export interface Side {
  createPeer(): SendingPeer;
}

const frame = randomBytes(FRAME_BYTES);
const opus = randomBytes(OPUS_BYTES);

async function ours(): Promise<Side> {
  const endpoint = await createEndpoint({
    bindAddress: '127.0.0.1',
    port: 0,
    announcedAddresses: [],
  });
  const options = { sessionId: 'bench', minBitrateKbps: 150, maxBitrateKbps: 1_500 };
  return {
    createPeer() {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      promise.catch(() => {}); // who waits for it hears of it; nobody may
      const peer = endpoint.createPeer(options, {
        onConnected: () => {
          resolve();
        },
        onClosed: (reason) => {
          reject(new Error(`the peer was closed: ${reason}`));
        },
        onKeyFrameRequest() {},
        onTargetBitrate() {},
        onAudio() {},
      });
      return {
        connected: promise,
        answer: (offer) => peer.answer(parseOffer(offer)),
        sendVideo: (index) => {
          const mediaMs = (index * 1_000) / 30;
          return peer.sendVideo(frame, frame.length, index === 0, mediaMs, monotonicMs());
        },
        sendAudio: (index) => {
          const isFirst = index === 0;
          return peer.sendAudio(opus, opus.length, index * 20, monotonicMs(), isFirst);
        },
        flush: () => new Promise(setImmediate), // the socket finishes its sends
        poll: () => {
          peer.poll(monotonicMs());
        },
        close: () => peer.close(),
      };
    },
  };
}

/** Payloads of one frame with VP8 payload descriptors (RFC 7741 section 4.2), cut beforehand. */
const weriftPayloads = Array.from({ length: PACKETS_PER_FRAME }, (_, place) => {
  const part = Math.ceil(FRAME_BYTES / PACKETS_PER_FRAME);
  const head = Buffer.from([place === 0 ? 0x90 : 0x80, 0x80, 0x80, 0x00]);
  return Buffer.concat([head, frame.subarray(place * part, (place + 1) * part)]);
});

interface HeaderExtension {
  readonly id: number;
  readonly payload: Buffer;
}

/** The mid in a header extension (RFC 8843 section 15), which werift's own sender adds as well. */
function midExtensionOf(sender: RTCRtpSender): HeaderExtension[] {
  // Known after the answer, and private there.
  const { headerExtensions, mid = '' } = sender as unknown as {
    headerExtensions: readonly { readonly id: number; readonly uri: string }[];
    mid?: string;
  };
  const found = headerExtensions.find(({ uri }) => uri.endsWith('sdes:mid'));
  return found === undefined ? [] : [{ id: found.id, payload: Buffer.from(mid) }];
}

/**
 * werift by the cheapest way that its public interface has: `dtlsTransport.sendRtp`. So it cuts no
 * frames, keeps nothing for retransmission and counts nothing; it ciphers and sends.
 */
function werift(): Side {
  return {
    createPeer() {
      const connection = createConnection('vp8', '127.0.0.1', 'sendonly');
      const senders: Partial<Record<'audio' | 'video', RTCRtpSender>> = {};
      for (const { kind, sender } of connection.getTransceivers()) {
        void sender.replaceTrack(new MediaStreamTrack({ kind }));
        senders[kind as 'audio' | 'video'] = sender;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      connection.connectionStateChange.subscribe((state) => {
        if (state === 'connected') {
          resolve();
        }
      });
      const midExtensions: Partial<Record<'audio' | 'video', HeaderExtension[]>> = {};
      let sending: Promise<unknown>[] = [];
      const sequenceNumbers = { audio: 0, video: 0 };
      const send = (
        kind: 'audio' | 'video',
        payload: Buffer,
        timestamp: number,
        marker: boolean,
      ): void => {
        const sender = senders[kind]!;
        const extensions = (midExtensions[kind] ??= midExtensionOf(sender));
        sequenceNumbers[kind] = (sequenceNumbers[kind] + 1) & 0xffff;
        const header = new RtpHeader({
          sequenceNumber: sequenceNumbers[kind],
          timestamp: timestamp >>> 0,
          marker,
          payloadType: sender.codec!.payloadType,
          ssrc: sender.ssrc,
          extension: extensions.length > 0,
          extensions,
        });
        sending.push(sender.dtlsTransport.sendRtp(payload, header));
      };
      return {
        connected: promise,
        async answer(offer) {
          await connection.setRemoteDescription({ type: 'offer', sdp: offer });
          await connection.setLocalDescription(await connection.createAnswer());
          return connection.localDescription!.sdp;
        },
        sendVideo(index) {
          weriftPayloads.forEach((payload, place) => {
            send('video', payload, index * 3_000, place === PACKETS_PER_FRAME - 1);
          });
          return PACKETS_PER_FRAME;
        },
        sendAudio(index) {
          send('audio', opus, index * 960, index === 0);
          return 1;
        },
        async flush() {
          const all = sending;
          sending = [];
          await Promise.all(all);
        },
        poll() {},
        close: () => connection.close(),
      };
    },
  };
}

export const openSide = (stack: Stack): Promise<Side> =>
  stack === 'ours' ? ours() : Promise.resolve(werift());
