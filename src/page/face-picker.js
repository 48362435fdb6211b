// The list of faces: chooses one, or creates a new one from a portrait.
// @ts-check
import { request } from './client.js';
import { FacePictures } from './face-pictures.js';
import { errorMessage, warningMessage } from './messages.js';
import { PortraitDialog } from './portrait-dialog.js';

/**
 * @typedef {{ id: string, name: string, owner_id?: string | null, status?: string,
 * size: string, framing: string, background: string, thumbnail_url?: string }} Face
 */

/** Interval between requests for the status of a new face. */
const POLL_MS = 400;

/** A radio group of faces with a button for a new one. Remembers the choice in this tab. */
export class FacePicker {
  /** @type {Face[]} */
  faces = [];
  #pictures = new FacePictures((id) => this.#show(id));
  /** Fetches the pictures of the faces that are in sight. @type {IntersectionObserver} */
  #sight;
  /** @type {Map<string, Blob>} face id → the photo that it was made from, in this tab */
  #photos = new Map();
  #list;
  #status;
  #input;
  #own;
  #dialog;
  #onChange;
  #apiKey = '';
  #chosenId = sessionStorage.getItem('face') ?? '';

  /**
   * @param {{ list: HTMLElement, status: HTMLElement, input: HTMLInputElement, own: HTMLElement,
   * dialog: HTMLDialogElement, change: HTMLElement, onChange: () => void }} parts
   */
  constructor({ list, status, input, own, dialog, change, onChange }) {
    this.#list = list;
    this.#status = status;
    this.#input = input;
    this.#own = own;
    const [rename, remove] = own.querySelectorAll('button');
    rename?.addEventListener('click', () => void this.#rename());
    remove?.addEventListener('click', () => void this.#delete());
    this.#onChange = onChange;
    this.#sight = new IntersectionObserver((entries) => this.#see(entries), {
      root: list,
      rootMargin: '100px 0px',
    });
    input.addEventListener('change', () => {
      const file = input.files?.[0];
      input.value = '';
      if (file) {
        void this.offer(file);
      }
    });
    this.#dialog = new PortraitDialog(dialog, {
      make: (image, look, say) => this.#create(image, look, say),
      pick: () => input.click(),
    });
    dialog.addEventListener('close', () => {
      // The list was drawn again: what had the focus before the dialog may be gone.
      const focused = document.activeElement;
      if (focused === document.body || dialog.contains(focused)) {
        const chosen = list.querySelector('[aria-checked=true]');
        if (chosen instanceof HTMLElement) {
          chosen.focus();
        }
      }
    });
    change.addEventListener('click', () => void this.#changePicture());
    list.addEventListener('keydown', (event) => this.#move(event));
  }

  /** @returns {Face | null} */
  get chosen() {
    return this.faces.find(({ id }) => id === this.#chosenId) ?? this.faces[0] ?? null;
  }

  /** The URL of the picture of the chosen face; '' when there is none. */
  get poster() {
    return this.chosen ? (this.#pictures.urlOf(this.chosen.id) ?? '') : '';
  }

  /** Fetches the faces; their pictures come later. @param {string} apiKey */
  async load(apiKey) {
    this.#apiKey = apiKey;
    this.#pictures.apiKey = apiKey;
    /** @type {Face[]} */
    const all = await request('/faces', { apiKey });
    this.faces = all.filter(({ status = 'completed' }) => status === 'completed');
    this.#draw();
    this.#onChange();
  }

  /** Shows a photo for a new face in the dialog. @param {File} file */
  async offer(file) {
    await this.#open(file, { name: file.name.replace(/\.\w+$/, '').slice(0, 40) });
  }

  /** Offers the photo of the chosen face again, for another size, framing or background. */
  async #changePicture() {
    const face = this.chosen;
    const photo = face && (this.#photos.get(face.id) ?? (await this.#pictures.fetch(face)));
    if (photo) {
      const { name, size, framing, background } = face;
      await this.#open(photo, { name, size, framing, background });
    }
  }

  /** @param {Blob} photo @param {Partial<import('./portrait-dialog.js').Look>} look */
  async #open(photo, look) {
    this.#say('');
    try {
      await this.#dialog.open(photo, look);
    } catch (error) {
      this.#say(errorMessage(error), true);
    }
  }

  /**
   * @param {Blob} image @param {import('./portrait-dialog.js').Look} look
   * @param {(text: string) => void} say
   */
  async #create(image, look, say) {
    const startedMs = performance.now();
    const form = new FormData();
    form.append('image', image, 'portrait');
    for (const [name, value] of Object.entries(look)) {
      form.append(name, value);
    }
    let face = await request('/faces', { apiKey: this.#apiKey, body: form });
    while (face.status === 'pending' || face.status === 'processing') {
      say(
        face.queue_position > 0
          ? `Waiting: number ${face.queue_position} in the queue.`
          : 'Creating the face…',
      );
      await new Promise((resolve) => {
        setTimeout(resolve, POLL_MS);
      });
      face = await this.#request(face);
    }
    if (face.status !== 'completed') {
      // Nobody else has to be told why: it would only take a place in the list.
      void this.#request(face, { method: 'DELETE' }).catch(() => undefined);
      throw new Error(
        face.error ??
          'The face could not be created. Try a sharper portrait that looks straight at the camera.',
      );
    }
    this.#photos.set(face.id, image);
    this.#chosenId = face.id;
    await this.load(this.#apiKey);
    this.choose(face.id);
    const tookS = (performance.now() - startedMs) / 1000;
    this.#say([`Ready after ${tookS.toFixed(1)} s.`, ...warningsOf(face)].join(' '));
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
    if (face) {
      this.#pictures.want(face, true);
    }
    this.#own.hidden = !face?.owner_id;
    this.#name.value = face?.name ?? '';
  }

  get #name() {
    return /** @type {HTMLInputElement} */ (this.#own.querySelector('input'));
  }

  async #rename() {
    const name = this.#name.value.trim();
    if (name === '') {
      this.#say('Enter a name for the face first.', true);
      this.#name.value = this.chosen?.name ?? '';
      this.#name.select();
      return;
    }
    await this.#change({ method: 'PATCH', json: { name } }, `It is called ${name} now.`);
  }

  async #delete() {
    if (globalThis.confirm(`Delete the face ${this.chosen?.name}? This cannot be undone.`)) {
      await this.#change({ method: 'DELETE' }, 'The face is deleted.');
    }
  }

  /** @param {{ id: string }} face @param {{ method?: string, json?: object }} [options] */
  #request({ id }, options) {
    return request(`/faces/${encodeURIComponent(id)}`, { apiKey: this.#apiKey, ...options });
  }

  /** @param {{ method: string, json?: object }} change @param {string} done */
  async #change(change, done) {
    const face = this.chosen;
    if (!face?.owner_id) {
      return;
    }
    try {
      await this.#request(face, change);
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
    this.#sight.disconnect();
    this.#list.replaceChildren(...items, add);
    for (const [n, face] of this.faces.entries()) {
      this.#show(face.id);
      this.#sight.observe(/** @type {HTMLElement} */ (items[n]));
    }
    this.#showOwn();
    if (hadFocus) {
      items.find((item) => item.tabIndex === 0)?.focus();
    }
  }

  /** Wants the pictures of faces that come into sight. @param {IntersectionObserverEntry[]} entries */
  #see(entries) {
    for (const { target, isIntersecting } of entries) {
      const face = this.faces.find(({ id }) => id === target.getAttribute('data-id'));
      if (face && isIntersecting) {
        this.#pictures.want(face);
      } else if (face && face !== this.chosen) {
        this.#pictures.unwant(face.id);
      }
    }
  }

  /** @param {string} id */
  #show(id) {
    const url = this.#pictures.urlOf(id);
    const place = this.#list.querySelector(`[data-id="${CSS.escape(id)}"] .thumb`);
    if (!url || !place) {
      return;
    }
    if (id === this.chosen?.id) {
      this.#onChange(); // the poster
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

/** @param {{ warnings?: string[] }} face */
const warningsOf = ({ warnings = [] }) => warnings.map(warningMessage);

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
