// Finds the route of a method and path: exact names, `{parameters}`, and the earlier names that are deprecated aliases.
import type { HttpMethod, Route } from './route.ts';

export interface RouteMatch { readonly route: Route; readonly params: Record<string, string>; readonly alias: boolean }

/** A removed path: answered 410 with the reason, whatever the method. Matched without regard to case. */
export interface RemovedPath { readonly path: string; readonly reason: string }

export type Found =
  | { readonly kind: 'route'; readonly match: RouteMatch }
  | { readonly kind: 'method'; readonly allow: readonly string[] }
  | { readonly kind: 'removed'; readonly reason: string }
  | { readonly kind: 'none' };

interface Candidate { readonly segments: readonly string[]; readonly byMethod: Map<string, { route: Route; alias: boolean }> }

export class Router {
  readonly #exact = new Map<string, Candidate>();
  readonly #patterns: Candidate[] = [];
  readonly #aliases = new Map<string, Candidate>();
  readonly #removed = new Map<string, string>();

  /** Throws when two routes claim the same method and path: that is a mistake in the table. */
  constructor(routes: readonly Route[], removed: readonly RemovedPath[] = []) {
    for (const route of routes) {
      this.#add(route.path, route.method, route);
      for (const alias of route.aliases ?? []) add(this.#aliases, alias.path.toLowerCase(), alias.method, route, true);
    }
    for (const { path, reason } of removed) this.#removed.set(path.toLowerCase(), reason);
  }

  #add(path: string, method: HttpMethod, route: Route): void {
    if (!path.includes('{')) { add(this.#exact, path, method, route, false); return; }
    const segments = path.split('/');
    const known = this.#patterns.find((candidate) => candidate.segments.join('/') === path);
    const candidate = known ?? { segments, byMethod: new Map() };
    if (!known) this.#patterns.push(candidate);
    claim(candidate, path, method, route, false);
  }

  find(method: string, path: string): Found {
    const asked = method === 'HEAD' ? 'GET' : method;
    const allow = new Set<string>();
    for (const candidate of this.#candidates(path)) {
      const entry = candidate.byMethod.get(asked);
      if (entry) return { kind: 'route', match: { route: entry.route, params: bind(candidate.segments, path) ?? {}, alias: entry.alias } };
      for (const known of candidate.byMethod.keys()) allow.add(known);
    }
    if (allow.size > 0) {
      if (allow.has('GET')) allow.add('HEAD');
      return { kind: 'method', allow: [...allow, 'OPTIONS'] };
    }
    const reason = this.#removed.get(path.toLowerCase());
    return reason === undefined ? { kind: 'none' } : { kind: 'removed', reason };
  }

  *#candidates(path: string): Generator<Candidate> {
    const exact = this.#exact.get(path);
    if (exact) { yield exact; return; }
    for (const candidate of this.#patterns) if (bind(candidate.segments, path)) yield candidate;
    const alias = this.#aliases.get(path.toLowerCase());
    if (alias) yield alias;
  }
}

function add(into: Map<string, Candidate>, path: string, method: HttpMethod, route: Route, alias: boolean): void {
  const candidate = into.get(path) ?? { segments: path.split('/'), byMethod: new Map<string, { route: Route; alias: boolean }>() };
  into.set(path, candidate);
  claim(candidate, path, method, route, alias);
}

function claim(candidate: Candidate, path: string, method: HttpMethod, route: Route, alias: boolean): void {
  if (candidate.byMethod.has(method)) throw new Error(`Two routes claim ${method} ${path}`);
  candidate.byMethod.set(method, { route, alias });
}

/** The parameters of `path` under a pattern, percent-decoded; undefined where it does not fit or is not valid UTF-8. */
function bind(segments: readonly string[], path: string): Record<string, string> | undefined {
  const parts = path.split('/');
  if (parts.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const part = parts[index] as string;
    if (!segment.startsWith('{')) {
      if (segment !== part) return undefined;
      continue;
    }
    if (part === '') return undefined;
    try {
      params[segment.slice(1, -1)] = decodeURIComponent(part);
    } catch {
      return undefined;
    }
  }
  return params;
}
