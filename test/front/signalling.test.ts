// The session WebSocket to the letter: order and spelling of messages, what comes too early, too
// late, twice or in the wrong frame.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { Documents } from '../harness/documents.ts';
import { patience } from '../harness/machine.ts';
import { call, createToken, startServer, type TestServer } from '../harness/server.ts';
import { until } from '../harness/until.ts';
import { synthesize } from '../harness/speech.ts';
import { makeOffer, senderMs, WeriftPeer } from '../harness/werift-peer.ts';
import { WsClient } from '../harness/ws-client.ts';
import { sleep } from '../../src/base/time.ts';
import { refusals } from './refusals.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server?.stop();
});

const open = async (options: Record<string, unknown> = {}): Promise<WsClient> =>
  WsClient.open(server, await createToken(server, options));

// The thirty seconds of one test are the others' time too.
describe.concurrent('the socket', () => {
  test('an invalid token gets an error message on the open socket, which then closes', async () => {
    for (const token of ['', 'nonsense', 'A'.repeat(43), 'x'.repeat(2000)]) {
      const client = await WsClient.open(server, token);
      await client.closed;
      assert.deepEqual(
        client.messages.map(({ text }) => text),
        ['ERROR INVALID_SESSION_TOKEN'],
      );
    }
  });

  test('both paths behave the same, and enableSFU is optional and case-insensitive', async () => {
    const token = await createToken(server);
    for (const route of [
      '/compose/webrtc/p2p?enableSFU=true',
      '/compose/webrtc/peer_to_peer?enableSFU=FALSE',
      '/compose/webrtc/p2p?enablesfu=True',
    ]) {
      const client = await WsClient.open(server, token, route);
      client.send('ping 1');
      assert.equal((await client.waitFor('pong')).text, 'pong 1');
      await client.close();
      await sleep(50);
    }
  });

  test('the answer is exactly as clients parse it, then come destination and video metadata', async () => {
    const client = await open();
    client.send(`{ "sdp":${JSON.stringify(await makeOffer())}   , "type" :"offer","more":[1]}`);
    await client.waitFor('{"video_metadata"');
    const [answer, destination, metadata] = client.messages.map(({ text }) => text) as [
      string,
      string,
      string,
    ];
    assert.match(answer, /^\{"sdp": "(?:[^"\\]|\\.)*", "type": "answer"\}$/);
    assert.match(destination, /^\{"destination": "[^"]+", "session_id": "[0-9a-f-]{36}"\}$/);
    assert.equal(metadata, '{"video_metadata": {"fps": 30, "width": 512, "height": 512}}');
    const { sdp } = JSON.parse(answer) as { sdp: string };
    const media = sdp.split(/^m=/m).slice(1);
    assert.equal(media.length, 2);
    for (const section of media) {
      assert.match(section, /^a=msid:\S+ \S+/m, 'clients group the tracks by msid');
      assert.match(section, /^a=(sendonly|sendrecv)/m);
      assert.match(section, /^a=rtcp-mux/m);
    }
    assert.match(sdp, /^a=setup:passive/m);
    assert.match(sdp, /^a=candidate:.* typ host/m, 'all candidates are in the answer');
    assert.equal(client.binaryFrames, 0);
    await client.close();
  });

  test('with events=json the same messages are JSON events with times', async () => {
    const token = await createToken(server);
    const client = await WsClient.open(server, token, '/compose/webrtc/p2p?events=json');
    client.send(new Uint8Array(6000));
    client.send('ping 1');
    client.send(JSON.stringify({ type: 'offer', sdp: await makeOffer() }));
    await client.waitFor('{"type":"video"');
    client.send(new Uint8Array((1 << 20) + 2));
    await client.closed;
    const events = client.messages.map(({ text }) => JSON.parse(text) as Record<string, unknown>);
    for (const { at } of events) {
      assert.ok(typeof at === 'number' && Math.abs(Date.now() - at) < 60_000, String(at));
    }
    assert.deepEqual(
      events.map(({ type }) => type),
      ['ack', 'pong', 'answer', 'session', 'video', 'error'],
    );
    assert.equal(events[1]!['payload'], '1');
    assert.equal(events.at(-1)!['code'], 'MESSAGE_TOO_LARGE');
    const refused = await WsClient.open(server, 'nonsense', '/compose/webrtc/p2p?events=json');
    await refused.closed;
    const { type, code } = JSON.parse(refused.messages[0]!.text) as Record<string, unknown>;
    assert.deepEqual({ type, code }, { type: 'error', code: 'INVALID_SESSION_TOKEN' });
  });

  test('commands, audio and invalid messages before the offer do no harm', async () => {
    const client = await open();
    client.send('SKIP');
    client.send(new TextEncoder().encode('SKIP'));
    client.send(new Uint8Array(6000));
    client.send(new Uint8Array(6001)); // half a sample too many
    client.send(new Uint8Array(128_014));
    client.send(new TextEncoder().encode('PLAY_IMMEDIATE'));
    client.send('hello');
    client.send('{"type":"offer"');
    client.send('{"type":"candidate","candidate":"x"}');
    client.send('');
    client.send(JSON.stringify({ type: 'offer', sdp: await makeOffer() }));
    await client.waitFor('{"sdp"');
    assert.equal(
      client.words.filter((word) => word === 'ACK').length,
      4,
      'one ACK for each message with audio',
    );
    assert.equal(
      client.words.some((word) => word === 'ERROR' || word === 'STOP'),
      false,
    );
    await client.close();
  });

  test('one mebibyte is accepted, more ends the session with a reason', async () => {
    const client = await open();
    client.send(new Uint8Array(1 << 20));
    await client.waitFor('ACK');
    client.send(new Uint8Array((1 << 20) + 2));
    const { code } = await client.closed;
    assert.ok(
      client.messages.at(-1)!.text.startsWith('ERROR MESSAGE_TOO_LARGE') || code === 1009,
      `it ended with '${client.messages.at(-1)!.text}', code ${code}`,
    );
  });

  test('an unusable offer is refused with a message', async () => {
    for (const sdp of [
      '',
      'v=0',
      'v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=video 9 UDP/TLS/RTP/SAVPF ' +
        '96\r\na=rtpmap:96 AV1/90000\r\n',
    ]) {
      const client = await open();
      client.send(JSON.stringify({ type: 'offer', sdp }));
      await client.closed;
      assert.match(client.messages.at(-1)!.text, /^ERROR INVALID_OFFER/);
    }
  });

  test('an offer that is too long is refused with a message, at once and at any length', async () => {
    for (const length of [70_000, 200_000, 1_000_000]) {
      const client = await open();
      const startMs = performance.now();
      client.send(JSON.stringify({ type: 'offer', sdp: 'v=0\r\n'.padEnd(length, 'x') }));
      await client.closed;
      const said = client.messages.at(-1)!.text;
      assert.equal(
        said,
        'ERROR INVALID_OFFER The SDP offer could not be used: it is longer than 65536 characters.',
      );
      assert.ok(performance.now() - startMs < 1000 * patience());
    }
  });

  test('DONE before the offer ends with STOP', async () => {
    const client = await open();
    client.send('DONE');
    await client.closed;
    assert.match(client.messages.at(-1)!.text, /^STOP/);
  });

  test('a session without an offer ends after thirty seconds, not before', async () => {
    const client = await open();
    const startMs = performance.now();
    await client.closed;
    const tookMs = performance.now() - startMs;
    assert.match(client.messages.at(-1)!.text, /^ERROR OFFER_TIMEOUT/);
    assert.ok(
      tookMs > 29_000 && tookMs < 30_000 + 3000 * patience(),
      `after ${tookMs.toFixed(0)} ms`,
    );
  });

  for (const codec of ['vp8', 'h264'] as const) {
    test(`a second WebRTC stack, ${codec}: media flows, speech is announced, DONE ends it`, async () => {
      const peer = await WeriftPeer.connect(server, await createToken(server), codec);
      try {
        await sleep(1500);
        assert.ok(
          peer.video.packets.length > 30,
          `${peer.video.packets.length} video packets in 1.5 s`,
        );
        assert.ok(
          peer.audio.packets.length > 60,
          `${peer.audio.packets.length} audio packets in 1.5 s`,
        );
        const { pcm } = await synthesize('Hello there.');
        const messages = peer.socket.speak(pcm);
        peer.socket.send('DONE');
        await peer.socket.waitFor('STOP');
        await peer.socket.closed;
        const words = peer.socket.words.filter((word) => !word.startsWith('{'));
        assert.deepEqual(
          words.filter((word) => word !== 'ACK'),
          ['START', 'SPEAK', 'SILENT', 'STOP'],
        );
        assert.equal(words.filter((word) => word === 'ACK').length, messages);
      } finally {
        await peer.close();
      }
    });
  }

  test('a further offer of a live connection is answered; one of no use changes nothing', async () => {
    const peer = await WeriftPeer.connect(server, await createToken(server));
    try {
      const offerAgain = (sdp: string): void => {
        peer.socket.send(JSON.stringify({ type: 'offer', sdp }));
      };
      const answers = (): string[] =>
        peer.socket.messages
          .filter(({ text }) => text.startsWith('{"sdp"'))
          .map(({ text }) => (JSON.parse(text) as { sdp: string }).sdp);
      const before = answers()[0]!;
      offerAgain(peer.offerSdp);
      await until(() => answers().length === 2);
      const line = (sdp: string, name: string): string =>
        new RegExp(`^${name}.*$`, 'm').exec(sdp)![0];
      for (const name of ['a=ice-ufrag', 'a=fingerprint', 'm=video']) {
        assert.equal(line(answers()[1]!, name), line(before, name));
      }
      offerAgain('nonsense');
      offerAgain(peer.offerSdp.replaceAll('a=mid:', 'a=mid:other'));
      await until(() => peer.socket.words.filter((word) => word === 'RATE').length === 2);
      const told = peer.socket.messages.filter(({ text }) => text.startsWith('RATE'));
      assert.deepEqual(
        told.map(({ text }) => text),
        ['RATE offer_refused', 'RATE offer_refused'],
      );
      const arrived = peer.video.packets.length;
      await until(() => peer.video.packets.length > arrived + 20);
      const facts = peer.socket.messages.filter(({ text }) => text.startsWith('{"destination"'));
      assert.equal(facts.length, 1, 'the facts of the session are told once');
      for (let i = 0; i < 15; i++) {
        offerAgain(peer.offerSdp);
      }
      await until(
        () => peer.socket.messages.filter(({ text }) => text.startsWith('RATE')).length > 2,
      );
      assert.equal(peer.socket.words.includes('STOP'), false);
    } finally {
      await peer.close();
    }
  });

  test('sender reports put audio and video on one clock, the wall clock', async () => {
    const peer = await WeriftPeer.connect(server, await createToken(server));
    try {
      await sleep(3500);
      for (const [stream, rate] of [
        [peer.video, 90_000],
        [peer.audio, 48_000],
      ] as const) {
        assert.ok(stream.clock.length >= 2, `${stream.clock.length} sender reports in 3.5 s`);
        const [first, last] = [stream.clock[0]!, stream.clock.at(-1)!];
        const drift = (((last.rtp - first.rtp) | 0) * 1000) / rate - (last.ntpMs - first.ntpMs);
        assert.ok(Math.abs(drift) < 2, `RTP and NTP time part by ${drift.toFixed(1)} ms`);
      }
      const ntpNowMs = Date.now() + 2_208_988_800_000;
      const newest = [peer.video, peer.audio].map((stream, n) =>
        senderMs(stream, stream.packets.at(-1)!.header.timestamp, n === 0 ? 90_000 : 48_000),
      );
      for (const atMs of newest) {
        assert.ok(
          Math.abs(ntpNowMs - atMs) < 250 * patience(),
          `the newest packet is ${(ntpNowMs - atMs).toFixed(0)} ms old by its sender's clock`,
        );
      }
      assert.ok(
        Math.abs(newest[0]! - newest[1]!) < 80 * patience(),
        `picture and sound that arrive together are ${(newest[0]! - newest[1]!).toFixed(0)} ms apart`,
      );
    } finally {
      await peer.close();
    }
  });

  test('a client that offers only audio gets the speech, and no video is encoded', async () => {
    const token = await createToken(server);
    const peer = await WeriftPeer.connect(server, token, 'vp8', ['audio']);
    try {
      const from = peer.socket.messages.length;
      peer.socket.speak((await synthesize('Sound alone.')).pcm);
      await peer.socket.waitFor('SPEAK', { from });
      await peer.socket.waitFor('SILENT', { from });
      assert.ok(
        peer.audio.packets.filter(({ payload }) => payload.length > 20).length > 20,
        'speech arrives',
      );
      const id = (
        JSON.parse(peer.socket.messages.find(({ text }) => text.includes('session_id'))!.text) as {
          session_id: string;
        }
      ).session_id;
      const { body } = await call(server, `/sessions/${id}/stats`);
      assert.deepEqual([body.codec, body.framesSent, body.keyFrames], ['', 0, 0]);
    } finally {
      await peer.close();
    }
  });
});

describe('the documents of the running server', () => {
  test('refused requests get the status, code and body of the OpenAPI document', async () => {
    const documents = await Documents.of(server);
    const { body: session } = await call(server, '/sessions', { faceId: 'ava' });
    const { body: agent } = await call(server, '/auto/agent', { face_id: 'ava' });
    const { body: auto } = await call(server, '/auto/token', {});
    try {
      for (const { operation, path, init, status, code } of refusals({
        sessionId: session.sessionId,
        viewerToken: session.tokens.viewer,
        agentId: agent.id,
        autoToken: auto.token,
      })) {
        const reply = await fetch(server.url + path, {
          ...init,
          headers: { 'x-service-api-key': server.apiKey, ...init?.headers },
        });
        const told = (await reply.json()) as Record<string, unknown>;
        assert.deepEqual([reply.status, told['code']], [status, code], `${operation} ${path}`);
        documents.checkRefusal(operation, reply, told);
      }
    } finally {
      await call(server, `/sessions/${session.sessionId}`, undefined, { method: 'DELETE' });
    }
  });

  test('refused sockets and commands are told as the AsyncAPI document says', async () => {
    const documents = await Documents.of(server);
    const offer = JSON.stringify({ type: 'offer', sdp: 'v=0' });
    const refusedAs = async (
      code: string,
      token: string,
      address: string,
      sent?: string | Uint8Array<ArrayBuffer>,
    ): Promise<void> => {
      for (const query of ['', '?events=json']) {
        const client = await WsClient.open(server, token, address + query);
        if (sent !== undefined) {
          client.send(sent);
        }
        await client.closed;
        const last = client.messages.at(-1)!.text;
        const isEvent = query !== '' || address === '/sessions/agent';
        const told = isEvent ? (JSON.parse(last) as { code: string }).code : last.split(' ')[1];
        assert.equal(told, code, `${address}: ${last}`);
        documents.checkMessage(address, isEvent ? 'errorEvent' : 'error', last);
      }
    };
    const p2p = '/compose/webrtc/p2p';
    for (const address of [p2p, '/compose/webrtc/livekit', '/sessions/agent']) {
      await refusedAs('INVALID_SESSION_TOKEN', 'wrong', address);
    }
    const token = await createToken(server);
    await refusedAs('INVALID_OFFER', token, p2p, offer);
    await refusedAs('MESSAGE_TOO_LARGE', token, p2p, new Uint8Array((1 << 20) + 2));
    const first = await WsClient.open(server, token);
    first.send('ping 1');
    await first.waitFor('pong');
    await refusedAs('SESSION_IN_USE', token, p2p);
    await first.close();

    const { body: session } = await call(server, '/sessions', { faceId: 'ava' });
    const agent = await WsClient.open(server, session.tokens.agent, '/sessions/agent');
    agent.send('{"type":"emotion","emotion":"furious"}');
    await agent.waitFor('{"type":"rejected"');
    await call(server, `/sessions/${session.sessionId}`, undefined, { method: 'DELETE' });
    await agent.closed;
    const types = agent.messages.map(({ text }) => {
      const { type } = JSON.parse(text) as { type: string };
      documents.checkMessage('/sessions/agent', `${type}Event`, text);
      return type;
    });
    assert.deepEqual(types, ['session', 'video', 'viewer', 'rejected', 'stopped']);
  });
});

test('afterwards no session is left', async () => {
  const { body } = await call(server, '/metrics');
  const live = [...String(body).matchAll(/^mouthpiece_sessions\{[^}]*\} (\d+)/gm)].map(
    ([, count]) => Number(count),
  );
  assert.ok(live.length > 0);
  assert.equal(
    live.reduce((sum, count) => sum + count, 0),
    0,
  );
});
