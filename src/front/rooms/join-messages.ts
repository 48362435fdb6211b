// The parameter join_request with which we join a room of a LiveKit server.
import {
  AddTrackRequest,
  ClientInfo,
  ClientInfo_SDK,
  ConnectionSettings,
  JoinRequest,
  ReconnectReason,
  type SessionDescription,
  SimulcastCodec,
  TrackSource,
  TrackType,
  VideoLayer,
  VideoQuality,
  WrappedJoinRequest,
} from '@livekit/protocol';
import type { TrackNames } from '../../link/messages.ts';
import type { VideoCodec } from '../../media/coded-frame.ts';
import type { PictureSize } from '../../media/face-look.ts';
import { scaledBitrate } from '../../media/picture.ts';

/** What we say we are. Protocol 17 has the single peer connection. */
const clientInfo = (): ClientInfo =>
  new ClientInfo({ sdk: ClientInfo_SDK.NODE, version: '2.13.0', protocol: 17, os: 'linux' });

/** What the server reserves for the video until it has measured it. */
const VIDEO_BITRATE_KBPS = 600;

/** Joins with our offer and both tracks, in one round trip. Nothing is subscribed to. */
export function publishRequest(
  publisherOffer: SessionDescription,
  { streamId, audioTrackId, videoTrackId }: TrackNames,
  codec: VideoCodec,
  size: PictureSize,
): string {
  const audio = new AddTrackRequest({
    cid: audioTrackId,
    name: 'avatar_audio',
    type: TrackType.AUDIO,
    source: TrackSource.MICROPHONE,
    stream: streamId,
    disableRed: true,
  });
  const video = new AddTrackRequest({
    cid: videoTrackId,
    name: 'avatar_video',
    type: TrackType.VIDEO,
    source: TrackSource.CAMERA,
    stream: streamId,
    disableRed: true,
    ...size,
    layers: [
      new VideoLayer({
        quality: VideoQuality.HIGH,
        ...size,
        bitrate: 1000 * scaledBitrate(VIDEO_BITRATE_KBPS, size),
      }),
    ],
    simulcastCodecs: [new SimulcastCodec({ codec, cid: videoTrackId })],
  });
  return wrapped(
    new JoinRequest({
      clientInfo: clientInfo(),
      connectionSettings: new ConnectionSettings({ autoSubscribe: false }),
      addTrackRequests: [audio, video],
      publisherOffer,
    }),
  );
}

/** Continues on a new signal connection. */
export const resumeRequest = (participantSid: string): string =>
  wrapped(
    new JoinRequest({
      clientInfo: clientInfo(),
      connectionSettings: new ConnectionSettings({ autoSubscribe: false }),
      reconnect: true,
      participantSid,
      reconnectReason: ReconnectReason.RR_SIGNAL_DISCONNECTED,
    }),
  );

function wrapped(request: JoinRequest): string {
  const bytes = new WrappedJoinRequest({ joinRequest: request.toBinary() }).toBinary();
  // Go's decoder of base64 wants the padding.
  return Buffer.from(bytes).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}
