// Local servers that speak ElevenLabs', Cartesia's and Deepgram's WebSocket protocols. The plug-ins of
// @livekit/agents for these services are their judges (provider-sockets.test.ts).
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { sleep } from '../../src/base/time.ts';
import { SPEECH_RATE } from '../../src/media/timeline.ts';
import { synthesize } from '../harness/speech.ts';
import type { Behaviour } from './provider-server.ts';

type Note = (kind: string, detail?: string) => void;
type Message = Record<string, any>;

/** Samples of one message of a voice: 250 ms. */
const PIECE = SPEECH_RATE / 4;

const base64 = (pcm: Int16Array): string =>
  Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength).toString('base64');
const send = (socket: WebSocket, message: Message): void => {
  socket.send(JSON.stringify(message));
};

/** Messages of a socket, one after another. */
function serially(socket: WebSocket, handle: (message: Message) => Promise<void>): void {
  let last = Promise.resolve();
  socket.on('message', (data: Buffer, isBinary) => {
    const message = isBinary ? { pcm: data } : (JSON.parse(data.toString()) as Message);
    last = last.then(() => handle(message)).catch(() => socket.terminate());
  });
}

/** The sound of a text in pieces, with the time at which each of its words begins. */
async function spoken(text: string): Promise<{
  readonly pieces: readonly Int16Array[];
  readonly words: readonly { readonly text: string; readonly startMs: number }[];
  readonly durationMs: number;
}> {
  const { pcm, durationMs } = await synthesize(text, 'rms');
  const words = [...text.matchAll(/\S+\s*/g)].map(({ 0: word, index }) => ({
    text: word,
    startMs: Math.round((durationMs * index) / text.length),
  }));
  const pieces = Array.from({ length: Math.ceil(pcm.length / PIECE) }, (_, k) =>
    pcm.subarray(k * PIECE, (k + 1) * PIECE),
  );
  return { pieces, words, durationMs };
}

/** Serves the sockets of `server`. */
export function serveSockets(server: Server, behaviour: Behaviour, note: Note): WebSocketServer {
  const sockets = new WebSocketServer({ noServer: true });

  /** What goes wrong, if anything. @returns whether the service goes on */
  async function survives(socket: WebSocket, path: string, error: Message): Promise<boolean> {
    switch (behaviour.fault.get(path)) {
      case 'cut':
        socket.terminate();
        return false;
      case 'garbage':
        socket.send('{"audio": ');
        return false;
      case 'silence':
        return false;
      case 'error':
        send(socket, error);
        return false;
      default:
        await sleep(behaviour.voiceMs);
        return true;
    }
  }

  function elevenLabs(socket: WebSocket): void {
    let startMs = 0;
    let isDead = false;
    serially(socket, async ({ text, context_id: contextId, close_context: isClose }) => {
      const context = { contextId };
      if (isDead) {
        return;
      }
      if (isClose === true) {
        send(socket, { isFinal: true, ...context });
        return;
      }
      if (text.trim() === '') {
        return;
      }
      note('speech', text.trim());
      const { pieces, durationMs } = await spoken(text.trim());
      const step = durationMs / text.length;
      const chars = (text as string).split('');
      for (const [index, piece] of pieces.entries()) {
        // The fault comes after the first piece.
        const error = { error: behaviour.error, code: 1008, ...context };
        if (index === 1 && !(await survives(socket, 'elevenlabs', error))) {
          isDead = true;
          return;
        }
        const alignment = {
          chars,
          charStartTimesMs: chars.map((_, k) => Math.round(startMs + k * step)),
          charDurationsMs: chars.map(() => Math.round(step)),
        };
        send(socket, {
          audio: base64(piece),
          ...(index === 0 && { alignment, normalizedAlignment: alignment }),
          ...context,
        });
      }
      startMs += durationMs;
    });
  }

  function cartesia(socket: WebSocket): void {
    let startMs = 0;
    let isDead = false;
    serially(socket, async (request) => {
      if (isDead) {
        return;
      }
      const { context_id: id, transcript, continue: isMore } = request;
      const common = { context_id: id, done: false, status_code: 206 };
      if (transcript.trim() !== '') {
        note('speech', transcript.trim());
        note('cartesia', JSON.stringify(request));
        const { pieces, words, durationMs } = await spoken(transcript.trim());
        send(socket, {
          type: 'timestamps',
          ...common,
          word_timestamps: {
            words: words.map(({ text }) => text.trim()),
            start: words.map((word) => (startMs + word.startMs) / 1000),
            end: words.map((word) => (startMs + word.startMs + 100) / 1000),
          },
        });
        for (const [index, piece] of pieces.entries()) {
          const error = { type: 'error', ...common, error: behaviour.error, status_code: 500 };
          if (index === 1 && !(await survives(socket, 'cartesia', error))) {
            isDead = true;
            return;
          }
          send(socket, { type: 'chunk', ...common, step_time: 1, data: base64(piece) });
        }
        startMs += durationMs;
      }
      if (isMore !== true) {
        send(socket, { type: 'done', ...common, done: true, status_code: 200 });
      }
    });
  }

  function deepgram(socket: WebSocket): void {
    let samples = 0;
    let from = 0;
    const results = (transcript: string, isFinal: boolean, isForced: boolean): void => {
      const start = from / SPEECH_RATE;
      send(socket, {
        type: 'Results',
        channel_index: [0, 1],
        start,
        duration: samples / SPEECH_RATE - start,
        is_final: isFinal,
        speech_final: isFinal,
        from_finalize: isForced,
        metadata: { request_id: 'r' },
        channel: {
          alternatives: [
            {
              transcript,
              confidence: 1,
              words: transcript
                .split(' ')
                .filter((word) => word !== '')
                .map((word, k) => ({ word, start: start + k / 10, end: start + k / 10 + 0.1 })),
            },
          ],
        },
      });
      from = isFinal ? samples : from;
    };
    let isSpeech = false;
    serially(socket, async (message) => {
      if (message['pcm'] !== undefined) {
        const bytes = message['pcm'] as Buffer;
        samples += bytes.length / 2;
        const isLoud = bytes.some((_, k) => k % 2 === 0 && Math.abs(bytes.readInt16LE(k)) > 3000);
        if (isLoud && !isSpeech) {
          isSpeech = true;
          send(socket, { type: 'SpeechStarted', channel: [0], timestamp: samples / SPEECH_RATE });
          const said = behaviour.transcripts[0] ?? '';
          results(said.split(' ')[0]!, false, false);
        }
      } else if (message['type'] === 'Finalize') {
        const fault = behaviour.fault.get('deepgram');
        note('finalize');
        if (fault === 'cut') {
          behaviour.fault.delete('deepgram');
          socket.terminate();
          return;
        }
        if (fault === 'silence' || fault === 'garbage') {
          if (fault === 'garbage') {
            socket.send('<html>');
          }
          return;
        }
        await sleep(behaviour.recogniserMs);
        results(isSpeech ? (behaviour.transcripts.shift() ?? '') : '', true, true);
        isSpeech = false;
      } else {
        note(String(message['type']));
      }
    });
  }

  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const { url = '', headers } = request;
    const [name, serve] = url.includes('/multi-stream-input')
      ? (['elevenlabs', elevenLabs] as const)
      : url.includes('/tts/websocket')
        ? (['cartesia', cartesia] as const)
        : (['deepgram', deepgram] as const);
    const key = headers['xi-api-key'] ?? headers['x-api-key'] ?? headers.authorization;
    const status = String(key).endsWith('wrong') ? 401 : behaviour.status.get(name);
    note('socket', `${url} ${String(key)}`);
    if (status !== undefined) {
      socket.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
      return;
    }
    sockets.handleUpgrade(request, socket, head, serve);
  });
  return sockets;
}
