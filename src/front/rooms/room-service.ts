// The rooms of the operator's LiveKit server: makes and deletes them, over its Twirp API in JSON.
import { wallSeconds } from '../../base/time.ts';
import { type LiveKitKey, signAccessToken } from './access-token.ts';

/** The operator's LiveKit server: LIVEKIT_URL, LIVEKIT_API_KEY, LIVEKIT_API_SECRET. */
export interface OperatorServer extends LiveKitKey {
  /** ws: or wss:, as clients reach it too. */
  readonly url: string;
}

const REQUEST_TIMEOUT_MS = 3000;
const TOKEN_TTL_SECONDS = 60;
/** Seconds for which the server keeps a room that everybody has left, should we not delete it. */
const EMPTY_SECONDS = 60;
/**
 * Video waits for this long at the viewer. An SFU passes picture and sound on without a common
 * clock; without this the picture is 15 to 85 ms ahead of the sound (measured).
 */
const PLAYOUT_DELAY_MS = 30;

/** Calls the server. */
export class RoomService {
  readonly #server: OperatorServer;

  constructor(server: OperatorServer) {
    this.#server = server;
  }

  /** @throws Error that says what the server answered */
  async create(name: string): Promise<void> {
    await this.#call('CreateRoom', name, {
      name,
      empty_timeout: EMPTY_SECONDS,
      departure_timeout: EMPTY_SECONDS,
      min_playout_delay: PLAYOUT_DELAY_MS,
    });
  }

  /** Sends everybody away. @throws Error that says what the server answered */
  async delete(name: string): Promise<void> {
    await this.#call('DeleteRoom', name, { room: name });
  }

  async #call(method: string, room: string, body: unknown): Promise<void> {
    const claims = { identity: 'mouthpiece', video: { room, roomCreate: true, roomAdmin: true } };
    const token = signAccessToken(this.#server, claims, TOKEN_TTL_SECONDS, wallSeconds());
    const base = this.#server.url.replace(/^ws/, 'http').replace(/\/$/, '');
    const response = await fetch(`${base}/twirp/livekit.RoomService/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    const text = await response.text();
    if (!response.ok && response.status !== 404) {
      throw new Error(`${method}: HTTP ${response.status} ${text.slice(0, 200)}`);
    }
  }
}
