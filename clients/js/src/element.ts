// <mouthpiece-avatar>: the face as an element of a page, without any build.
import { chromaKey } from './chroma-key.ts';
import { type ConnectOptions, Session } from './session.ts';
import type { SpeechSource } from './speech.ts';
import type { SpeakOptions } from './speech-queue.ts';
import { Viewer, type ViewerOptions } from './viewer.ts';

const STYLE = `
  :host { display: inline-block; position: relative; aspect-ratio: 1; width: 512px; max-width: 100%; }
  :host([hidden]) { display: none; }
  video, canvas {
    width: 100%; height: 100%; object-fit: cover; border-radius: inherit; display: block;
  }
  canvas { position: absolute; inset: 0; pointer-events: none; }
  button {
    position: absolute; inset-inline: 0; bottom: 1rem; margin: auto; width: max-content;
    font: inherit; padding: 0.5rem 1rem; border: 0; border-radius: 2rem; cursor: pointer;
    background: #000c; color: #fff;
  }
  [hidden] { display: none; }
`;

/** Events of the session that the element fires too, under the same names. */
const EVENTS = [
  'started',
  'speaking',
  'silent',
  'state',
  'conversation',
  'reconnecting',
  'autoplay',
  'end',
] as const;
/** Those of a viewer. */
const VIEWER_EVENTS = ['started', 'state', 'reconnecting', 'autoplay', 'end'] as const;

/**
 * The element. Attributes:
 * - `viewer-url`: of a session that an agent on your server speaks in. The element only watches.
 * - `token`: the session token. Setting it connects; removing it ends the session.
 * - `token-url`: a path of your own server that answers a POST with `{"session_token": …}` or
 *   `{"viewerUrl": …}`. It is asked when the element is connected to the page, unless `viewer-url`
 *   or `token` is set.
 * - `base-url`: address of the service; default: the server that this script came from.
 * - `chroma-key`: the green of a face made with `background: green` is transparent; or the colour
 *   that it names as #rrggbb.
 * - `label`: what screen readers say; default: "Talking face".
 *
 * `speak`, `interrupt` and `finish` are those of `Session`, which is at `session`.
 */
export class MouthpieceAvatar extends HTMLElement {
  static readonly observedAttributes = ['viewer-url', 'token', 'token-url', 'label', 'chroma-key'];

  /** The live session; null when there is none. */
  session: Session | null = null;
  /** What watches a session of an agent; null when there is none. */
  viewer: Viewer | null = null;
  /** Further options of the session, such as `iceServers`: set them before the token. */
  options: Partial<ConnectOptions & ViewerOptions> = {};

  readonly #video = document.createElement('video');
  readonly #unmute = document.createElement('button');
  #endKey: (() => void) | undefined = undefined;
  /** Changed by each new token: a reply that comes later is of no use. */
  #round = 0;

  constructor() {
    super();
    const root = this.attachShadow({ mode: 'open' });
    // A constructed style sheet needs no 'unsafe-inline' in the policy of the page.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    this.#video.setAttribute('part', 'video');
    this.#video.playsInline = true;
    this.#unmute.setAttribute('part', 'unmute');
    this.#unmute.type = 'button';
    this.#unmute.textContent = 'Turn on the sound';
    this.#unmute.hidden = true;
    this.#unmute.onclick = () => (this.session ?? this.viewer)?.unmute();
    root.append(this.#video, this.#unmute);
  }

  connectedCallback(): void {
    this.#label();
    this.#key();
    this.#begin();
  }

  disconnectedCallback(): void {
    this.#key();
    this.close();
  }

  attributeChangedCallback(name: string, before: string | null, value: string | null): void {
    if (name === 'label') {
      this.#label();
    } else if (name === 'chroma-key') {
      this.#key();
    } else if (this.isConnected && before !== value) {
      this.#begin();
    }
  }

  /** Connects, if need be, and appends speech. @throws SessionError, or when there is no token */
  async speak(source: SpeechSource, options?: SpeakOptions): Promise<boolean> {
    if (this.session === null) {
      throw new Error(
        this.viewer === null
          ? '<mouthpiece-avatar> has no session: set its token or token-url.'
          : '<mouthpiece-avatar> only watches: its agent speaks.',
      );
    }
    return await this.session.speak(source, options);
  }

  interrupt(): void {
    this.session?.interrupt();
  }

  async finish(): Promise<void> {
    await this.session?.finish();
  }

  /** Ends the session. */
  close(): void {
    this.#round++;
    this.session?.close();
    this.viewer?.close();
    this.session = null;
    this.viewer = null;
  }

  #label(): void {
    this.#video.setAttribute('aria-label', this.getAttribute('label') ?? 'Talking face');
  }

  /** Shows the picture on a canvas whose background is transparent, or ends that. */
  #key(): void {
    this.#endKey?.();
    this.#endKey = undefined;
    const colour = this.getAttribute('chroma-key');
    if (colour === null || !this.isConnected) {
      return;
    }
    const canvas = document.createElement('canvas');
    canvas.setAttribute('part', 'canvas');
    canvas.ariaHidden = 'true';
    const end = chromaKey(this.#video, canvas, colour.startsWith('#') ? { colour } : {});
    this.#video.after(canvas);
    this.#video.style.opacity = '0';
    this.#endKey = () => {
      end();
      canvas.remove();
      this.#video.style.opacity = '';
    };
  }

  #begin(): void {
    this.close();
    const viewerUrl = this.getAttribute('viewer-url');
    const token = this.getAttribute('token');
    const url = this.getAttribute('token-url');
    if (viewerUrl) {
      this.#watch(viewerUrl);
    } else if (token) {
      this.#connect(token);
    } else if (url) {
      this.#fetchToken(url).catch((error: unknown) => {
        this.dispatchEvent(new CustomEvent('end', { detail: { reason: 'error', error } }));
      });
    }
  }

  async #fetchToken(url: string): Promise<void> {
    const round = this.#round;
    const response = await fetch(url, { method: 'POST' });
    const { session_token: token, viewerUrl } = (await response.json()) as {
      session_token?: string;
      viewerUrl?: string;
    };
    if (!response.ok || !(token || viewerUrl)) {
      throw new Error(`${url} gave no session_token and no viewerUrl: HTTP ${response.status}.`);
    }
    if (round !== this.#round) {
      return;
    }
    if (viewerUrl) {
      this.#watch(viewerUrl);
    } else {
      this.#connect(token!);
    }
  }

  #watch(viewerUrl: string): void {
    const viewer = new Viewer({ ...this.options, viewerUrl, video: this.#video });
    this.viewer = viewer;
    for (const name of VIEWER_EVENTS) {
      viewer.on(name, (detail) => {
        this.dispatchEvent(new CustomEvent(name, { detail }));
      });
    }
    viewer.on('state', (state) => this.setAttribute('state', state));
    viewer.on('autoplay', ({ muted }) => {
      this.#unmute.hidden = !muted;
    });
    viewer.on('end', () => {
      if (this.viewer === viewer) {
        this.viewer = null;
      }
    });
  }

  #connect(sessionToken: string): void {
    const session = new Session({
      baseUrl: this.getAttribute('base-url') ?? new URL(import.meta.url).origin,
      ...this.options,
      sessionToken,
      video: this.#video,
    });
    this.session = session;
    for (const name of EVENTS) {
      session.on(name, (detail) => {
        this.dispatchEvent(new CustomEvent(name, { detail }));
      });
    }
    session.on('state', (state) => this.setAttribute('state', state));
    session.on('autoplay', ({ muted }) => {
      this.#unmute.hidden = !muted;
    });
    session.on('end', () => {
      if (this.session === session) {
        this.session = null;
      }
    });
  }
}

if (!customElements.get('mouthpiece-avatar')) {
  customElements.define('mouthpiece-avatar', MouthpieceAvatar);
}
