// Hosts and origins in the form that URLs and browsers give them, and URLs without their passwords.

/** A host with or without a port. `*` is for lists that have patterns. */
const ORIGIN_HOST = /^[a-z0-9._*:[\]-]+$/;
const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[a-z0-9_][a-z0-9._-]*)(?::(\d{1,5}))?$/i;

/**
 * The origin that a URL is, as browsers send it; undefined: it is no URL, or more than an origin.
 * Pages of apps and extensions have schemes of their own (capacitor://localhost).
 */
export function originOf(text: string): string | undefined {
  // URL leaves the host as it is where it does not know the scheme.
  const url = URL.parse(text.toLowerCase());
  if (url === null || !ORIGIN_HOST.test(url.host)) {
    return undefined;
  }
  const origin = `${url.protocol}//${url.host}`;
  return url.href === origin || url.href === `${origin}/` ? origin : undefined;
}

/** The same with http: and https: only. */
export function httpOriginOf(text: string): string | undefined {
  const origin = originOf(text);
  return origin !== undefined && /^https?:/.test(origin) ? origin : undefined;
}

/** A host as `URL.hostname` has it, with its port if one is given; undefined: it is neither. */
export function hostOf(text: string): string | undefined {
  const [, name, port] = HOST_AND_PORT.exec(text) ?? [];
  const hostname = name === undefined ? undefined : URL.parse(`http://${name}`)?.hostname;
  if (hostname === undefined || port === undefined) {
    return hostname;
  }
  return Number(port) >= 1 && Number(port) <= 65_535 ? `${hostname}:${Number(port)}` : undefined;
}

/** Whether the host of a URL is listed, with its port or without. @param hosts from `hostOf` */
export function isListedHost(hosts: readonly string[], url: URL): boolean {
  const port = url.port || (/^(?:https|wss):$/.test(url.protocol) ? '443' : '80');
  return hosts.includes(url.hostname) || hosts.includes(`${url.hostname}:${port}`);
}

/**
 * Text with `[secret]` in place of the user and password of a URL in it. The text may be a list, or
 * not quite a URL, and a password may have any character: all before the last @ is replaced.
 */
export function maskUserInfo(text: string): string {
  const end = text.lastIndexOf('@');
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? '';
  const hidden = text.slice(scheme.length, Math.max(scheme.length, end));
  return end >= scheme.length && (scheme !== '' || hidden.includes(':'))
    ? `${scheme}[secret]${text.slice(end)}`
    : text;
}
