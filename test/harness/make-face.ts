// Creation of a face from a picture, as a client asks for it.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { ROOT, type TestServer } from './server.ts';

/** POST /faces: its status, its body, and Retry-After. */
export async function makeFace(
  server: Pick<TestServer, 'url' | 'apiKey'>,
): Promise<{ status: number; body: any; after: string }> {
  const form = new FormData();
  const portrait = await readFile(path.join(ROOT, 'models/faces/samuel.webp'));
  form.set('image', new File([portrait], 'samuel.webp'));
  const response = await fetch(`${server.url}/faces`, {
    method: 'POST',
    body: form,
    headers: { 'x-service-api-key': server.apiKey },
  });
  const after = response.headers.get('retry-after') ?? '';
  return { status: response.status, body: await response.json(), after };
}
