// What a setting is made of, and the schemas that settings share.
import { z } from 'zod';
import { hostOf, httpOriginOf, originOf } from './base/hosts.ts';

/** Text without white space around it, not empty. */
export const text = z.string().trim().min(1);
/** A whole number within bounds, both included. */
export const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^-?\d+$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min).max(max));
/** A number without sign or exponent, within bounds, both included. */
export const decimal = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, 'must be a number')
    .transform(Number)
    .pipe(z.number().min(min).max(max));
/** Items with commas between; empty ones are left out. */
export const list = z.string().transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
/** Whether something is on. */
export const flag = z
  .enum(['0', '1', 'true', 'false'])
  .transform((value) => value === '1' || value === 'true');

/** An http or https URL that may hold a user and a password. Becomes one without a slash at its end. */
export const httpUrlWithUser = z.string().transform((value, context) => {
  const url = URL.parse(value);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    context.addIssue('must be an http:// or https:// URL');
    return z.NEVER;
  }
  let end = url.href.length;
  while (url.href[end - 1] === '/') {
    end--;
  }
  return url.href.slice(0, end);
});

/** The same without user and password: `fetch` refuses those. */
export const httpUrl = httpUrlWithUser.refine((value) => {
  const { username, password } = new URL(value);
  return username === '' && password === '';
}, 'must have no user and no password');

/** An http or https URL that is an origin and nothing else; becomes that origin. */
export const httpOrigin = z.string().transform((value, context) => {
  const origin = httpOriginOf(value);
  if (origin === undefined) {
    context.addIssue('must be http:// or https:// with a host, no user and no path');
    return z.NEVER;
  }
  return origin;
});

/** The origin of a web page, an app or an extension, as browsers send it. */
export const pageOrigin = z.string().transform((value, context) => {
  if (value.includes('*')) {
    context.addIssue('no * here: list each origin, or leave the setting unset to allow any');
    return z.NEVER;
  }
  const origin = originOf(value);
  if (origin === undefined || NO_PAGES.test(origin)) {
    context.addIssue('must be an origin such as https://shop.example, without a path');
    return z.NEVER;
  }
  return origin;
});
/** Schemes of URLs from which no page with an origin comes. */
const NO_PAGES = /^(?:wss?|ftp|file):/;

/** Hosts that a URL may name, for `isListedHost`. */
export const hosts = list.pipe(
  z.array(
    z.string().transform((value, context) => {
      const host = hostOf(value);
      if (host === undefined) {
        context.addIssue(
          'must be a host or host:port, such as 10.0.0.5:8000 or [fd00::5], ' +
            'without a scheme and a path',
        );
        return z.NEVER;
      }
      return host;
    }),
  ),
);

/** One setting; `about` is its description in README.md. */
interface Setting<T extends z.ZodType, D extends string | undefined> {
  readonly schema: T;
  readonly default: D;
  readonly about: string;
}
/** A row of the table of settings. */
export const setting = <T extends z.ZodType, D extends string | undefined>(
  schema: T,
  defaultValue: D,
  about: string,
): Setting<T, D> => ({ schema, default: defaultValue, about });
