// Origins of web pages that may start and show a conversation: what clients send, in one form.
import { invalidField } from '../http/validate.ts';

const HOST = /^[a-z0-9.*:[\]-]+$/i;

/** "https://shop.example", also from "shop.example" or with a slash at its end; undefined: neither. */
function originOf(text: string): string | undefined {
  if (text.trim() === '*') {
    return '*';
  }
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  const isOrigin =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    HOST.test(url.host) &&
    `${url.origin}/` === url.href;
  return isOrigin ? url.origin : undefined;
}

/**
 * The origins of a list; `*` stands for any, `https://*.shop.example` for all below a host.
 * @throws ValidationError naming the field
 */
export function originsOf(texts: readonly string[], field: string): string[] {
  return texts.map((text) => {
    const origin = originOf(text);
    if (origin === undefined) {
      throw invalidField(
        'body',
        field,
        'Send origins such as https://shop.example, without a path',
      );
    }
    return origin;
  });
}

/** Whether a page of `origin` is one of `allowed`; an empty list allows all. */
export const allowsOrigin = (allowed: readonly string[], origin: string): boolean =>
  allowed.length === 0 ||
  allowed.some((one) => {
    const [before, after] = one.split('*', 2);
    return after === undefined
      ? one === origin
      : origin.length > one.length - 1 && origin.startsWith(before!) && origin.endsWith(after);
  });

/** The same as a source list of `frame-ancestors` (CSP level 3). */
export const frameAncestors = (allowed: readonly string[]): string =>
  allowed.length === 0 ? '*' : allowed.join(' ');
