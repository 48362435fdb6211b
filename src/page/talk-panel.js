// The panel that starts a conversation with the chosen face: its room opens in a tab of its own.
// @ts-check
import { request, RequestError } from './client.js';
import { errorMessage } from './messages.js';

/** How long to wait while the server installs what conversations need. */
const RETRY_MS = 5000;

/**
 * @param {{ start: HTMLButtonElement, status: HTMLElement, link: HTMLElement }} elements
 * @param {() => { apiKey: string, faceId: string } | undefined} order What to talk to; undefined: no
 * face is chosen yet.
 */
export function startTalkPanel({ start, status, link }, order) {
  const anchor = /** @type {HTMLAnchorElement} */ (link.querySelector('a'));

  async function open() {
    const wanted = order();
    if (wanted === undefined) {
      status.textContent = 'Choose a face first.';
      return;
    }
    start.disabled = true;
    link.hidden = true;
    status.textContent = 'Opening a room…';
    try {
      anchor.href = await roomOf(wanted);
      status.textContent = 'The room is ready. It opens once, within two minutes.';
      link.hidden = false;
      anchor.focus();
    } catch (error) {
      status.textContent = errorMessage(error);
    } finally {
      start.disabled = false;
    }
  }

  /** @param {{ apiKey: string, faceId: string }} wanted @returns {Promise<string>} */
  async function roomOf({ apiKey, faceId }) {
    for (;;) {
      try {
        const { roomUrl } = await request('/auto/start/configurable', {
          apiKey,
          json: {
            faceId,
            firstMessage: 'Hello! I am listening. What is on your mind?',
            llmConfig: { provider: 'local' },
          },
        });
        return roomUrl;
      } catch (error) {
        if (!(error instanceof RequestError) || error.code !== 'CONVERSATIONS_INSTALLING') {
          throw error;
        }
        status.textContent =
          'The server is installing what conversations need. This takes half a minute, once.';
        await new Promise((resolve) => {
          setTimeout(resolve, RETRY_MS);
        });
      }
    }
  }

  start.addEventListener('click', () => void open());
  anchor.addEventListener('click', () => {
    link.hidden = true;
    status.textContent = '';
  });
}
