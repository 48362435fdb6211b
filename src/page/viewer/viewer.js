// A face and nothing else, for OBS and virtual cameras: /viewer#<viewer token of POST /sessions>. The
// token is in the fragment, which browsers do not send: no log of a proxy has it.
import { Viewer } from '../client.js';

/** In seconds, as long as a session may wait for its viewer. */
const GRACE_SECONDS = 300;

const video = document.querySelector('#face');
const problem = document.querySelector('#problem');

/** A scene is not disturbed by what ended as planned. */
function tell(text) {
  problem.textContent = text;
  problem.hidden = false;
}

function show() {
  const token = location.hash.slice(1);
  const [sessionId] = token.split('.');
  if (!sessionId) {
    tell('This address has no token: add # and the viewer token of POST /sessions.');
    return;
  }
  const viewerUrl = new URL(`/sessions/${encodeURIComponent(sessionId)}/whep`, location.href);
  const viewer = new Viewer({ viewerUrl, token, video, graceSeconds: GRACE_SECONDS });
  viewer.on('state', (state) => {
    document.body.dataset.state = state;
    video.hidden = state === 'ended';
  });
  viewer.on('end', ({ reason, error }) => {
    if (reason === 'error') {
      tell(`The face cannot be shown: ${error.message}`);
    }
  });
}

// Another token is another session.
addEventListener('hashchange', () => location.reload());
show();
