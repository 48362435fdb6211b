// The elements of the page, by their ids.
// @ts-check

/**
 * @template {HTMLElement} T
 * @param {string} id @param {new () => T} type The class of the element.
 * @throws {Error} when the page has no such element
 */
export function byId(id, type) {
  const element = document.getElementById(id);
  if (element instanceof type) {
    return element;
  }
  throw new Error(`the page has no ${type.name} #${id}`);
}
export const part = (/** @type {string} */ id) => byId(id, HTMLElement);
export const button = (/** @type {string} */ id) => byId(id, HTMLButtonElement);
export const field = (/** @type {string} */ id) => byId(id, HTMLInputElement);

/** @param {string} name @returns {string} The value of the radio button that is checked. */
export function chosen(name) {
  const input = document.querySelector(`input[name="${name}"]:checked`);
  return input instanceof HTMLInputElement ? input.value : '';
}

export const video = byId('video', HTMLVideoElement);
