// The sound of the face: on, off, or waiting for a click where the browser plays nothing unasked.
// @ts-check
import { button, video } from './elements.js';
import { keepFocus } from './focus.js';

/**
 * Plays with sound if the browser allows it; otherwise muted, with a button to turn the sound on.
 */
export async function play() {
  video.muted = false;
  try {
    await video.play();
  } catch {
    video.muted = true;
    await video.play().catch(() => {});
    button('unmute').hidden = false;
  }
  showSound();
}

/** Shows whether the sound is on. */
function showSound() {
  const isOn = !video.muted;
  button('sound')
    .querySelector('span')
    ?.replaceChildren(isOn ? 'Sound on' : 'Sound off');
}

/** @param {boolean} isMuted */
export function setMuted(isMuted) {
  video.muted = isMuted;
  showSound();
}

/** @param {() => void} onUnmute */
export function startSoundButtons(onUnmute) {
  button('sound').addEventListener('click', () => {
    setMuted(!video.muted);
  });
  button('unmute').addEventListener('click', () => {
    onUnmute();
    keepFocus(() => {
      button('unmute').hidden = true;
    }, button('sound'));
    setMuted(false);
  });
}
