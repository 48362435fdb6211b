// werift's peer connection as the clients of the bench use it.
import {
  type MediaStreamTrack,
  ReceiverEstimatedMaxBitrate,
  RTCPeerConnection,
  RTCRtpCodecParameters,
  type RTCRtpReceiver,
  RtcpPayloadSpecificFeedback,
  useFIR,
  useH264,
  useNACK,
  useOPUS,
  usePLI,
  useREMB,
  useSdesMid,
  useVP8,
} from 'werift';
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { AUDIO_RATE, VIDEO_CLOCK } from '../../src/media/timeline.ts';

/**
 * A werift connection for video and sound that asks no STUN server; for a loopback host, on
 * loopback alone.
 */
export function createConnection(
  codec: VideoCodec,
  host: string,
  direction: 'recvonly' | 'sendonly' = 'recvonly',
  microphone?: MediaStreamTrack,
): RTCPeerConnection {
  const rtcpFeedback = [useNACK(), usePLI(), useREMB(), useFIR()];
  const video =
    codec === 'vp8'
      ? useVP8({ payloadType: 96, rtcpFeedback })
      : useH264({
          payloadType: 98,
          rtcpFeedback,
          parameters: 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f',
        });
  const rtx = new RTCRtpCodecParameters({
    mimeType: 'video/rtx',
    clockRate: VIDEO_CLOCK,
    payloadType: video.payloadType + 1,
    parameters: `apt=${video.payloadType}`,
  });
  const isLocal = /^(localhost|127\.|\[?::1)/.test(host);
  const pc = new RTCPeerConnection({
    iceServers: [],
    bundlePolicy: 'max-bundle',
    codecs: { video: [video, rtx], audio: [useOPUS({ payloadType: 111, clockRate: AUDIO_RATE })] },
    headerExtensions: { video: [useSdesMid()], audio: [useSdesMid()] },
    ...(isLocal
      ? {
          iceUseIpv4: false,
          iceUseIpv6: false,
          iceAdditionalHostAddresses: ['127.0.0.1'],
          iceInterfaceAddresses: { udp4: '127.0.0.1' },
        }
      : { iceUseIpv6: false }),
  });
  pc.addTransceiver(
    microphone ?? 'audio',
    microphone === undefined ? { direction } : { direction: 'sendrecv' },
  );
  pc.addTransceiver('video', { direction });
  // werift asks a public STUN server even when given none (measured): nothing of ours leaves the
  // machine unasked.
  for (const { connection } of pc.iceTransports) {
    (connection as { stunServer: unknown }).stunServer = undefined;
  }
  return pc;
}

/**
 * Tells the sender the bitrate that may arrive: REMB (draft-alvestrand-rmcat-remb).
 * @param bitrate bits per second
 */
export function sendEstimate(receiver: RTCRtpReceiver, ssrc: number, bitrate: number): void {
  const feedback = new ReceiverEstimatedMaxBitrate({
    senderSsrc: receiver.rtcpSsrc,
    mediaSsrc: 0,
    ssrcNum: 1,
    ssrcFeedbacks: [ssrc],
    ...mantissa(bitrate),
  });
  receiver.dtlsTransport?.sendRtcp([new RtcpPayloadSpecificFeedback({ feedback })]).catch(() => {});
}

/** REMB's floating point: 18 bits of mantissa (draft-alvestrand-rmcat-remb section 2.2). */
function mantissa(bitrate: number): { brExp: number; brMantissa: number; bitrate: bigint } {
  let brExp = 0;
  let brMantissa = Math.floor(bitrate);
  while (brMantissa >= 1 << 18) {
    brMantissa >>>= 1;
    brExp++;
  }
  return { brExp, brMantissa, bitrate: BigInt(Math.floor(bitrate)) };
}
