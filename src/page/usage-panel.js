// The panel of what the owner of the key has used: sessions and minutes, by key and by day.
// @ts-check
import { request } from './client.js';
import { errorMessage } from './messages.js';

/** @typedef {{ sessions: number, seconds: number }} Used */

/** @param {number} seconds */
function duration(seconds) {
  const minutes = seconds / 60;
  if (minutes < 1) {
    return `${Math.round(seconds)} s`;
  }
  return minutes < 10 ? `${minutes.toFixed(1)} min` : `${Math.round(minutes).toLocaleString()} min`;
}

/** @param {number} count */
const sessionsOf = (count) => `${count.toLocaleString()} ${count === 1 ? 'session' : 'sessions'}`;

/**
 * Fills the panel when it is opened, and when another time is chosen.
 * @param {HTMLDetailsElement} panel
 * @param {() => string} apiKey
 */
export function startUsagePanel(panel, apiKey) {
  const part = (/** @type {string} */ selector) =>
    /** @type {HTMLElement} */ (panel.querySelector(selector));

  async function load() {
    if (!panel.open) {
      return;
    }
    const days = /** @type {HTMLInputElement} */ (part('input[name=days]:checked')).value;
    try {
      const [usage, live] = await Promise.all([
        request(`/usage?days=${days}`, { apiKey: apiKey() }),
        request('/ratelimiter/sessions', { apiKey: apiKey() }),
      ]);
      part('.status').textContent =
        `${sessionsOf(usage.sessions)}, ${duration(usage.seconds)} since ${usage.since}. ` +
        `Live with this key: ${live.currentUsage}.`;
      drawKeys(usage.keys);
      drawDays(usage.daily);
    } catch (error) {
      part('.status').textContent = errorMessage(error);
    }
  }

  /** @param {(Used & { name: string })[]} keys */
  function drawKeys(keys) {
    part('table').hidden = keys.length === 0;
    part('tbody').replaceChildren(
      ...keys.map(({ name, sessions, seconds }) => {
        const row = document.createElement('tr');
        const head = document.createElement('th');
        head.scope = 'row';
        head.textContent = name || 'without a name';
        row.append(head);
        for (const text of [sessions.toLocaleString(), duration(seconds)]) {
          row.insertCell().textContent = text;
        }
        return row;
      }),
    );
  }

  /** @param {(Used & { date: string })[]} daily */
  function drawDays(daily) {
    const most = Math.max(1, ...daily.map(({ seconds }) => seconds));
    const busiest = daily.find(({ seconds }) => seconds === most);
    part('.days').hidden = busiest === undefined;
    part('.days').ariaLabel = busiest
      ? `Time a day. The most: ${duration(most)} on ${busiest.date}.`
      : '';
    part('.days').replaceChildren(
      ...daily.map(({ date, sessions, seconds }) => {
        const bar = document.createElement('i');
        bar.style.height = `${(100 * seconds) / most}%`;
        bar.title = `${date}: ${sessionsOf(sessions)}, ${duration(seconds)}`;
        return bar;
      }),
    );
  }

  panel.addEventListener('toggle', () => void load());
  panel.addEventListener('change', () => void load());
  return load;
}
