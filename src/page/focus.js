// Moves the keyboard focus when the focused element is hidden or disabled.
// @ts-check

/** @param {Element} element */
const isUsable = (element) => element.checkVisibility() && !element.matches(':disabled');

/**
 * Makes a change to the page. If the change hides or disables the focused element, the focus moves
 * to the first of `places` that can take it. Otherwise browsers move it to the body, and keyboard
 * users start again at the top of the page.
 * @param {() => void} change
 * @param {...HTMLElement} places In order of preference.
 */
export function keepFocus(change, ...places) {
  const before = document.activeElement;
  change();
  if (!before || before === document.body || isUsable(before)) {
    return;
  }
  const after = document.activeElement; // the change may have moved the focus itself
  if (after && after !== before && after !== document.body) {
    return;
  }
  places.find(isUsable)?.focus();
}
