// Several offers on one peer: what stays, what may change, what is refused.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'vitest';
import { createEndpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer } from '../../src/webrtc/peer.ts';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { PEER_OPTIONS, RecordingListener } from '../harness/peer-pair.ts';
import { chromium } from './sdp/offers.ts';
import { ssrcOf } from './sdp/read-answer.ts';

async function newPeer(t: TestContext): Promise<Peer> {
  const endpoint = await createEndpoint({
    bindAddress: '127.0.0.1',
    port: 0,
    announcedAddresses: [],
  });
  t.onTestFinished(() => endpoint.close());
  return endpoint.createPeer(PEER_OPTIONS, new RecordingListener());
}
const answerTo = (peer: Peer, sdp: string): Promise<string> => peer.answer(parseOffer(sdp));
const attribute = (sdp: string, name: string): string | undefined =>
  new RegExp(`^a=${name}:(.*)$`, 'm').exec(sdp)?.[1]?.trim();
const sectionsOf = (sdp: string): string[] => sdp.split(/^m=/m).slice(1);
/** The offer with its sections of these kinds only, BUNDLE group included. */
function only(sdp: string, ...kinds: string[]): string {
  const [session = '', ...sections] = sdp.split(/^(?=m=)/m);
  const kept = sections.filter((section) => kinds.some((kind) => section.startsWith(`m=${kind}`)));
  const mids = kept.map((section) => attribute(section, 'mid')!);
  return [session.replace(/a=group:BUNDLE.*/, `a=group:BUNDLE ${mids.join(' ')}`), ...kept].join(
    '',
  );
}

test('the same offer again: same streams, same credentials, a higher version', async (t) => {
  const peer = await newPeer(t);
  const first = await answerTo(peer, chromium);
  const second = await answerTo(peer, chromium);
  const version = (sdp: string): number => Number(/^o=- \d+ (\d+)/m.exec(sdp)![1]);
  assert.equal(version(second), version(first) + 1);
  assert.equal(second.replace(/^o=.*$/m, ''), first.replace(/^o=.*$/m, ''));
});

test('media sections may come after the data section', async (t) => {
  const peer = await newPeer(t);
  const data = only(chromium, 'application');
  await assert.rejects(answerTo(peer, data), /no audio or video section/);
  const first = await peer.answer(parseOffer(data), { allowsNoMedia: true });
  assert.match(first, /^m=application \d{2,}/m);
  assert.deepEqual(peer.mids, { audio: undefined, video: undefined });
  const [session = '', application = ''] = data.split(/^(?=m=)/m);
  const media = chromium.split(/^(?=m=(?:audio|video))/m).slice(1);
  const all = session.replace(/a=group:BUNDLE.*/, /a=group:BUNDLE.*/.exec(chromium)![0]);
  const own = media.map((section) => section.replace(/^m=application[^]*/m, ''));
  const second = await peer.answer(parseOffer([all, application, ...own].join('')), {
    streamId: 'PA_1|avatar',
    audioTrackId: 'TR_A',
    videoTrackId: 'TR_V',
  });
  const video = sectionsOf(second).find((section) => section.startsWith('video'))!;
  const audio = sectionsOf(second).find((section) => section.startsWith('audio'))!;
  assert.equal(attribute(video, 'msid'), 'PA_1|avatar TR_V');
  assert.equal(attribute(audio, 'msid'), 'PA_1|avatar TR_A');
  assert.deepEqual(peer.mids, { audio: attribute(audio, 'mid'), video: attribute(video, 'mid') });
});

test('a section that the client stops receiving is inactive, and comes back as it was', async (t) => {
  const peer = await newPeer(t);
  const first = await answerTo(peer, chromium);
  const inactive = await answerTo(peer, chromium.replaceAll('a=recvonly', 'a=inactive'));
  for (const section of sectionsOf(inactive).filter((each) => !each.startsWith('application'))) {
    assert.match(section, /^a=inactive/m);
    assert.doesNotMatch(section, /^\w+ 0 /);
  }
  assert.deepEqual(peer.mids, { audio: undefined, video: undefined });
  const again = await answerTo(peer, chromium);
  assert.equal(ssrcOf(again, 'video'), ssrcOf(first, 'video'));
  assert.equal(ssrcOf(again, 'audio'), ssrcOf(first, 'audio'));
});

test('new credentials restart ICE: ours are new too', async (t) => {
  const peer = await newPeer(t);
  const first = await answerTo(peer, chromium);
  const restarted = chromium
    .replaceAll(/a=ice-ufrag:\S+/g, 'a=ice-ufrag:NeW1')
    .replaceAll(/a=ice-pwd:\S+/g, 'a=ice-pwd:aVeryNewPasswordOfTheClient');
  const second = await answerTo(peer, restarted);
  assert.notEqual(attribute(second, 'ice-ufrag'), attribute(first, 'ice-ufrag'));
  assert.notEqual(attribute(second, 'ice-pwd'), attribute(first, 'ice-pwd'));
  const third = await answerTo(peer, restarted);
  assert.equal(attribute(third, 'ice-ufrag'), attribute(second, 'ice-ufrag'));
});

test('an offer that does not follow from the one before is refused, and changes nothing', async (t) => {
  const peer = await newPeer(t);
  const first = await answerTo(peer, chromium);
  const { mids } = peer;
  const digest = /a=fingerprint:sha-256 (\S+)/.exec(chromium)![1]!;
  const forged = chromium.replaceAll(
    digest,
    digest.replace(/^../, (byte) => (byte === '00' ? '01' : '00')),
  );
  await assert.rejects(answerTo(peer, forged), /a=fingerprint has changed/);
  const [, mid] = /a=mid:(\S+)/.exec(chromium)!;
  const renamed = chromium
    .replace(`a=mid:${mid}`, 'a=mid:other')
    .replace(
      /a=group:BUNDLE (.*)/,
      (_, list: string) => `a=group:BUNDLE ${list.replace(new RegExp(`\\b${mid}\\b`), 'other')}`,
    );
  await assert.rejects(answerTo(peer, renamed), /a=mid of m-line 1 has changed/);
  await assert.rejects(answerTo(peer, only(chromium, 'audio')), /fewer m-lines|a=mid of m-line/);
  assert.deepEqual(peer.mids, mids);
  const again = await answerTo(peer, chromium);
  assert.equal(ssrcOf(again, 'video'), ssrcOf(first, 'video'));
  assert.equal(attribute(again, 'ice-ufrag'), attribute(first, 'ice-ufrag'));
});
