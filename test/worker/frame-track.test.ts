// The picture of one session: what of it is sent, and when.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { newCodedFrameBuffer } from '../../src/pipeline/encode/video-track.ts';
import { FaceCache } from '../../src/pipeline/render/face-cache.ts';
import { RigRenderer } from '../../src/pipeline/render/rig-renderer.ts';
import { FrameTrack } from '../../src/worker/frame-track.ts';
import { ava, sinkPeer } from './sessions.ts';

test('where frames are delayed, each leaves when the next is due, with its own time', async (t) => {
  const look = { seed: 1, emotion: 0, motion: 'natural' as const, startFrame: 0 };
  const track = new FrameTrack({
    renderer: new RigRenderer(new FaceCache().take('ava', ava), look),
    audioRenderer: undefined,
    freezesInSilence: false,
    delaysFrames: true,
  });
  t.onTestFinished(() => {
    track.close();
  });
  await track.open('vp8', 600, newCodedFrameBuffer());
  const coded: { data: Uint8Array; isKey: boolean; mediaMs: number }[] = [];
  const sent: typeof coded = [];
  const peer = {
    ...sinkPeer,
    sendVideo: (data: Uint8Array, length: number, isKey: boolean, mediaMs: number): number => {
      sent.push({ data: data.slice(0, length), isKey, mediaMs });
      return 1;
    },
  };
  const frame = (number: number): void => {
    track.draw(number, undefined, false);
    track.encode();
    const { data, length, isKey } = track.video!;
    if (track.isCoded) {
      coded.push({ data: data.slice(0, length), isKey, mediaMs: number * 33 });
    }
    track.send(peer, number * 33, number * 33);
  };
  for (let number = 0; number < 5; number++) {
    frame(number);
    assert.equal(sent.length, coded.length - 1);
  }
  assert.ok(coded.length === 5 && coded[0]!.isKey);
  assert.deepEqual(sent, coded.slice(0, -1));
  track.forgetPeer();
  frame(5);
  assert.equal(sent.length, 4, 'what waited was of the peer before');
});
