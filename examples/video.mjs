// A video file of a face that speaks a sound file: node video.mjs speech.wav video.mp4
import { readFile, writeFile } from 'node:fs/promises';

const {
  MOUTHPIECE_URL: baseUrl = 'http://localhost:8080',
  MOUTHPIECE_KEY,
  FACE = 'ava',
} = process.env;
const [sound, video] = process.argv.slice(2);
const headers = { 'x-service-api-key': MOUTHPIECE_KEY, 'content-type': 'application/json' };

const made = await fetch(`${baseUrl}/static/audio`, {
  method: 'POST',
  headers,
  body: JSON.stringify({
    faceId: FACE,
    audioFormat: 'wav',
    audioBase64: (await readFile(sound)).toString('base64'),
  }),
});
const { id, mp4_url: address, detail } = await made.json();
if (!made.ok) {
  throw new Error(JSON.stringify(detail));
}
for (let status = 'queued'; status !== 'completed';) {
  await new Promise((resolve) => setTimeout(resolve, 200));
  ({ status } = await (await fetch(`${baseUrl}/static/status?id=${id}`, { headers })).json());
  if (status === 'failed') {
    throw new Error('The video could not be made.');
  }
}
const file = await fetch(address, { headers });
await writeFile(video, Buffer.from(await file.arrayBuffer()));
