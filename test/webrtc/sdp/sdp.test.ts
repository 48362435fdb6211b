// The answers to the offers of common WebRTC stacks, and the refusals with their reasons.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import * as fc from 'fast-check';
import { patience } from '../../harness/machine.ts';
import { ServiceError } from '../../../src/base/errors.ts';
import { parseOffer } from '../../../src/webrtc/sdp/offer.ts';
import { planAnswer, type AnswerPlan } from '../../../src/webrtc/sdp/answer.ts';
import { writeAnswer } from '../../../src/webrtc/sdp/write-answer.ts';
import * as offers from './offers.ts';

const plan = (sdp: string): AnswerPlan => planAnswer(parseOffer(sdp));
const answer = (sdp: string): string =>
  writeAnswer(plan(sdp), {
    sessionNumber: '1',
    sessionVersion: 2,
    ufrag: 'serverufrag',
    password: 'serverpasswordserverpw',
    fingerprint: 'AA:BB',
    candidates: [
      { address: '192.0.2.1', port: 4000 },
      { address: '192.0.2.2', port: 4000 },
    ],
    cname: 'cname',
    streamId: 'stream',
    videoTrackId: 'stream-video',
    audioTrackId: 'stream-audio',
    videoSsrc: 11,
    videoRtxSsrc: 12,
    audioSsrc: 13,
  });
const sections = (sdp: string): string[] => sdp.split(/^m=/m).slice(1);

test('the offer of each stack gets video, audio and a transport', () => {
  const expected: Record<keyof typeof offers.all, [string, number, number | undefined, number]> = {
    chromium: ['vp8', 96, 97, 111],
    firefox: ['h264', 126, 127, 109],
    aiortc: ['vp8', 97, 98, 96],
    pion: ['h264', 125, 107, 111],
    libdatachannel: ['vp8', 96, undefined, 111],
    gstreamer: ['vp8', 96, undefined, 97],
  };
  for (const [name, sdp] of Object.entries(offers.all)) {
    const { videoCodec, video, audio } = plan(sdp);
    assert.deepEqual(
      [videoCodec, video?.codec.payloadType, video?.rtxPayloadType, audio?.codec.payloadType],
      expected[name as keyof typeof expected],
      name,
    );
    const written = sections(answer(sdp));
    assert.deepEqual(
      written.map((section) => section.split(' ')[0]),
      sections(sdp).map((section) => section.split(' ')[0]),
      'the same m-lines in the same order',
    );
    for (const section of written) {
      assert.match(section, /a=setup:passive/);
      assert.match(section, /a=ice-ufrag:serverufrag\r\n/);
      assert.match(section, /a=candidate:1 1 udp \d+ 192\.0\.2\.1 4000 typ host/);
      assert.match(section, /a=end-of-candidates/);
      if (!section.startsWith('application')) {
        assert.match(section, /a=msid:stream stream-(video|audio)/);
        assert.match(section, /a=rtcp-mux/);
      }
    }
    assert.match(answer(sdp), /^v=0\r\n/);
    assert.doesNotMatch(answer(sdp), /undefined|NaN|null/);
  }
});

test('only what both sides support is answered', () => {
  const video = sections(answer(offers.chromium))[0]!;
  assert.deepEqual(
    [...video.matchAll(/a=rtcp-fb:96 (.*)/g)].map((match) => match[1]),
    ['nack', 'nack pli', 'ccm fir', 'goog-remb'],
  );
  assert.deepEqual(
    [...video.matchAll(/a=extmap:(\d+)/g)].map((match) => match[1]),
    ['9', '2', '5'],
  );
  const audio = sections(answer(offers.chromium))[1]!;
  assert.match(audio, /a=extmap:14 urn:ietf:params:rtp-hdrext:ssrc-audio-level/);
  assert.match(video, /^video 4000 UDP\/TLS\/RTP\/SAVPF 96 97\r\n/);
  assert.match(video, /a=ssrc-group:FID 11 12\r\na=ssrc:11 cname:cname\r\na=ssrc:12 cname:cname/);
  assert.match(answer(offers.chromium), /a=group:BUNDLE 0 1 2/);
  assert.match(sections(answer(offers.gstreamer))[0]!, /a=rtcp-fb:96 nack pli/);
  assert.match(
    sections(answer(offers.libdatachannel))[0]!,
    /a=rtcp-fb:96 nack\r\n/,
    'a wildcard applies to every codec',
  );
});

test('the codec is chosen in the order of the offer; H.264 only in the profile that we encode', () => {
  const prefer = (first: string): string =>
    offers.chromium.replace(/SAVPF 96 97 102/, `SAVPF ${first} 96 97 102`);
  assert.equal(plan(prefer('108')).videoCodec, 'h264');
  assert.equal(plan(prefer('108')).video?.rtxPayloadType, 109);
  assert.equal(plan(prefer('104')).videoCodec, 'vp8', 'packetization-mode 0 is skipped');
  assert.equal(plan(prefer('39')).videoCodec, 'vp8', 'the main profile is skipped');
  assert.equal(plan(prefer('45')).videoCodec, 'vp8', 'AV1 is skipped');
  assert.match(
    answer(prefer('108')),
    /a=fmtp:108 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f/,
  );
});

test('the microphone is received on a sendrecv section or on its own section', () => {
  const both = plan(offers.firefox);
  assert.equal(both.microphone, both.audio);
  assert.match(sections(answer(offers.firefox))[0]!, /a=sendrecv/);
  assert.equal(plan(offers.chromium).microphone, undefined);
  const audio = sections(offers.chromium)[1]!;
  const extra =
    offers.chromium.replace('BUNDLE 0 1 2', 'BUNDLE 0 1 2 mic') +
    `m=${audio.replace('a=mid:1', 'a=mid:mic').replace('a=recvonly', 'a=sendonly')}`;
  const separate = plan(extra);
  assert.equal(separate.audio?.section.mid, '1');
  assert.equal(separate.microphone?.section.mid, 'mic');
  assert.match(sections(answer(extra))[3]!, /a=recvonly/);
  assert.doesNotMatch(sections(answer(extra))[3]!, /a=msid|a=ssrc/);
});

test('unusable sections are refused with port 0, the others are accepted', () => {
  const withoutVideo = offers.chromium.replace(/VP8|H264/g, 'VP9');
  assert.equal(plan(withoutVideo).video, undefined);
  for (const soundOnly of [
    withoutVideo,
    offers.chromium.replace('a=recvonly', 'a=inactive'),
    offers.chromium.replace(/m=video \d+/, 'm=video 0').replace('a=bundle-only\r\n', ''),
  ]) {
    assert.equal(plan(soundOnly).videoCodec, undefined);
  }
  const written = sections(answer(withoutVideo));
  assert.match(written[0]!, /^video 0 .* 96 97 102/);
  assert.match(written[1]!, /^audio 4000 /);
  assert.match(answer(withoutVideo), /a=group:BUNDLE 1 2\r\n/);
  const camera = offers.chromium.replace('a=recvonly', 'a=sendonly');
  assert.match(sections(answer(camera))[0]!, /^video 0 /);
  const oldSctp = offers.chromium
    .replace('UDP/DTLS/SCTP webrtc-datachannel', 'DTLS/SCTP 5000')
    .replace('a=sctp-port:5000', 'a=sctpmap:5000 webrtc-datachannel 1024');
  assert.match(sections(answer(oldSctp))[2]!, /^application 4000 DTLS\/SCTP 5000\r\n/);
  assert.match(sections(answer(oldSctp))[2]!, /a=sctpmap:5000 webrtc-datachannel/);
  const noPort = offers.chromium.replace('a=sctp-port:5000\r\n', '');
  assert.match(sections(answer(noPort))[2]!, /^application 0 /);
  const onlyVideo = offers.pion
    .slice(0, offers.pion.indexOf('m=audio'))
    .replace('BUNDLE 0 1', 'BUNDLE 0');
  assert.equal(plan(onlyVideo).audio, undefined);
});

test('the refusal of an offer says what is wrong', () => {
  const wrong: [string, RegExp][] = [
    ['', /empty/],
    ['hello', /v=0/],
    ['v=0\r\n', /no m-line/],
    ['v=0\r\nm=\r\n', /m-line 1 is malformed/],
    [offers.chromium.replaceAll('actpass', 'passive'), /a=setup:passive/],
    [offers.chromium.replaceAll(/a=fingerprint.*\r\n/g, ''), /fingerprint/],
    [offers.chromium.replaceAll('sha-256', 'sha-1'), /fingerprint/],
    [offers.chromium.replaceAll(/a=ice-pwd:.*/g, 'a=ice-pwd:short'), /ice-pwd/],
    [offers.chromium.replaceAll(/a=ice-ufrag:.*\r\n/g, ''), /ice-ufrag/],
    [offers.chromium.replace(/a=group.*\r\n/, ''), /BUNDLE/],
    [offers.chromium.replaceAll('a=rtcp-mux\r\n', ''), /rtcp-mux/],
    [offers.chromium.replaceAll('recvonly', 'inactive'), /inactive/],
    [offers.chromium.replaceAll(/VP8|H264|opus/g, 'XYZ'), /VP8 or H.264/],
    [offers.chromium.replace('t=0 0', 'a=ice-lite\r\nt=0 0'), /ICE-lite/],
    [offers.chromium.replace('a=mid:1', 'a=mid:0'), /same a=mid/],
    [offers.chromium.replace('a=mid:1', 'a=mid:a b'), /a=mid/],
    [`v=0\r\n${'m=audio 9 X 0\r\n'.repeat(40)}`, /more than/],
    [`v=0\r\n${'a=x\r\n'.repeat(60_000)}`, /lines|longer/],
    ['v=0\r\n'.padEnd(2_000_000, 'x'), /longer/],
  ];
  for (const [sdp, reason] of wrong) {
    assert.throws(
      () => plan(sdp),
      (error: unknown) => {
        assert.ok(error instanceof ServiceError, String(error));
        assert.equal(error.code, 'INVALID_OFFER');
        assert.match(error.message, reason);
        return true;
      },
      sdp.slice(0, 60),
    );
  }
});

test('mutated offers are answered or refused, without another error, and quickly', () => {
  const sources = Object.values(offers.all);
  const startMs = performance.now();
  fc.assert(
    fc.property(
      fc.constantFrom(...sources),
      fc.array(fc.tuple(fc.nat(), fc.nat(40), fc.string({ maxLength: 30, unit: 'binary' })), {
        maxLength: 8,
      }),
      (source, edits) => {
        let sdp = source;
        for (const [at, length, text] of edits) {
          const place = at % sdp.length;
          sdp = sdp.slice(0, place) + text + sdp.slice(place + length);
        }
        try {
          assert.match(answer(sdp), /^v=0\r\n/);
        } catch (error) {
          if (!(error instanceof ServiceError)) {
            throw error;
          }
        }
      },
    ),
    { numRuns: 2_000, seed: 7 },
  );
  assert.ok(performance.now() - startMs < 20_000 * patience());
});

test('no line of an offer can inject a line into the answer', () => {
  const hostile = offers.chromium
    .replaceAll('a=mid:0', 'a=mid:0\u2028a=x')
    .replace('profile-level-id=42e01f', 'profile-level-id=42e01f\u0085evil');
  try {
    assert.doesNotMatch(answer(hostile), /evil|a=x/);
  } catch (error) {
    assert.ok(error instanceof ServiceError);
  }
});
