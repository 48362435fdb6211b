// The list of faces: chooses one, or creates a new one from a portrait.
// @ts-check
import { request } from './client.js';
import { errorMessage } from './messages.js';

/**
 * @typedef {{ id: string, name: string, owner_id?: string | null, status?: string,
 * thumbnail_url?: string }} Face
 */

/** Interval between requests for the status of a new face. */
const POLL_MS = 400;

/** A radio group of faces with a button for a new one. Remembers the choice in this tab. */
export class FacePicker {
  /** @type {Face[]} */
  faces = [];
  /** @type {Map<string, string>} face id → object URL of its picture */
  #thumbnails = new Map();
  #list;
  #status;
  #input;
  #own;
  #onChange;
  #apiKey = '';
  #chosenId = sessionStorage.getItem('face') ?? '';

  /**
   * @param {{ list: HTMLElement, status: HTMLElement, input: HTMLInputElement, own: HTMLElement,
   * onChange: () => void }} parts
   */
  constructor({ list, status, input, own, onChange }) {
    this.#list = list;
    this.#status = status;
    this.#input = input;
    this.#own = own;
    const [rename, remove] = own.querySelectorAll('button');
    rename?.addEventListener('click', () => void this.#rename());
    remove?.addEventListener('click', () => void this.#delete());
    this.#onChange = onChange;
    input.addEventListener('change', () => {
      const file = input.files?.[0];
      input.value = '';
      if (file) {
        void this.create(file);
      }
    });
    list.addEventListener('keydown', (event) => this.#move(event));
  }

  /** @returns {Face | null} */
  get chosen() {
    return this.faces.find(({ id }) => id === this.#chosenId) ?? this.faces[0] ?? null;
  }

  /** The URL of the picture of the chosen face; '' when there is none. */
  get poster() {
    return this.chosen ? (this.#thumbnails.get(this.chosen.id) ?? '') : '';
  }

  /** Fetches the faces and their pictures. @param {string} apiKey */
  async load(apiKey) {
    this.#apiKey = apiKey;
    /** @type {Face[]} */
    const all = await request('/faces', { apiKey });
    this.faces = all.filter(({ status = 'completed' }) => status === 'completed');
    this.#draw();
    this.#onChange();
    await Promise.all(this.faces.map((face) => this.#loadThumbnail(face)));
    this.#onChange();
  }

  /** @param {File} file A portrait. */
  async create(file) {
    this.#say(`Creating a face from ${file.name}…`);
    this.#list.querySelector('.add')?.setAttribute('data-pending', '');
    try {
      const form = new FormData();
      form.append('image', file);
      const name = file.name.replace(/\.\w+$/, '').slice(0, 40) || 'Portrait';
      const { face_id: faceId, warnings = [] } = await request(
        `/faces/legacy?face_name=${encodeURIComponent(name)}`,
        { apiKey: this.#apiKey, body: form },
      );
      const startedMs = performance.now();
      let answer;
      do {
        await new Promise((resolve) => {
          setTimeout(resolve, POLL_MS);
        });
        answer = await request(
          `/faces/legacy/generation_status?face_id=${encodeURIComponent(faceId)}`,
          { apiKey: this.#apiKey },
        );
        if (answer.queue_position > 0) {
          this.#say(`Waiting: ${answer.queue_position} ahead in the queue.`);
        }
      } while (answer.status === 'pending' || answer.status === 'processing');
      if (answer.status !== 'completed') {
        throw new Error(
          answer.error ??
            'The face could not be created. Try a sharper portrait that looks straight at the camera.',
        );
      }
      this.#chosenId = faceId;
      await this.load(this.#apiKey);
      this.choose(faceId);
      this.#say(
        [`Ready after ${((performance.now() - startedMs) / 1000).toFixed(1)} s.`, ...warnings].join(
          ' ',
        ),
      );
    } catch (error) {
      this.#say(errorMessage(error), true);
    } finally {
      this.#list.querySelector('.add')?.removeAttribute('data-pending');
    }
  }

  /** @param {string} id */
  choose(id) {
    this.#chosenId = id;
    sessionStorage.setItem('face', id);
    for (const item of this.#list.querySelectorAll('[role=radio]')) {
      const isChosen = item.getAttribute('data-id') === id;
      item.setAttribute('aria-checked', String(isChosen));
      /** @type {HTMLElement} */ (item).tabIndex = isChosen ? 0 : -1;
    }
    this.#showOwn();
    this.#onChange();
  }

  /** The name and the buttons of a face of one's own. */
  #showOwn() {
    const face = this.chosen;
    this.#own.hidden = !face?.owner_id;
    this.#name.value = face?.name ?? '';
  }

  get #name() {
    return /** @type {HTMLInputElement} */ (this.#own.querySelector('input'));
  }

  async #rename() {
    const name = this.#name.value.trim();
    await this.#change({ method: 'PATCH', json: { name } }, `It is called ${name} now.`);
  }

  async #delete() {
    if (globalThis.confirm(`Delete the face ${this.chosen?.name}? This cannot be undone.`)) {
      await this.#change({ method: 'DELETE' }, 'The face is deleted.');
    }
  }

  /** @param {{ method: string, json?: object }} change @param {string} done */
  async #change(change, done) {
    const face = this.chosen;
    if (!face?.owner_id) {
      return;
    }
    try {
      await request(`/faces/${encodeURIComponent(face.id)}`, { apiKey: this.#apiKey, ...change });
      await this.load(this.#apiKey);
      this.#say(done);
    } catch (error) {
      this.#say(errorMessage(error), true);
    }
  }

  #draw() {
    const hadFocus = this.#list.contains(document.activeElement);
    const items = this.faces.map((face) => {
      const item = document.createElement('button');
      item.type = 'button';
      item.className = 'face';
      item.dataset['id'] = face.id;
      item.setAttribute('role', 'radio');
      item.setAttribute('aria-label', face.owner_id ? `${face.name}, your own` : face.name);
      item.classList.toggle('own', Boolean(face.owner_id));
      const isChosen = face === this.chosen;
      item.setAttribute('aria-checked', String(isChosen));
      item.tabIndex = isChosen ? 0 : -1;
      item.append(thumb(face.name.slice(0, 1).toUpperCase()), label(face.name));
      item.addEventListener('click', () => this.choose(face.id));
      return item;
    });
    const add = document.createElement('button');
    add.type = 'button';
    add.className = 'face add';
    add.append(thumb('+'), label('New face'));
    add.addEventListener('click', () => this.#input.click());
    this.#list.replaceChildren(...items, add);
    for (const face of this.faces) {
      this.#show(face.id);
    }
    this.#showOwn();
    if (hadFocus) {
      items.find((item) => item.tabIndex === 0)?.focus();
    }
  }

  /** @param {Face} face */
  async #loadThumbnail(face) {
    if (!face.thumbnail_url || this.#thumbnails.has(face.id)) {
      return;
    }
    try {
      const response = await fetch(face.thumbnail_url, {
        headers: { 'x-service-api-key': this.#apiKey },
      });
      if (!response.ok) {
        return;
      }
      this.#thumbnails.set(face.id, URL.createObjectURL(await response.blob()));
      this.#show(face.id);
    } catch {
      /* keep the initial letter */
    }
  }

  /** @param {string} id */
  #show(id) {
    const url = this.#thumbnails.get(id);
    const place = this.#list.querySelector(`[data-id="${CSS.escape(id)}"] .thumb`);
    if (!url || !place) {
      return;
    }
    const image = new Image();
    image.className = 'thumb';
    image.alt = '';
    image.src = url;
    place.replaceWith(image);
  }

  /** Arrow keys change the choice, as in every radio group. @param {KeyboardEvent} event */
  #move(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const items = /** @type {HTMLElement[]} */ ([...this.#list.querySelectorAll('[role=radio]')]);
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (step === undefined || at < 0) {
      return;
    }
    event.preventDefault();
    const next = items[(at + step + items.length) % items.length];
    next?.focus();
    next?.click();
  }

  /** @param {string} text */
  #say(text, isBad = false) {
    this.#status.textContent = text;
    this.#status.classList.toggle('bad', isBad);
  }
}

/** @param {string} text */
function thumb(text) {
  const element = document.createElement('span');
  element.className = 'thumb';
  element.textContent = text;
  element.setAttribute('aria-hidden', 'true');
  return element;
}

/** @param {string} text */
function label(text) {
  const element = document.createElement('span');
  element.className = 'name';
  element.textContent = text;
  return element;
}
