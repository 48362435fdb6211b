// Code that shows the face of the page elsewhere: text for each language. No snippet has a key.
// @ts-check

/**
 * What is on the screen.
 * @typedef {object} Shown
 * @property {string} baseUrl
 * @property {string} faceId
 * @property {string} emotion
 * @property {string} size Width and height of the pictures, as 512x512.
 * @property {string} background
 */

/** A piece of code, and where it belongs. @typedef {{ title: string, code: string }} Snippet */

/** The face as tokens name it. @param {Shown} shown */
const faceOf = ({ faceId, emotion }) => (emotion === 'neutral' ? faceId : `${faceId}/${emotion}`);

/** @param {Shown} shown */
const sizeOf = ({ size }) => {
  const [width = 512, height = 512] = size.split('x').map(Number);
  return { width, height };
};

/** The background of a green face is transparent. @param {Shown} shown */
const keyOf = ({ background }) => (background === 'green' ? ' chroma-key' : '');

/** A server of the visitor's own: it has the key, and gives tokens to its page. @param {Shown} shown */
const serverOf = (shown) => `// MOUTHPIECE_KEY=... node server.mjs, then open http://localhost:3000
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

createServer(async (request, response) => {
  if (request.method !== 'POST') {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    return response.end(readFileSync('page.html'));
  }
${tokenOf(shown)}`;

/** The same for a page that the visitor's own tools serve. @param {Shown} shown */
const tokenServerOf = (shown) => `// MOUTHPIECE_KEY=... node server.mjs
// Let the server of your page pass POST /session to http://localhost:3000.
import { createServer } from 'node:http';

createServer(async (request, response) => {
  if (request.method !== 'POST') {
    response.statusCode = 404;
    return response.end();
  }
${tokenOf(shown)}`;

/** @param {Shown} shown */
const tokenOf = (shown) => `  const token = await fetch('${shown.baseUrl}/compose/token', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-api-key': process.env.MOUTHPIECE_KEY,
    },
    body: JSON.stringify({ faceId: '${faceOf(shown)}' }),
  });
  response.end(await token.text());
}).listen(process.env.PORT ?? 3000);
`;

/** @param {Shown} shown */
function element(shown) {
  const { width, height } = sizeOf(shown);
  return `<!doctype html>
<script type="module" src="${shown.baseUrl}/client/element.js"></script>
<mouthpiece-avatar
  id="face" token-url="/session"${keyOf(shown)}
  style="width: ${width}px; aspect-ratio: ${width} / ${height}"
></mouthpiece-avatar>
<label>Audio file <input type="file" onchange="face.speak(this.files[0])" /></label>
`;
}

/** @param {Shown} shown */
function javaScript(shown) {
  const { width, height } = sizeOf(shown);
  return `<!doctype html>
<video id="video" width="${width}" height="${height}" playsinline></video>
<label>Audio file <input id="file" type="file" /></label>
<script type="module">
  // or from '@mouthpiece/client', where it is installed
  import { connect } from '${shown.baseUrl}/client/index.js';

  const reply = await fetch('/session', { method: 'POST' });
  const { session_token: sessionToken } = await reply.json();
  const baseUrl = '${shown.baseUrl}';
  const session = await connect({ baseUrl, sessionToken, video });
  file.onchange = () => session.speak(file.files[0]);
</script>
`;
}

/** @param {Shown} shown */
function react(shown) {
  const { width } = sizeOf(shown);
  return `import { Mouthpiece } from '@mouthpiece/react';
import { useEffect, useRef, useState } from 'react';

export function Face() {
  const [sessionToken, setToken] = useState();
  const face = useRef(null);
  useEffect(() => {
    fetch('/session', { method: 'POST' })
      .then((reply) => reply.json())
      .then((told) => setToken(told.session_token));
  }, []);
  return (
    <>
      <Mouthpiece
        ref={face}
        baseUrl="${shown.baseUrl}"
        sessionToken={sessionToken}
        style={{ width: ${width} }}
      />
      <input type="file" onChange={(event) => face.current.speak(event.target.files[0])} />
    </>
  );
}
`;
}

/** @param {Shown} shown */
const python = (shown) => `# MOUTHPIECE_KEY=... python agent.py speech.wav (16 kHz, mono)
import asyncio, os, sys, wave
from mouthpiece import Agent, create_session


async def main():
    key = os.environ["MOUTHPIECE_KEY"]
    session = await create_session("${shown.baseUrl}", key, "${faceOf(shown)}")
    print(session.viewer_url)  # for <mouthpiece-avatar viewer-url="...">: it holds no key
    with wave.open(sys.argv[1]) as speech:
        pcm, rate = speech.readframes(speech.getnframes()), speech.getframerate()
    async with Agent(session.agent_url) as agent:
        await agent.speak(pcm, rate=rate)
        await agent.flush()  # when it was heard to its end
        await agent.finish()


asyncio.run(main())
`;

/** @param {Shown} shown */
const viewerPage = (shown) => `<!doctype html>
<script type="module" src="${shown.baseUrl}/client/element.js"></script>
<mouthpiece-avatar viewer-url="..."${keyOf(shown)}></mouthpiece-avatar>
`;

/** @param {Shown} shown */
const curl = (shown) => `curl -s ${shown.baseUrl}/sessions \\
  -H "x-service-api-key: $MOUTHPIECE_KEY" \\
  -H 'content-type: application/json' \\
  -d '{"faceId": "${faceOf(shown)}"}'
`;

/** By language. @type {Record<string, (shown: Shown) => Snippet[]>} */
export const SNIPPETS = {
  html: (shown) => [
    { title: 'page.html', code: element(shown) },
    { title: 'server.mjs', code: serverOf(shown) },
  ],
  javascript: (shown) => [
    { title: 'page.html', code: javaScript(shown) },
    { title: 'server.mjs', code: serverOf(shown) },
  ],
  react: (shown) => [
    { title: 'Face.jsx', code: react(shown) },
    { title: 'server.mjs', code: tokenServerOf(shown) },
  ],
  python: (shown) => [
    { title: 'agent.py', code: python(shown) },
    { title: 'page.html', code: viewerPage(shown) },
  ],
  curl: (shown) => [
    { title: 'A session for an agent and a viewer', code: curl(shown) },
    { title: 'page.html', code: viewerPage(shown) },
  ],
};
