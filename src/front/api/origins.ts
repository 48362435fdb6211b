// Origins of web pages that may start and show a conversation: what clients send, in one form.
import { httpOriginOf } from '../../base/hosts.ts';
import { invalidField } from '../http/validate.ts';

/** "https://shop.example", also from "shop.example" or with a slash at its end; undefined: neither. */
function patternOf(text: string): string | undefined {
  if (text.trim() === '*') {
    return '*';
  }
  return httpOriginOf(text.includes('://') ? text : `https://${text}`);
}

/**
 * The origins of a list; `*` stands for any, `https://*.shop.example` for all below a host.
 * @throws ValidationError naming the field
 */
export function originsOf(texts: readonly string[], field: string): string[] {
  return texts.map((text) => {
    const origin = patternOf(text);
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
