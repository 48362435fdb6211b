// A web server with an agent: each visitor sees a face, which greets with the voice of an
// OpenAI-compatible service. npm install @mouthpiece/client, then: node agent.mjs
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connectAgent, createSession } from '@mouthpiece/client/agent';

const { MOUTHPIECE_URL: baseUrl = 'http://localhost:8080', MOUTHPIECE_KEY: apiKey } = process.env;
const {
  TTS_BASE_URL = 'https://api.openai.com/v1',
  TTS_KEY,
  FACE = 'ava',
  PORT = 3000,
} = process.env;
const page = await readFile(new URL('page.html', import.meta.url), 'utf8');

async function greet(session) {
  const agent = await connectAgent(session);
  const voice = await fetch(`${TTS_BASE_URL}/audio/speech`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${TTS_KEY}` },
    body: JSON.stringify({
      model: 'tts-1',
      voice: 'alloy',
      input: 'Hello!',
      response_format: 'pcm',
    }),
  });
  await agent.speak(voice, { rate: 24_000 }); // `pcm` of this API has 24 kHz
  const { heardMs } = await agent.flush(); // it waits for the viewer
  console.log(`heard ${heardMs} ms`);
  await agent.finish();
}

const server = createServer(async ({ method }, response) => {
  if (method === 'POST') {
    const session = await createSession({ baseUrl, apiKey, faceId: FACE });
    response.end(JSON.stringify({ viewerUrl: session.viewerUrl }));
    greet(session).catch(console.error);
  } else {
    response.setHeader('content-type', 'text/html');
    response.end(page.replace('http://localhost:8080', baseUrl));
  }
});
server.listen(PORT, () => console.log(`http://localhost:${server.address().port}/`));
