// Where the API key of a request is, for routes that do not take it from the header alone.
import type { ApiRequest } from '../http/route.ts';

/** The first of `headers` that the request has, or else `inBody`. '' when there is none. */
export const keyOf = (
  request: Pick<ApiRequest, 'header'>,
  headers: readonly string[],
  inBody = '',
): string => headers.map((name) => request.header(name)).find((value) => value !== '') ?? inBody;
