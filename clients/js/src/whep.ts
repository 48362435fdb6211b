// One peer connection of a viewer, negotiated over HTTP: WHEP (draft-ietf-wish-whep).
import { type Codec, preferCodec } from './connection.ts';
import { SessionError } from './events.ts';

/** What a connection is made from. */
export interface WhepOptions {
  readonly viewerUrl: string | URL;
  /** Default: the one in the URL. */
  readonly token: string | undefined;
  /** Undefined: those that the server names. */
  readonly iceServers: RTCIceServer[] | undefined;
  readonly iceTransportPolicy: RTCIceTransportPolicy;
  readonly codec: Codec | undefined;
  readonly onTrack: (track: MediaStreamTrack) => void;
  /** Media can flow: at first, and after each restart of ICE. */
  readonly onConnected: () => void;
  /** The network path was lost, and another one is looked for. */
  readonly onRestart: () => void;
  /** Once: the peer connection is of no use any more. */
  readonly onEnd: (error: SessionError) => void;
}

const FRAGMENT = 'application/trickle-ice-sdpfrag';
/** A path that is lost for so long is given up. Shorter gaps end by themselves. */
const DISCONNECTED_MS = 2000;
/** Candidates are sent together. */
const CANDIDATES_MS = 50;

/** A peer connection, from its offer to its end. */
export class WhepConnection {
  readonly peer: RTCPeerConnection;
  readonly #options: WhepOptions;
  /** The URL of the peer connection. */
  #resource: URL | undefined = undefined;
  #etag = '';
  #answer = '';
  #candidates: string[] = [];
  #candidatesTimer: ReturnType<typeof setTimeout> | undefined = undefined;
  #lostTimer: ReturnType<typeof setTimeout> | undefined = undefined;
  #isRestarting = false;
  #isOver = false;

  constructor(options: WhepOptions) {
    this.#options = options;
    this.peer = new RTCPeerConnection({
      iceServers: options.iceServers ?? [],
      iceTransportPolicy: options.iceTransportPolicy,
      bundlePolicy: 'max-bundle',
    });
    this.peer.ontrack = ({ track, receiver }) => {
      // Ask for the shortest delay that the network allows. Some browsers ignore it.
      if ('jitterBufferTarget' in receiver) {
        receiver.jitterBufferTarget = 0;
      }
      options.onTrack(track);
    };
    this.peer.onicecandidate = ({ candidate }) => this.#trickle(candidate);
    this.peer.onconnectionstatechange = () => this.#watch();
    this.#offer().catch((error: unknown) => this.#end(asSessionError(error, 'OFFER_FAILED')));
  }

  /** Stops watching; the server is told. */
  close(): void {
    this.#isOver = true;
    clearTimeout(this.#candidatesTimer);
    clearTimeout(this.#lostTimer);
    this.peer.close();
    if (this.#resource) {
      // `keepalive`: the page may be on its way out.
      fetch(this.#resource, { method: 'DELETE', keepalive: true }).catch(() => {});
    }
  }

  async #offer(): Promise<void> {
    const { viewerUrl, token, codec, iceServers } = this.#options;
    const video = this.peer.addTransceiver('video', { direction: 'recvonly' });
    this.peer.addTransceiver('audio', { direction: 'recvonly' });
    if (codec) {
      preferCodec(video, codec);
    }
    const offer = await this.peer.createOffer();
    const response = await ask(viewerUrl, 'POST', offer.sdp!, {
      'content-type': 'application/sdp',
      ...(token && { authorization: `Bearer ${token}` }),
    });
    const answer = await response.text();
    this.#resource = new URL(response.headers.get('location')!, response.url);
    if (this.#isOver) {
      this.close();
      return;
    }
    this.#etag = response.headers.get('etag') ?? '';
    if (iceServers === undefined) {
      // The answer names them, so candidates are gathered only now.
      const named = iceServersOf(response.headers.get('link') ?? '');
      this.peer.setConfiguration({ ...this.peer.getConfiguration(), iceServers: named });
    }
    await this.peer.setLocalDescription(offer);
    await this.#accept(answer);
    const { transport } = this.peer.getReceivers()[0]!;
    transport?.addEventListener('statechange', () => {
      if (transport.state === 'closed' || transport.state === 'failed') {
        this.#lost();
      }
    });
  }

  async #accept(sdp: string): Promise<void> {
    this.#answer = sdp;
    await this.peer.setRemoteDescription({ type: 'answer', sdp });
  }

  #trickle(candidate: RTCIceCandidate | null): void {
    this.#candidates.push(
      candidate?.candidate ? `a=${candidate.candidate}` : 'a=end-of-candidates',
    );
    this.#candidatesTimer ??= setTimeout(() => {
      this.#candidatesTimer = undefined;
      const sdp = this.peer.localDescription?.sdp;
      if (this.#resource && sdp && !this.#isOver) {
        const body = fragmentOf(sdp, [...new Set(this.#candidates.splice(0))]);
        // Without them the server answers the checks that come from there.
        this.#patch(body, this.#etag).catch(() => {});
      }
    }, CANDIDATES_MS);
  }

  async #patch(body: string, ifMatch: string): Promise<Response> {
    return await ask(this.#resource!, 'PATCH', body, {
      'content-type': FRAGMENT,
      ...(ifMatch && { 'if-match': ifMatch }),
    });
  }

  #watch(): void {
    const { connectionState } = this.peer;
    clearTimeout(this.#lostTimer);
    if (connectionState === 'connected') {
      this.#isRestarting = false;
      this.#options.onConnected();
    } else if (connectionState === 'failed') {
      this.#lost();
    } else if (connectionState === 'disconnected') {
      this.#lostTimer = setTimeout(() => this.#lost(), DISCONNECTED_MS);
    }
  }

  /** Tries a restart of ICE first: it says too whether somebody else watches now. */
  #lost(): void {
    if (this.#isOver) {
      return;
    }
    if (this.#isRestarting || !this.#resource) {
      if (this.peer.connectionState === 'failed') {
        this.#end(new SessionError('ICE_FAILED'));
      }
      return;
    }
    this.#isRestarting = true;
    this.#options.onRestart();
    this.#restart().catch((error: unknown) => {
      const failed = asSessionError(error, 'ICE_FAILED');
      this.#end(failed.code === 'NOT_FOUND' ? new SessionError('PEER_LOST') : failed);
    });
  }

  async #restart(): Promise<void> {
    const offer = await this.peer.createOffer({ iceRestart: true });
    const response = await this.#patch(fragmentOf(offer.sdp!, []), '*');
    const fragment = await response.text();
    this.#etag = response.headers.get('etag') ?? '';
    await this.peer.setLocalDescription(offer);
    await this.#accept(withFragment(this.#answer, fragment));
    // Where the path came back by itself meanwhile, no change follows.
    if (this.peer.connectionState === 'connected') {
      this.#watch();
    }
  }

  #end(error: SessionError): void {
    if (!this.#isOver) {
      this.close();
      this.#options.onEnd(error);
    }
  }
}

/** @throws SessionError with the code of the server, or CONNECTION_LOST */
async function ask(
  url: string | URL,
  method: string,
  body: string,
  headers: Record<string, string>,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { method, body, headers });
  } catch (error) {
    throw new SessionError('CONNECTION_LOST', String(error));
  }
  if (!response.ok) {
    const { code, error } = (await response.json().catch(() => ({}))) as {
      code?: string;
      error?: string;
    };
    throw new SessionError(code ?? `HTTP_${response.status}`, error);
  }
  return response;
}

const asSessionError = (error: unknown, code: string): SessionError =>
  error instanceof SessionError ? error : new SessionError(code, String(error));

const linesOf = (sdp: string): string[] => sdp.split(/\r?\n/).filter((line) => line !== '');
const CREDENTIALS = /^a=ice-(?:ufrag|pwd):/;
const CANDIDATE = /^a=(?:candidate:|end-of-candidates)/;

/** Credentials and candidates of a description, as PATCH takes them (RFC 8840). */
function fragmentOf(sdp: string, candidates: readonly string[]): string {
  const lines = linesOf(sdp);
  const first = (beginning: string): string[] =>
    lines.filter((line) => line.startsWith(beginning)).slice(0, 1);
  return [
    ...first('a=ice-ufrag:'),
    ...first('a=ice-pwd:'),
    ...first('m='),
    ...first('a=mid:'),
    ...candidates,
    '',
  ].join('\r\n');
}

/** An answer with the credentials and candidates of a fragment. */
function withFragment(answer: string, fragment: string): string {
  const told = linesOf(fragment);
  const candidates = told.filter((line) => CANDIDATE.test(line));
  return [
    ...linesOf(answer)
      .filter((line) => !CANDIDATE.test(line))
      .flatMap((line) => {
        const name = CREDENTIALS.exec(line)?.[0];
        if (name === undefined) {
          return [line];
        }
        const renewed = told.find((one) => one.startsWith(name)) ?? line;
        return name === 'a=ice-pwd:' ? [renewed, ...candidates.splice(0)] : [renewed];
      }),
    '',
  ].join('\r\n');
}

/** The ICE servers of a header Link (RFC 8288). */
function iceServersOf(header: string): RTCIceServer[] {
  return header.split(/,\s*(?=<)/).flatMap((link) => {
    const urls = /^<([^>]+)>\s*;.*\brel="?ice-server/.exec(link)?.[1];
    const value = (name: string): string | undefined =>
      new RegExp(`\\b${name}="([^"]*)"`).exec(link)?.[1];
    const [username, credential] = [value('username'), value('credential')];
    return urls ? [{ urls, ...(username && { username }), ...(credential && { credential }) }] : [];
  });
}
