// Starts Swagger UI on /openapi.json. The API key is shared with the demo page, for this browser tab.
// @ts-check

/** The entry of sessionStorage in which the demo page keeps the API key too. */
const KEY_ENTRY = 'api-key';

const system = matchMedia('(prefers-color-scheme: dark)');
/** Follows the choice on the demo page, else the system. */
const applyTheme = () => {
  const theme = localStorage.getItem('theme') ?? (system.matches ? 'dark' : 'light');
  document.documentElement.classList.toggle('dark-mode', theme === 'dark');
};
applyTheme();
system.addEventListener('change', applyTheme);

/** Keeps the key that is entered under "Authorize", so that it is entered once. */
const keepKey = () => ({
  statePlugins: {
    auth: {
      wrapActions: {
        authorize:
          (/** @type {(payload: any) => unknown} */ authorize) => (/** @type {any} */ payload) => {
            sessionStorage.setItem(KEY_ENTRY, String(payload.apiKey?.value ?? ''));
            return authorize(payload);
          },
        logout:
          (/** @type {(payload: any) => unknown} */ logout) => (/** @type {any} */ payload) => {
            sessionStorage.removeItem(KEY_ENTRY);
            return logout(payload);
          },
      },
    },
  },
});

const { SwaggerUIBundle } = /** @type {any} */ (globalThis);
const ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [keepKey],
  layout: 'BaseLayout',
  deepLinking: true,
  showExtensions: true,
  validatorUrl: null,
  onComplete: () => {
    const key = sessionStorage.getItem(KEY_ENTRY);
    if (key) {
      ui.preauthorizeApiKey('apiKey', key);
    }
  },
});
