// Keeps the keyboard's place when what has the focus is hidden or disabled.
// @ts-check

/** @param {Element} element */
const isUsable = (element) => element.checkVisibility() && !element.matches(':disabled');

/**
 * Makes a change to the page. If the change hides or disables the focused element, the focus goes to
 * the first of `places` that can take it. Browsers would drop it to the body, and the keyboard would
 * start again from the top.
 * @param {() => void} change
 * @param {...HTMLElement} places The best first.
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
