// The dialog that makes a face from a photo: crop, name, size, framing and background.
// @ts-check
import { CropView } from './crop-view.js';
import { keepFocus } from './focus.js';
import { errorMessage } from './messages.js';

/** @typedef {{ name: string, size: string, framing: string, background: string }} Look */
/** @typedef {(image: Blob, look: Look, say: (text: string) => void) => Promise<void>} MakeFace */

const CANNOT_READ =
  'This browser cannot read that file as a picture. Choose a JPEG, PNG or WebP of at most 52 ' +
  'megapixels.';

/** A dialog: `open` shows it with a photo. */
export class PortraitDialog {
  #dialog;
  #form;
  #crop;
  #make;
  /** @type {Blob | null} */
  #photo = null;
  #isBusy = false;

  /**
   * @param {HTMLDialogElement} dialog
   * @param {{ make: MakeFace, pick: () => void }} options `make` makes the face; `pick` asks for
   * another photo.
   */
  constructor(dialog, { make, pick }) {
    this.#dialog = dialog;
    this.#make = make;
    this.#form = /** @type {HTMLFormElement} */ (this.#part('form'));
    this.#crop = new CropView(/** @type {HTMLCanvasElement} */ (this.#part('canvas')), () =>
      this.#showCrop(),
    );
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#submit();
    });
    this.#form.addEventListener('input', () => this.#showChoice());
    this.#zoom.addEventListener('input', () => {
      this.#crop.zoom = Math.exp(Number(this.#zoom.value));
    });
    this.#part('.cancel').addEventListener('click', () => dialog.close());
    this.#part('.another').addEventListener('click', pick);
    dialog.addEventListener('cancel', (event) => {
      if (this.#isBusy) {
        event.preventDefault(); // the face would come all the same
      }
    });
  }

  /** @param {string} selector */
  #part(selector) {
    return /** @type {HTMLElement} */ (this.#dialog.querySelector(selector));
  }

  get #zoom() {
    return /** @type {HTMLInputElement} */ (this.#part('[name=zoom]'));
  }

  get isOpen() {
    return this.#dialog.open;
  }

  /**
   * Shows a photo. The choices of the last one stay, where `look` has no others.
   * @param {Blob} photo @param {Partial<Look>} look
   * @throws {Error} when the browser cannot read it
   */
  async open(photo, look) {
    if (this.#isBusy) {
      return;
    }
    let bitmap;
    try {
      bitmap = await createImageBitmap(photo);
    } catch (error) {
      throw new Error(CANNOT_READ, { cause: error });
    }
    this.#photo = photo;
    this.#choose(look);
    this.#say('');
    if (!this.#dialog.open) {
      this.#dialog.showModal();
    }
    this.#showChoice();
    this.#crop.show(bitmap);
  }

  /** @param {Partial<Look>} look */
  #choose(look) {
    const colour = look.background?.startsWith('#') ? look.background : undefined;
    const choices = { ...look, ...(colour && { background: 'colour', colour }) };
    for (const [name, value] of Object.entries(choices)) {
      const control = this.#form.elements.namedItem(name);
      if (control && 'value' in control) {
        control.value = value;
      }
    }
  }

  /** @param {string} name */
  #chosen(name) {
    const value = new FormData(this.#form).get(name);
    return typeof value === 'string' ? value.trim() : '';
  }

  #showChoice() {
    const [width = 1, height = 1] = this.#chosen('size').split('x').map(Number);
    if (this.#dialog.open) {
      this.#crop.aspect = width / height;
    }
    this.#part('.colour').hidden = this.#chosen('background') !== 'colour';
  }

  #showCrop() {
    const { least, most } = this.#crop.zoomRange;
    this.#zoom.min = String(Math.log(least));
    this.#zoom.max = String(Math.log(most));
    this.#zoom.value = String(Math.log(this.#crop.zoom));
    this.#zoom.ariaValueText = `${Math.round(100 * this.#crop.zoom)} %`;
    this.#part('.where').textContent = this.#crop.description;
  }

  async #submit() {
    const photo = this.#photo;
    if (!photo || this.#isBusy) {
      return;
    }
    this.#setBusy(true);
    this.#say('Sending the photo…');
    try {
      const background = this.#chosen('background');
      await this.#make(
        await this.#crop.cut(photo),
        {
          name: this.#chosen('name') || 'Portrait',
          size: this.#chosen('size'),
          framing: this.#chosen('framing'),
          background: background === 'colour' ? this.#chosen('colour') : background,
        },
        (text) => this.#say(text),
      );
      this.#setBusy(false);
      this.#dialog.close();
    } catch (error) {
      this.#setBusy(false);
      this.#say(errorMessage(error), true);
    }
  }

  /** @param {boolean} isBusy */
  #setBusy(isBusy) {
    this.#isBusy = isBusy;
    const create = /** @type {HTMLButtonElement} */ (this.#part('.create'));
    keepFocus(() => {
      for (const item of this.#form.querySelectorAll('button')) {
        item.disabled = isBusy;
      }
    }, this.#part('canvas'));
    create.textContent = isBusy ? 'Creating…' : 'Create face';
  }

  /** @param {string} text */
  #say(text, isBad = false) {
    const status = this.#part('.status');
    status.textContent = text;
    status.classList.toggle('bad', isBad);
  }
}
