// Validates the parts of a request with zod and reports issues in the format of the interface.
import { z } from 'zod';

/** One thing wrong with a request. */
export interface ValidationIssue {
  /** Path of the wrong value: the part of the request, then field names and indexes. */
  readonly loc: string[];
  readonly msg: string;
  /** Machine-readable kind, for example `missing` or `string_type`. */
  readonly type: string;
}

/** All issues of a request, found in one pass. The reply is 422 `{detail: [...]}`. */
export class ValidationError extends Error {
  readonly issues: readonly ValidationIssue[];

  constructor(issues: readonly ValidationIssue[]) {
    super('The request does not match the interface description.');
    this.name = 'ValidationError';
    this.issues = issues;
  }
}

/** A ValidationIssue, for the OpenAPI document. */
export const validationIssueSchema = z.object({
  loc: z.array(z.string()),
  msg: z.string(),
  type: z.string(),
});
/** The body of a 422 reply, for the OpenAPI document. */
export const validationErrorSchema = z.object({ detail: z.array(validationIssueSchema) });

/** A part of a request. */
export type Part = 'path' | 'query' | 'header' | 'body';

/** The error with which a handler refuses one field, in the format of a schema issue. */
export const invalidField = (
  part: Part,
  field: string | readonly string[],
  msg: string,
  type = 'value_error',
): ValidationError =>
  new ValidationError([
    { loc: [part, ...(typeof field === 'string' ? [field] : field)], msg, type },
  ]);

/**
 * Issues that one reply lists. Without a limit, a hostile body could make the reply larger than
 * itself.
 */
const MAX_ISSUES = 50;

/**
 * Checks one part of a request. Issues are appended to `issues`; then do not use the returned
 * value.
 */
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

/**
 * A schema for an integer in a query string or header. OpenAPI shows an integer with these bounds.
 */
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
