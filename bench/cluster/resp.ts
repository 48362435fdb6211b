// The protocol of Redis (RESP2) as bytes: commands that are made once and sent often, and replies of
// which only the end is looked for.

const LF = 0x0a;
const BULK = 0x24;
const ARRAY = 0x2a;
const ERROR = 0x2d;

const encode = (args: readonly (string | number)[]): Buffer =>
  Buffer.from(
    `*${args.length}\r\n` +
      args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`).join(''),
  );

/** A call of a script that Redis has loaded. */
export const evalsha = (
  digest: string,
  keys: readonly string[],
  args: readonly (string | number)[],
): Buffer => encode(['EVALSHA', digest, keys.length, ...keys, ...args]);

export const hset = (key: string, fields: readonly (string | number)[]): Buffer =>
  encode(['HSET', key, ...fields]);

/** @returns where the reply that begins at `from` ends; -1: it is not whole */
function endOf(data: Buffer, from: number): number {
  const line = data.indexOf(LF, from);
  const kind = data[from];
  if (line === -1 || (kind !== BULK && kind !== ARRAY)) {
    return line === -1 ? -1 : line + 1;
  }
  const count = Number(data.toString('latin1', from + 1, line - 1));
  if (kind === BULK) {
    const end = count < 0 ? line + 1 : line + 1 + count + 2;
    return end <= data.length ? end : -1;
  }
  let at = line + 1;
  for (let i = 0; i < count && at !== -1; i++) {
    at = endOf(data, at);
  }
  return at;
}

/** Whether a reply is an error. */
export const isError = (reply: Buffer): boolean => reply[0] === ERROR;

/** Cuts what a socket receives into replies. */
export class ReplyReader {
  #rest: Buffer = Buffer.alloc(0);
  readonly #onReply: (reply: Buffer) => void;

  constructor(onReply: (reply: Buffer) => void) {
    this.#onReply = onReply;
  }

  push(chunk: Buffer): void {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    for (let end = endOf(data, 0); end !== -1 && at < data.length; end = endOf(data, at)) {
      this.#onReply(data.subarray(at, end));
      at = end;
    }
    this.#rest = data.subarray(at);
  }
}
