// One way to make a werift connection, for all tests that use this independent WebRTC stack as the
// client.
import {
  RTCPeerConnection,
  RTCRtpCodecParameters,
  RTCRtpHeaderExtensionParameters,
  useAudioLevelIndication,
  useAbsSendTime,
  useFIR,
  useH264,
  useNACK,
  useOPUS,
  usePLI,
  useREMB,
  useSdesMid,
  useVP8,
  type RTCCertificate,
} from 'werift';

const PLAYOUT_DELAY = 'http://www.webrtc.org/experiments/rtp-hdrext/playout-delay';

/** What a werift connection offers; by default VP8 video with RTX, and audio, both to receive. */
export interface WeriftOptions {
  readonly codec?: 'vp8' | 'h264';
  readonly rtx?: boolean;
  readonly dataChannel?: boolean;
  readonly certificate?: RTCCertificate;
  readonly video?: boolean;
  /** false: no audio section. */
  readonly audio?: 'recvonly' | 'sendrecv' | 'sendonly' | false;
}

/** A werift connection that uses loopback only and asks no STUN server. */
export function createWeriftConnection(options: WeriftOptions = {}): RTCPeerConnection {
  const feedback = [useNACK(), usePLI(), useREMB(), useFIR()];
  const main =
    options.codec === 'h264'
      ? useH264({
          payloadType: 98,
          rtcpFeedback: feedback,
          parameters: 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f',
        })
      : useVP8({ payloadType: 96, rtcpFeedback: feedback });
  const rtx = new RTCRtpCodecParameters({
    mimeType: 'video/rtx',
    clockRate: 90_000,
    payloadType: main.payloadType + 1,
    parameters: `apt=${main.payloadType}`,
  });
  const client = new RTCPeerConnection({
    iceServers: [],
    iceUseIpv4: false,
    iceUseIpv6: false,
    iceAdditionalHostAddresses: ['127.0.0.1'],
    iceInterfaceAddresses: { udp4: '127.0.0.1' },
    bundlePolicy: 'max-bundle',
    codecs: {
      video: options.rtx === false ? [main] : [main, rtx],
      audio: [useOPUS({ payloadType: 111 })],
    },
    headerExtensions: {
      video: [
        useSdesMid(),
        useAbsSendTime(),
        new RTCRtpHeaderExtensionParameters({ uri: PLAYOUT_DELAY }),
      ],
      audio: [useSdesMid(), useAudioLevelIndication()],
    },
    ...(options.certificate === undefined ? {} : { certificates: [options.certificate] }),
  });
  if (options.video !== false) {
    client.addTransceiver('video', { direction: 'recvonly' });
  }
  if (options.audio !== false) {
    client.addTransceiver('audio', { direction: options.audio ?? 'recvonly' });
  }
  if (options.dataChannel === true) {
    client.createDataChannel('events');
  }
  for (const { connection } of client.iceTransports) {
    // werift asks a public STUN server even with an empty list.
    (connection as unknown as { stunServer: undefined }).stunServer = undefined;
  }
  return client;
}
