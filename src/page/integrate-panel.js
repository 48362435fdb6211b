// The panel that writes the code for the face on the screen.
// @ts-check
import { SNIPPETS } from './snippets.js';

/** How long the button says that it has copied. */
const COPIED_MS = 2000;

/**
 * @param {HTMLElement} panel
 * @param {() => import('./snippets.js').Shown | undefined} shown What is on the screen.
 * @returns Writes the code anew.
 */
export function startIntegratePanel(panel, shown) {
  const list = /** @type {HTMLElement} */ (panel.querySelector('.snippets'));
  const said = /** @type {HTMLElement} */ (panel.querySelector('.status'));

  let written = '';

  function write() {
    const face = shown();
    const chosen = panel.querySelector('input:checked');
    const name = chosen instanceof HTMLInputElement ? chosen.value : 'html';
    const made = face && SNIPPETS[name] ? SNIPPETS[name](face) : [];
    const text = JSON.stringify(made);
    if (text === written) {
      return; // what has the focus stays
    }
    written = text;
    list.replaceChildren(...made.map((snippet) => figureOf(snippet)));
    said.textContent = '';
  }

  /** @param {import('./snippets.js').Snippet} snippet */
  function figureOf({ title, code }) {
    const figure = document.createElement('figure');
    const caption = document.createElement('figcaption');
    const copy = document.createElement('button');
    copy.type = 'button';
    copy.className = 'quiet';
    copy.textContent = 'Copy';
    copy.ariaLabel = `Copy ${title}`;
    copy.addEventListener('click', () => void copyText(copy, pre, code));
    caption.append(title, copy);
    const pre = document.createElement('pre');
    pre.tabIndex = 0; // it may scroll
    pre.ariaLabel = title;
    pre.setAttribute('role', 'region');
    pre.textContent = code;
    figure.append(caption, pre);
    return figure;
  }

  /** @param {HTMLButtonElement} button @param {HTMLElement} pre @param {string} code */
  async function copyText(button, pre, code) {
    try {
      await navigator.clipboard.writeText(code);
      button.textContent = 'Copied';
      said.textContent = 'Copied.';
      setTimeout(() => {
        button.textContent = 'Copy';
      }, COPIED_MS);
    } catch {
      // Pages without HTTPS have no clipboard: the text is selected instead.
      getSelection()?.selectAllChildren(pre);
      said.textContent = 'This browser does not let the page copy. The code is selected: copy it.';
    }
  }

  panel.addEventListener('change', write);
  return write;
}
