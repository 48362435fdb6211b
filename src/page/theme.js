// Light or dark theme: follows the system until the button is pressed. The choice is kept in local
// storage.
// @ts-check

/** Applies the stored theme and connects the button. @param {HTMLButtonElement} button */
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
