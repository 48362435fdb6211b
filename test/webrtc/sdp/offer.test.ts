// The offer parser against text made to be slow or large: it runs on the main thread.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { serialize } from 'node:v8';
import { ServiceError } from '../../../src/base/errors.ts';
import { MAX_OFFER_CHARS, parseOffer } from '../../../src/webrtc/sdp/offer.ts';
import { planAnswer } from '../../../src/webrtc/sdp/answer.ts';
import { writeAnswer } from '../../../src/webrtc/sdp/write-answer.ts';
import { isWithin, shortestMs } from '../../harness/machine.ts';
import * as offers from './offers.ts';

const identity = {
  sessionNumber: '1',
  sessionVersion: 2,
  ufrag: 'serverufrag',
  password: 'serverpasswordserverpw',
  fingerprint: 'AA:BB',
  candidates: [{ address: '192.0.2.1', port: 4000 }],
  cname: 'cname',
  streamId: 'stream',
  videoTrackId: 'stream-video',
  audioTrackId: 'stream-audio',
  videoSsrc: 11,
  videoRtxSsrc: 12,
  audioSsrc: 13,
};
const answer = (sdp: string): string => writeAnswer(planAnswer(parseOffer(sdp)), identity);
const refusalOf = (sdp: string): string => {
  try {
    answer(sdp);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'INVALID_OFFER') {
      return error.message;
    }
    throw error;
  }
  return '';
};

const LIMITS_MS = { parse: 5, answer: 5 };
const types = Array.from({ length: 128 }, (_unused, type) => type).filter(
  (type) => type < 64 || type > 95,
);
const head = 'v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n';
const transport =
  'a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=setup:actpass\r\n' +
  'a=fingerprint:sha-256 ' +
  'BC:AD:A1:FD:3D:B3:64:01:42:7F:18:6F:6F:8D:3A:E9:95:DF:11:F0:9D:F4:D2:FA:0F:BA:00:E9:2B:6A:98:1F\r\n';
const video = (formats: string): string =>
  `${head}${transport}m=video 9 UDP/TLS/RTP/SAVPF ${formats}\r\na=rtcp-mux\r\na=recvonly\r\n`;
const maps = types.map((type) => `a=rtpmap:${type} VP8/90000\r\n`).join('');
/** Repeats the line `text` up to `lines` lines and the greatest length of an offer. */
const filled = (
  start: string,
  text: string | ((index: number) => string),
  lines = 2000,
): string => {
  let sdp = start;
  for (let index = start.split('\n').length; index < lines; index++) {
    const next = typeof text === 'string' ? text : text(index);
    if (sdp.length + next.length > MAX_OFFER_CHARS) {
      break;
    }
    sdp += next;
  }
  return sdp;
};
const some = types.slice(0, 60).join(' ');

const HOSTILE: Readonly<Record<string, string>> = {
  'many formats and wildcard feedback': filled(
    video(some) + maps,
    (index) => `a=rtcp-fb:* x${String(index).padStart(14, '0')}\r\n`,
  ),
  'one format repeated': filled(
    video(`96 ${'96 '.repeat(600)}`) + maps,
    'a=rtcp-fb:* nack               \r\n',
  ),
  'types with leading zeros': filled(
    video(
      `${types.slice(0, 30).join(' ')} ${types
        .slice(0, 30)
        .map((type) => String(type).padStart(3, '0'))
        .join(' ')}`,
    ) + maps,
    'a=rtcp-fb:* nack\r\n',
  ),
  'much feedback of one format': filled(
    video(some) + maps,
    (index) => `a=rtcp-fb:96 ${String(index).padStart(14, '0')}\r\n`,
  ),
  'long fmtp of every format': filled(
    `${video(some)}${maps.replaceAll('VP8', 'H264')}`,
    (index) => `a=fmtp:${types[index % 60]} ${';'.repeat(1900)}\r\n`,
  ),
  'long fmtp and a codec at the end': filled(
    video(some) + maps.replaceAll('VP8', 'rtx').replace('0 rtx', '0 VP8'),
    (index) => `a=fmtp:${types[index % 60]} ${'a=;'.repeat(600)}\r\n`,
  ),
  'm-lines that inherit extensions from the session':
    filled(head + transport, (index) => `a=extmap:${(index % 14) + 1} urn:${index}\r\n`, 1960) +
    'm=video 9 UDP/TLS/RTP/SAVPF 0\r\n'.repeat(32),
  'thirty m-lines of formats': Array.from(
    { length: 24 },
    () => `m=video 9 UDP/TLS/RTP/SAVPF ${some}\r\n${maps.slice(0, 1900)}`,
  )
    .join('')
    .replace(/^/, head + transport),
  'a group of mids': filled(
    `${head}${Array.from({ length: 20 }, () => `a=group:BUNDLE ${'a '.repeat(1000)}\r\n`).join('')}`,
    'm=audio 9 UDP/TLS/RTP/SAVPF 0\r\n',
  ),
  'many m-lines': filled(head, 'm=audio 9 UDP/TLS/RTP/SAVPF 0\r\n', 1e6),
  'empty lines': filled(head, '\n', 1e6),
  'empty lines of both kinds': filled(head, '\r\n\r', 1e6),
  'short attributes': filled(video('96'), 'a=x\r\n', 1e6),
  'attributes of different names': filled(
    video('96'),
    (index) => `a=a${String(index).padStart(25, '0')}:${index}\r\n`,
  ),
  'attributes that are used': filled(video('96'), 'a=mid:0123456789012345678901\r\n'),
  fingerprints: filled(video('96'), 'a=fingerprint:sha-256 AA\r\n'),
  'one line': filled(head, 'x', 1e6),
  'a line of blanks': `${head}m=${' '.repeat(60_000)}x`,
  'blanks in lines': filled(video('96'), `a=rtpmap:96${' '.repeat(1900)}VP8/90000\r\n`),
  'a session of blanks': filled(head, `a=group:BUNDLE${' '.repeat(1900)}x\r\n`),
  slashes: filled(video('96'), `a=rtpmap:96 ${'/'.repeat(1900)}\r\n`),
  extensions: filled(video('96'), `a=extmap:1/${'a'.repeat(1900)} \r\n`),
  'non-ASCII characters': filled(video('96'), 'a=mid:\u{1f600}\r\n'),
};

test('the longest offer takes 5 ms at most, whatever it contains', () => {
  // Warm-up: the code is compiled before it is timed.
  for (const sdp of Object.values(offers.all)) {
    for (let run = 0; run < 50; run++) {
      parseOffer(sdp);
    }
  }
  for (const [name, sdp] of Object.entries(HOSTILE)) {
    assert.ok(sdp.length <= MAX_OFFER_CHARS, name);
    const tookMs = shortestMs(() => {
      try {
        parseOffer(sdp);
      } catch (error) {
        assert.ok(error instanceof ServiceError, String(error));
      }
    });
    console.info(`${name}: ${tookMs.toFixed(2)} ms`);
    assert.ok(isWithin(tookMs, LIMITS_MS.parse), `${name}: ${tookMs.toFixed(1)} ms`);
  }
});

test('the parsed offer is plain data, at most twice as large as its text, and answered in 5 ms', () => {
  for (const [name, sdp] of Object.entries({ ...HOSTILE, ...offers.all })) {
    let offer;
    try {
      offer = parseOffer(sdp);
    } catch {
      continue;
    }
    const copy = structuredClone(offer);
    assert.deepEqual(copy, offer, name);
    assert.ok(
      serialize(offer).length < 2 * sdp.length + 2000,
      `${name}: ${serialize(offer).length} bytes of ${sdp.length}`,
    );
    const tookMs = shortestMs(() => {
      try {
        writeAnswer(planAnswer(copy), identity);
      } catch (error) {
        assert.ok(error instanceof ServiceError, String(error));
      }
    });
    assert.ok(isWithin(tookMs, LIMITS_MS.answer), `${name}: ${tookMs.toFixed(1)} ms`);
  }
});

test('each limit has an error message', () => {
  const chromium = offers.chromium;
  assert.equal(
    refusalOf(chromium + 'a=x\r\n'.repeat(1800)),
    '',
    'an offer with hundreds of candidates is accepted',
  );
  assert.match(
    refusalOf(chromium.padEnd(MAX_OFFER_CHARS + 1, 'x')),
    /longer than 65536 characters/,
  );
  assert.match(refusalOf(chromium + 'a=x\r\n'.repeat(2000)), /more than 2000 lines/);
  assert.match(
    refusalOf(`${chromium}a=x:${'x'.repeat(2048)}\r\n`),
    /line \d+ is longer than 2048 characters/,
  );
  assert.match(
    refusalOf(
      chromium.replace(
        ' 96 97 102',
        ` 96 97 102 ${Array.from({ length: 60 }, (_unused, index) => `f${index}`).join(' ')}`,
      ),
    ),
    /more than 64 formats/,
  );
});

test('a repeated payload type counts once, however it is written', () => {
  const [section] = parseOffer(
    offers.chromium.replace('SAVPF 96 97 102', 'SAVPF 96 97 96 096 102 97'),
  ).sections;
  assert.deepEqual(
    section?.codecs.map(({ payloadType }) => payloadType),
    parseOffer(offers.chromium).sections[0]?.codecs.map(({ payloadType }) => payloadType),
  );
  assert.equal(section?.formats, '96 97 096 102 103 104 107 108 109 39 40 45');
});

test('an id that video uses for another extension is none for the audio level', () => {
  const audioLevel = 'a=extmap:2 urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\n';
  const sendTime = 'http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time\r\n';
  const audio = `v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\n${audioLevel}`;
  const both = `${audio}m=video 9 UDP/TLS/RTP/SAVPF 97\r\na=mid:1\r\na=extmap:`;
  const idsOf = (sdp: string) =>
    parseOffer(sdp).sections.map(({ extensions }) => [
      extensions.audioLevel,
      extensions.absSendTime,
    ]);
  assert.deepEqual(idsOf(`${both}3 ${sendTime}`), [
    [2, 0],
    [0, 3],
  ]);
  assert.deepEqual(idsOf(`${both}2 ${sendTime}`), [
    [0, 0],
    [0, 2],
  ]);
});
