// Inputs that are a conversation: steps of one byte that says what to do, two bytes of length, and
// that many bytes to do it with.

export interface Step {
  readonly op: number;
  readonly payload: Buffer;
}

/** Longer conversations say nothing more. */
const MAX_STEPS = 64;

/** A last step that is cut short gets what is there. */
export function readScript(data: Buffer): Step[] {
  const steps: Step[] = [];
  for (let at = 0; at + 3 <= data.length && steps.length < MAX_STEPS;) {
    const end = Math.min(data.length, at + 3 + data.readUInt16BE(at + 1));
    steps.push({ op: data[at] ?? 0, payload: data.subarray(at + 3, end) });
    at = end;
  }
  return steps;
}
