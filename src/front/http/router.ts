// Finds the route for a method and path: exact paths, `{parameters}` and deprecated aliases.
import type { HttpMethod, Route } from './route.ts';

/** A matched route. */
export interface RouteMatch {
  readonly route: Route;
  /** Values of the `{parameters}`, percent-decoded. */
  readonly params: Record<string, string>;
  /** True when the path is a deprecated alias. */
  readonly alias: boolean;
}

/** A removed path. Every method gets status 410 with the reason. Matched case-insensitively. */
export interface RemovedPath {
  readonly path: string;
  readonly reason: string;
}

/** The result of a search: a route, another method of a known path, a removed path, or nothing. */
export type Found =
  | { readonly kind: 'route'; readonly match: RouteMatch }
  | {
      readonly kind: 'method';
      readonly allow: readonly string[];
      /** Accept-Post and Accept-Patch: the media types of bodies that are neither JSON nor forms. */
      readonly accept: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'removed'; readonly reason: string }
  | { readonly kind: 'none' };

interface Candidate {
  readonly segments: readonly string[];
  readonly ignoresCase: boolean;
  readonly byMethod: Map<string, { route: Route; alias: boolean }>;
}

/** The table of routes. */
export class Router {
  readonly #exact = new Map<string, Candidate>();
  /** Paths with parameters, and aliases, in the order of the routes. */
  readonly #patterns: Candidate[] = [];
  readonly #removed = new Map<string, string>();

  /** @throws Error when two routes have the same method and path */
  constructor(routes: readonly Route[], removed: readonly RemovedPath[] = []) {
    for (const route of routes) {
      this.#add(route.path, route.method, route, false);
      for (const alias of route.aliases ?? []) {
        this.#add(alias.path, alias.method, route, true);
      }
    }
    for (const { path, reason } of removed) {
      this.#removed.set(path.toLowerCase(), reason);
    }
  }

  #add(given: string, method: HttpMethod, route: Route, alias: boolean): void {
    const path = alias ? given.toLowerCase() : given;
    const known =
      this.#exact.get(path) ??
      this.#patterns.find(
        (candidate) => candidate.ignoresCase === alias && candidate.segments.join('/') === path,
      );
    const candidate: Candidate = known ?? {
      segments: path.split('/'),
      ignoresCase: alias,
      byMethod: new Map(),
    };
    if (candidate.byMethod.has(method)) {
      throw new Error(`Two routes have the method and path ${method} ${given}`);
    }
    candidate.byMethod.set(method, { route, alias });
    if (known) {
      return;
    }
    if (alias || path.includes('{')) {
      this.#patterns.push(candidate);
    } else {
      this.#exact.set(path, candidate);
    }
  }

  /** @param method upper case; HEAD finds the route of GET */
  find(method: string, path: string): Found {
    const wanted = method === 'HEAD' ? 'GET' : method;
    const allow = new Set<string>();
    const accept: Record<string, string> = {};
    for (const candidate of this.#candidates(path)) {
      const entry = candidate.byMethod.get(wanted);
      if (entry) {
        return {
          kind: 'route',
          match: { route: entry.route, params: bind(candidate, path) ?? {}, alias: entry.alias },
        };
      }
      for (const [known, { route }] of candidate.byMethod) {
        allow.add(known);
        if (route.body?.kind === 'text') {
          accept[`accept-${known.toLowerCase()}`] = route.body.mediaType;
        }
      }
    }
    if (allow.size > 0) {
      if (allow.has('GET')) {
        allow.add('HEAD');
      }
      return { kind: 'method', allow: [...allow, 'OPTIONS'], accept };
    }
    const reason = this.#removed.get(path.toLowerCase());
    return reason === undefined ? { kind: 'none' } : { kind: 'removed', reason };
  }

  *#candidates(path: string): Generator<Candidate> {
    const exact = this.#exact.get(path);
    if (exact) {
      yield exact;
    } else {
      for (const candidate of this.#patterns) {
        if (bind(candidate, path)) {
          yield candidate;
        }
      }
    }
  }
}

/**
 * Matches `path` against a pattern. @returns its parameters, percent-decoded; undefined when it
 * does not match or a parameter is not valid UTF-8
 */
function bind(
  { segments, ignoresCase }: Candidate,
  path: string,
): Record<string, string> | undefined {
  const parts = path.split('/');
  if (parts.length !== segments.length) {
    return undefined;
  }
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const part = parts[index] as string;
    if (!segment.startsWith('{')) {
      if (segment !== (ignoresCase ? part.toLowerCase() : part)) {
        return undefined;
      }
      continue;
    }
    if (part === '') {
      return undefined;
    }
    try {
      params[segment.slice(1, -1)] = decodeURIComponent(part);
    } catch {
      return undefined;
    }
  }
  return params;
}
