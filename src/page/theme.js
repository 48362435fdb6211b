// Light or dark: as the system has it, until the button is pressed. This browser keeps the choice.
// @ts-check

/** @param {HTMLButtonElement} button */
export function startTheme(button) {
  const root = document.documentElement;
  const kept = localStorage.getItem('theme');
  if (kept) {
    root.dataset['theme'] = kept;
  }
  button.addEventListener('click', () => {
    const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
    const next = (root.dataset['theme'] ?? system) === 'dark' ? 'light' : 'dark';
    root.dataset['theme'] = next;
    localStorage.setItem('theme', next);
  });
}
