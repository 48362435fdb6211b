// An agent whose voice is a speech-to-speech model with OpenAI's realtime protocol. When the user
// interrupts, the model is told how much was heard. npm install @mouthpiece/client ws
import { WebSocket } from 'ws';
import { connectAgent, createSession } from '@mouthpiece/client/agent';

const { MOUTHPIECE_URL: baseUrl = 'http://localhost:8080', MOUTHPIECE_KEY: apiKey } = process.env;
const { REALTIME_URL, REALTIME_KEY, FACE: faceId = 'ava' } = process.env;

const session = await createSession({ baseUrl, apiKey, faceId });
console.log(`viewer: ${session.viewerUrl}`);
const agent = await connectAgent(session);
const headers = { authorization: `Bearer ${REALTIME_KEY}` };
const model = new WebSocket(REALTIME_URL, { headers });
const tell = (event) => model.send(JSON.stringify(event));
let item;

model.on('open', () => tell({ type: 'response.create' }));
model.on('message', async (text) => {
  const event = JSON.parse(text);
  if (event.type === 'response.output_audio.delta') {
    item = event.item_id;
    await agent.speak(Buffer.from(event.delta, 'base64'), { rate: 24_000 });
  } else if (event.type === 'input_audio_buffer.speech_started' && item !== undefined) {
    const { heardMs: audio_end_ms } = await agent.interrupt();
    tell({ type: 'conversation.item.truncate', item_id: item, content_index: 0, audio_end_ms });
  }
});
model.on('close', () => agent.finish());
agent.on('end', () => model.close());
