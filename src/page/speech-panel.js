// What the face shall say: sentences, audio files, the microphone.
// @ts-check
import { openMicrophone } from './audio.js';
import { SPEECH_RATE, decodeSpeech } from './client.js';
import { button, chosen, field, part } from './elements.js';
import { errorMessage } from './messages.js';
import { setMuted } from './sound.js';

const SENTENCES = [
  { file: 'samples/hello.mp3', text: 'Hello! I am a picture that learned to speak.' },
  { file: 'samples/lips.mp3', text: 'My lips should meet on purple, on baby, and on maybe.' },
  { file: 'samples/vowels.mp3', text: 'Five wise owls flew south over the valley.' },
];
const PLAY_ICON =
  '<svg viewBox="0 0 24 24" aria-hidden="true"><path class="fill" d="M8 5.5v13l11-6.5z"/></svg>';

/** @param {string} address */
export const fetchFile = async (address) =>
  (await fetch(new URL(address, import.meta.url))).arrayBuffer();

/** @param {string} text */
export function say(text, isBad = false) {
  part('speak-status').textContent = text;
  part('speak-status').classList.toggle('bad', isBad);
}

/** @param {MediaStream} stream */
function stopTracks(stream) {
  for (const track of stream.getTracks()) {
    track.stop();
  }
}

/**
 * @typedef {object} SpeechContext
 * @property {() => import('./client.js').Session | null} session
 * @property {(track?: MediaStreamTrack) => Promise<void>} connect With a microphone track to send.
 * @property {(picture: File) => void} offerPicture A picture was dropped on the page.
 * @property {(error: unknown) => void} showError
 */

/**
 * @param {SpeechContext} app
 * @returns {{ stopMicrophone: () => void }}
 */
export function startSpeechPanel(app) {
  /** @type {MediaStream | null} */
  let microphone = null;

  /** @param {Int16Array<ArrayBuffer>} pcm */
  function speak(pcm) {
    const session = app.session();
    if (!session) {
      return;
    }
    void session.speak(pcm, { interrupt: field('replace').checked });
    say(`${(pcm.length / SPEECH_RATE).toFixed(1)} s of speech sent.`);
  }

  /**
   * Sends an audio file as speech. Connects when there is no session, once the file is decoded: one
   * that cannot be would begin a session for nothing.
   * @param {ArrayBuffer | Promise<ArrayBuffer>} file
   */
  async function speakFile(file) {
    try {
      const pcm = await decodeSpeech(await file);
      await (app.session()?.started() ?? app.connect());
      speak(pcm);
    } catch (error) {
      say(errorMessage(error), true);
    }
  }

  for (const { file, text } of SENTENCES) {
    const item = document.createElement('button');
    item.type = 'button';
    item.className = 'sentence';
    item.innerHTML = PLAY_ICON;
    item.append(text);
    item.addEventListener('click', () => void speakFile(fetchFile(file)));
    part('sentences').append(item);
  }

  button('pick').addEventListener('click', () => field('file').click());
  field('file').addEventListener('change', () => {
    const file = field('file').files?.[0];
    field('file').value = '';
    if (file) {
      void speakFile(file.arrayBuffer());
    }
  });

  let dragDepth = 0; // dragenter and dragleave fire for every element that is crossed
  addEventListener('dragenter', () => {
    dragDepth++;
    document.body.classList.add('dragging');
  });
  addEventListener('dragleave', () => {
    dragDepth--;
    if (dragDepth <= 0) {
      document.body.classList.remove('dragging');
    }
  });
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault();
    dragDepth = 0;
    document.body.classList.remove('dragging');
    const file = event.dataTransfer?.files[0];
    if (!file) {
      return;
    }
    if (file.type.startsWith('image/')) {
      app.offerPicture(file);
    } else {
      void speakFile(file.arrayBuffer());
    }
  });

  button('microphone').addEventListener(
    'click',
    () => void (microphone ? stopMicrophone() : startMicrophone()),
  );

  async function startMicrophone() {
    try {
      microphone = await openMicrophone();
      const track = microphone.getAudioTracks()[0];
      if (chosen('mic') === 'opus' && track) {
        // The track must be part of the offer, so open a new connection.
        const kept = microphone;
        microphone = null;
        app.session()?.close();
        await app.connect(track);
        if (!app.session()) {
          stopTracks(kept);
          return;
        }
        microphone = kept;
      } else {
        if (!app.session()) {
          await app.connect();
        }
        await app.session()?.started();
        if (!app.session() || !microphone) {
          stopMicrophone();
          return;
        }
      }
      if (chosen('mic') !== 'opus') {
        app.session()?.speak(microphone).catch(app.showError);
      }
      // Mute the face: one's own words with a delay make it hard to speak, and loudspeakers cause
      // echo.
      setMuted(true);
      button('microphone').dataset['on'] = 'true';
      button('microphone').querySelector('span')?.replaceChildren('Stop microphone');
      say(
        'The face repeats your words. The sound is off to prevent echo; with headphones you can turn it on.',
      );
    } catch (error) {
      stopMicrophone();
      say(errorMessage(error), true);
    }
  }

  function stopMicrophone() {
    if (!microphone) {
      return;
    }
    stopTracks(microphone);
    microphone = null;
    setMuted(false);
    button('microphone').dataset['on'] = 'false';
    button('microphone').querySelector('span')?.replaceChildren('Microphone');
    say('');
  }

  return { stopMicrophone };
}
