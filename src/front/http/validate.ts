// Turns zod's findings into the interface's validation error, and the parts of a request into checked values.
import { z } from 'zod';

export interface ValidationIssue {
  readonly loc: string[];
  readonly msg: string;
  readonly type: string;
}

/** Everything wrong with a request, found in one pass. Answered as 422 `{detail: [...]}`. */
export class ValidationError extends Error {
  readonly issues: readonly ValidationIssue[];

  constructor(issues: readonly ValidationIssue[]) {
    super('The request does not match the interface description.');
    this.name = 'ValidationError';
    this.issues = issues;
  }
}

export const validationIssueSchema = z.object({
  loc: z.array(z.string()),
  msg: z.string(),
  type: z.string(),
});
export const validationErrorSchema = z.object({ detail: z.array(validationIssueSchema) });

export type Part = 'path' | 'query' | 'header' | 'body';

/** A refusal of one named field from inside a handler, in the same shape as the schema's. */
export const invalidField = (
  part: Part,
  field: string | readonly string[],
  msg: string,
  type = 'value_error',
): ValidationError =>
  new ValidationError([
    { loc: [part, ...(typeof field === 'string' ? [field] : field)], msg, type },
  ]);

/** The most issues one answer lists: a hostile body must not make the answer larger than itself. */
const MAX_ISSUES = 50;

/** Checks one part of a request. Problems go to `issues`; then the value returned must not be used. */
export function check(
  schema: z.ZodType | undefined,
  part: Part,
  value: unknown,
  issues: ValidationIssue[],
): unknown {
  if (!schema) {
    return undefined;
  }
  const result = schema.safeParse(value);
  if (result.success) {
    return result.data;
  }
  for (const issue of result.error.issues.slice(0, MAX_ISSUES)) {
    issues.push(toIssue(part, value, issue));
  }
  return undefined;
}

function toIssue(part: Part, input: unknown, issue: z.core.$ZodIssue): ValidationIssue {
  const loc = [part, ...issue.path.map((segment) => clip(String(segment)))];
  if (isMissing(input, issue.path)) {
    return { loc, msg: 'Field required', type: 'missing' };
  }
  if (issue.code === 'invalid_type') {
    return {
      loc,
      msg: `Input should be of type ${issue.expected}`,
      type: `${issue.expected}_type`,
    };
  }
  return { loc, msg: clip(issue.message), type: issue.code };
}

const clip = (message: string): string =>
  message.length > 300 ? `${message.slice(0, 300)}...` : message;

function isMissing(input: unknown, path: readonly PropertyKey[]): boolean {
  let value = input;
  for (const segment of path) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, segment)) {
      return true;
    }
    value = (value as Record<PropertyKey, unknown>)[segment];
  }
  return value === undefined;
}

/** A whole number in a query string or header. In the document: an integer with these bounds. */
export const integerText = (bounds: { min?: number; max?: number } = {}) =>
  z
    .string()
    .regex(/^-?\d{1,16}$/, 'Input should be a whole number')
    .transform(Number)
    .pipe(
      z
        .int()
        .min(bounds.min ?? Number.MIN_SAFE_INTEGER)
        .max(bounds.max ?? Number.MAX_SAFE_INTEGER),
    );
