// Requests made from the OpenAPI document at random: mostly fitting, some with wrong parts.
import * as fc from 'fast-check';

export type Json = Record<string, unknown>;
export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: Json;
}

const NASTY = [
  '',
  ' ',
  '\0',
  '../../etc/passwd',
  '%00',
  '{{7*7}}',
  "' OR 1=1 --",
  '<script>',
  'ava',
  'ava/happy',
  '/',
  '\u202e',
  'é'.repeat(50),
  'x'.repeat(300),
  '__proto__',
  'constructor',
  'NaN',
  '1e999',
  '-1',
  '🙂',
];
export const anything = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(...NASTY, null, true, 0, -1, 1.5, 1e308, [], {}, [[]]),
  },
  fc.jsonValue({ maxDepth: 3 }),
);

/** Values that mostly fit a schema. */
export function fitting(schema: Json): fc.Arbitrary<unknown> {
  if (Array.isArray(schema['enum'])) {
    return fc.constantFrom(...(schema['enum'] as unknown[]));
  }
  if (Array.isArray(schema['anyOf'])) {
    return fc.oneof(...(schema['anyOf'] as Json[]).map(fitting));
  }
  switch (schema['type']) {
    case 'integer':
    case 'number':
      return fc.integer({
        min: Math.max(-1e9, Number(schema['minimum'] ?? -10)),
        max: Math.min(1e9, Number(schema['maximum'] ?? 1e6)),
      });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(fitting((schema['items'] as Json) ?? {}), { maxLength: 5 });
    case 'object': {
      const properties = (schema['properties'] as Record<string, Json>) ?? {};
      return fc.record(
        Object.fromEntries(
          Object.entries(properties).map(([name, inner]) => [name, fitting(inner)]),
        ),
        { requiredKeys: (schema['required'] as string[]) ?? [] },
      );
    }
    case 'string':
      return schema['format'] === 'uri'
        ? fc.webUrl()
        : fc.oneof(
            { weight: 2, arbitrary: fc.constant('ava') },
            fc.constantFrom(...NASTY),
            fc.string({ minLength: 1, maxLength: 40 }),
          );
    default:
      return anything;
  }
}

/** A whole request body: fitting, or fitting but for some fields, or anything at all. */
export function bodies(schema: Json): fc.Arbitrary<unknown> {
  const fits = fitting(schema);
  const broken = fc
    .tuple(
      fits,
      fc.constantFrom(...Object.keys((schema['properties'] as Json) ?? { x: 1 })),
      anything,
    )
    .map(([value, name, replacement]) => ({ ...(value as Json), [name]: replacement }));
  return fc.oneof({ weight: 4, arbitrary: fits }, { weight: 2, arbitrary: broken }, anything);
}

export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '');

/** The path with its parameters, and the headers. */
export function assemble(
  path: string,
  parameters: readonly Parameter[],
  values: Json,
): { target: string; headers: Record<string, string> } {
  let target = path;
  const query = new URLSearchParams();
  const headers: Record<string, string> = {};
  for (const parameter of parameters) {
    const value = values[parameter.name];
    if (value === undefined) {
      continue;
    }
    if (parameter.in === 'path') {
      target = target.replace(
        `{${parameter.name}}`,
        encodeURIComponent(textOf(value).toWellFormed()) || '%20',
      );
    } else if (parameter.in === 'query') {
      query.set(parameter.name, textOf(value));
    } else {
      headers[parameter.name] = textOf(value)
        .replace(/[^\x20-\x7e]/g, '')
        .trim();
    }
  }
  return { target: `${target}?${query.toString()}`, headers };
}
