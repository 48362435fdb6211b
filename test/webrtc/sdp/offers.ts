// Offers as the WebRTC stacks of the day write them, cut to what matters: browsers, aiortc, pion, libdatachannel, GStreamer.
const FINGERPRINT = 'a=fingerprint:sha-256 BC:AD:A1:FD:3D:B3:64:01:42:7F:18:6F:6F:8D:3A:E9:95:DF:11:F0:9D:F4:D2:FA:0F:BA:00:E9:2B:6A:98:1F';

const join = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n`;

const chromiumTransport = ['a=ice-ufrag:St7l', 'a=ice-pwd:n4h2kkjwaG70jN25aVTHMqZn', 'a=ice-options:trickle', FINGERPRINT, 'a=setup:actpass'];

export const chromium = join(
  'v=0', 'o=- 4266639356611257900 2 IN IP4 127.0.0.1', 's=-', 't=0 0', 'a=group:BUNDLE 0 1 2', 'a=extmap-allow-mixed', 'a=msid-semantic: WMS',
  'm=video 9 UDP/TLS/RTP/SAVPF 96 97 102 103 104 107 108 109 39 40 45', 'c=IN IP4 0.0.0.0', 'a=rtcp:9 IN IP4 0.0.0.0', ...chromiumTransport, 'a=mid:0',
  'a=extmap:1 urn:ietf:params:rtp-hdrext:toffset', 'a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time', 'a=extmap:3 urn:3gpp:video-orientation',
  'a=extmap:5 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay', 'a=extmap:9 urn:ietf:params:rtp-hdrext:sdes:mid', 'a=recvonly', 'a=rtcp-mux', 'a=rtcp-rsize',
  'a=rtpmap:96 VP8/90000', 'a=rtcp-fb:96 goog-remb', 'a=rtcp-fb:96 transport-cc', 'a=rtcp-fb:96 ccm fir', 'a=rtcp-fb:96 nack', 'a=rtcp-fb:96 nack pli',
  'a=rtpmap:97 rtx/90000', 'a=fmtp:97 apt=96',
  'a=rtpmap:102 H264/90000', 'a=rtcp-fb:102 goog-remb', 'a=rtcp-fb:102 nack', 'a=rtcp-fb:102 nack pli', 'a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f',
  'a=rtpmap:103 rtx/90000', 'a=fmtp:103 apt=102', 'a=rtpmap:104 H264/90000', 'a=fmtp:104 level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42001f',
  'a=rtpmap:107 rtx/90000', 'a=fmtp:107 apt=104', 'a=rtpmap:108 H264/90000', 'a=fmtp:108 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f', 'a=rtpmap:109 rtx/90000', 'a=fmtp:109 apt=108',
  'a=rtpmap:39 H264/90000', 'a=fmtp:39 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=4d001f', 'a=rtpmap:40 rtx/90000', 'a=fmtp:40 apt=39', 'a=rtpmap:45 AV1/90000',
  'm=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126', 'c=IN IP4 0.0.0.0', 'a=rtcp:9 IN IP4 0.0.0.0', ...chromiumTransport, 'a=mid:1', 'a=extmap:9 urn:ietf:params:rtp-hdrext:sdes:mid',
  'a=recvonly', 'a=rtcp-mux', 'a=rtcp-rsize', 'a=rtpmap:111 opus/48000/2', 'a=rtcp-fb:111 transport-cc', 'a=fmtp:111 minptime=10;useinbandfec=1', 'a=rtpmap:63 red/48000/2', 'a=fmtp:63 111/111', 'a=rtpmap:0 PCMU/8000',
  'm=application 9 UDP/DTLS/SCTP webrtc-datachannel', 'c=IN IP4 0.0.0.0', ...chromiumTransport, 'a=mid:2', 'a=sctp-port:5000', 'a=max-message-size:262144',
);

const firefoxTransport = ['a=ice-pwd:b3e1d7fcd0e8e8f3a0cbd3b7f3f9f2aa', 'a=ice-ufrag:7d1a2f2b', 'a=setup:actpass'];

/** Session-level fingerprint, audio first, candidates with mDNS names. */
export const firefox = join(
  'v=0', 'o=mozilla...THIS_IS_SDPARTA-99.0 3424242322932133 0 IN IP4 0.0.0.0', 's=-', 't=0 0', FINGERPRINT, 'a=group:BUNDLE 0 1', 'a=ice-options:trickle', 'a=msid-semantic:WMS *',
  'm=audio 9 UDP/TLS/RTP/SAVPF 109 9 0 8 101', 'c=IN IP4 0.0.0.0', 'a=candidate:0 1 UDP 2122252543 f1f2f3f4-aaaa-bbbb-cccc-ddddeeeeffff.local 54321 typ host', 'a=sendrecv', 'a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level',
  'a=extmap:2/recvonly urn:ietf:params:rtp-hdrext:csrc-audio-level', 'a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid', 'a=fmtp:109 maxplaybackrate=48000;stereo=1;useinbandfec=1', ...firefoxTransport, 'a=mid:0',
  'a=msid:{a1b2} {c3d4}', 'a=rtcp-mux', 'a=rtpmap:109 opus/48000/2', 'a=rtpmap:9 G722/8000/1', 'a=ssrc:123456 cname:{x}',
  'm=video 9 UDP/TLS/RTP/SAVPF 126 127 120 124', 'c=IN IP4 0.0.0.0', 'a=recvonly', 'a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid', 'a=extmap:7 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay',
  'a=fmtp:126 profile-level-id=42e01f;level-asymmetry-allowed=1;packetization-mode=1', 'a=fmtp:127 apt=126', 'a=fmtp:120 max-fs=12288;max-fr=60', 'a=fmtp:124 apt=120', ...firefoxTransport, 'a=mid:1',
  'a=rtcp-fb:126 nack', 'a=rtcp-fb:126 nack pli', 'a=rtcp-fb:126 ccm fir', 'a=rtcp-fb:126 goog-remb', 'a=rtcp-mux', 'a=rtcp-rsize', 'a=rtpmap:126 H264/90000', 'a=rtpmap:127 rtx/90000', 'a=rtpmap:120 VP8/90000', 'a=rtpmap:124 rtx/90000',
);

const aiortcTransport = ['a=ice-ufrag:jwdq', 'a=ice-pwd:aKeJoyUu4hKqHTlTqwcmrG', FINGERPRINT, 'a=setup:actpass'];

/** Every m-line its own credentials in principle; BUNDLE says which count. */
export const aiortc = join(
  'v=0', 'o=- 3912345678 3912345678 IN IP4 0.0.0.0', 's=-', 't=0 0', 'a=group:BUNDLE 0 1 2', 'a=msid-semantic:WMS *',
  'm=audio 40001 UDP/TLS/RTP/SAVPF 96 0 8', 'c=IN IP4 192.168.1.2', 'a=recvonly', 'a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid', 'a=extmap:2 urn:ietf:params:rtp-hdrext:ssrc-audio-level', 'a=mid:0', 'a=msid:x y', 'a=rtcp:9 IN IP4 0.0.0.0', 'a=rtcp-mux', 'a=ssrc:1 cname:c',
  'a=rtpmap:96 opus/48000/2', 'a=rtpmap:0 PCMU/8000', 'a=candidate:abc 1 udp 2130706431 192.168.1.2 40001 typ host', 'a=end-of-candidates', ...aiortcTransport,
  'm=video 40002 UDP/TLS/RTP/SAVPF 97 98 99 100 101 102', 'c=IN IP4 192.168.1.2', 'a=recvonly', 'a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid', 'a=extmap:3 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time', 'a=mid:1', 'a=rtcp-mux',
  'a=rtpmap:97 VP8/90000', 'a=rtcp-fb:97 nack', 'a=rtcp-fb:97 nack pli', 'a=rtcp-fb:97 goog-remb', 'a=rtpmap:98 rtx/90000', 'a=fmtp:98 apt=97', 'a=rtpmap:99 H264/90000', 'a=fmtp:99 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f',
  'a=rtpmap:100 rtx/90000', 'a=fmtp:100 apt=99', 'a=rtpmap:101 H264/90000', 'a=fmtp:101 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f', 'a=rtpmap:102 rtx/90000', 'a=fmtp:102 apt=101', ...aiortcTransport,
  'm=application 46973 DTLS/SCTP 5000', 'c=IN IP4 192.168.1.2', 'a=mid:2', 'a=sctpmap:5000 webrtc-datachannel 65535', 'a=max-message-size:65536', ...aiortcTransport,
);

export const pion = join(
  'v=0', 'o=- 7131231231231231231 1700000000 IN IP4 0.0.0.0', 's=-', 't=0 0', 'a=msid-semantic:WMS*', FINGERPRINT, 'a=extmap-allow-mixed', 'a=group:BUNDLE 0 1',
  'm=video 9 UDP/TLS/RTP/SAVPF 125 107', 'c=IN IP4 0.0.0.0', 'a=setup:actpass', 'a=mid:0', 'a=ice-ufrag:QwErTyUiOpAsDfGh', 'a=ice-pwd:QwErTyUiOpAsDfGhQwErTyUiOpAsDfGh', 'a=rtcp-mux', 'a=rtcp-rsize',
  'a=rtpmap:125 H264/90000', 'a=fmtp:125 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f', 'a=rtcp-fb:125 nack ', 'a=rtcp-fb:125 nack pli', 'a=rtpmap:107 rtx/90000', 'a=fmtp:107 apt=125', 'a=recvonly',
  'm=audio 9 UDP/TLS/RTP/SAVPF 111', 'c=IN IP4 0.0.0.0', 'a=setup:actpass', 'a=mid:1', 'a=ice-ufrag:QwErTyUiOpAsDfGh', 'a=ice-pwd:QwErTyUiOpAsDfGhQwErTyUiOpAsDfGh', 'a=rtcp-mux', 'a=rtcp-rsize', 'a=rtpmap:111 opus/48000/2', 'a=fmtp:111 minptime=10;useinbandfec=1', 'a=recvonly',
);

/** Session-level credentials, long mids, no rtx, no feedback but the wildcard. */
export const libdatachannel = join(
  'v=0', 'o=rtc 3837443201 0 IN IP4 127.0.0.1', 's=-', 't=0 0', 'a=group:BUNDLE the-video-section the-audio-section', 'a=msid-semantic:WMS *', 'a=setup:actpass', 'a=ice-ufrag:V7bZ', 'a=ice-pwd:KGbpMqbXyw8oqzfjVWlmHf', 'a=ice-options:ice2,trickle', FINGERPRINT,
  'm=video 52401 UDP/TLS/RTP/SAVPF 96', 'c=IN IP4 127.0.0.1', 'a=mid:the-video-section', 'a=recvonly', 'a=rtcp-mux', 'a=rtpmap:96 VP8/90000', 'a=rtcp-fb:* nack', 'a=rtcp-fb:* nack pli',
  'm=audio 52401 UDP/TLS/RTP/SAVPF 111', 'c=IN IP4 127.0.0.1', 'a=mid:the-audio-section', 'a=recvonly', 'a=rtcp-mux', 'a=rtpmap:111 opus/48000/2',
);

export const gstreamer = join(
  'v=0', 'o=- 8312312312312312312 0 IN IP4 0.0.0.0', 's=-', 't=0 0', 'a=ice-options:trickle', 'a=group:BUNDLE video0 audio1',
  'm=video 9 UDP/TLS/RTP/SAVPF 96', 'c=IN IP4 0.0.0.0', 'a=setup:actpass', 'a=ice-ufrag:2gE4wHJ9mG6oFmI5d8vG7sHqk1O6w2Yc', 'a=ice-pwd:7WJ8wCtD3V4c9qWQ2mZ6j0HkE0bY5t1L', 'a=bundle-only', 'a=rtcp-mux', 'a=rtcp-rsize', 'a=recvonly', 'a=rtpmap:96 VP8/90000', 'a=rtcp-fb:96 nack pli', 'a=mid:video0', FINGERPRINT,
  'm=audio 0 UDP/TLS/RTP/SAVPF 97', 'c=IN IP4 0.0.0.0', 'a=setup:actpass', 'a=ice-ufrag:2gE4wHJ9mG6oFmI5d8vG7sHqk1O6w2Yc', 'a=ice-pwd:7WJ8wCtD3V4c9qWQ2mZ6j0HkE0bY5t1L', 'a=bundle-only', 'a=rtcp-mux', 'a=rtcp-rsize', 'a=recvonly', 'a=rtpmap:97 OPUS/48000/2', 'a=mid:audio1', FINGERPRINT,
);

export const all = { chromium, firefox, aiortc, pion, libdatachannel, gstreamer } as const;
