// Reads the format parameters of a codec (`a=fmtp`).

/** The profile-level-id of H.264 if `a=fmtp` has none: baseline, level 1 (RFC 6184 section 8.1). */
export const DEFAULT_PROFILE = '42000a';

/**
 * The value of a parameter; undefined if `parameters`, the text of `a=fmtp`, has none of this name.
 */
export function parameterOf(parameters: string, name: string): string | undefined {
  for (const part of parameters.split(';')) {
    const equals = part.indexOf('=');
    if (equals > 0 && part.slice(0, equals).trim().toLowerCase() === name) {
      return part.slice(equals + 1).trim();
    }
  }
  return undefined;
}
