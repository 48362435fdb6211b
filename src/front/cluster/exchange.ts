// One HTTP request to another server, under the name by which the client reached this one.
import http from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';

/** What is sent. */
export interface Outgoing {
  readonly method: string;
  /** `host` may name another host than the URL, which `fetch` does not let through. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal;
}

/** What came back. */
export interface Answered {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** @throws Error when there is no whole answer before the signal */
export async function exchange(url: string, outgoing: Outgoing): Promise<Answered> {
  const { method, headers, body, signal } = outgoing;
  const { request } = url.startsWith('https:') ? https : http;
  const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
    request(url, { method, headers, signal }, resolve).on('error', reject).end(body);
  });
  return { status: answer.statusCode!, headers: answer.headers, body: await text(answer) };
}
