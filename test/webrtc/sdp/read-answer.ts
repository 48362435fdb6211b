// Reads the SSRCs out of an answer.

/** The SSRC of the stream that the answer announces for `kind`. */
export function ssrcOf(answer: string, kind: 'video' | 'audio' = 'video'): number {
  const section = answer.split(/^m=/m).find((part) => part.startsWith(kind)) ?? '';
  return Number(/a=ssrc:(\d+)/.exec(section)?.[1]);
}

/** The SSRC of the video's RTX stream. */
export const rtxSsrcOf = (answer: string): number =>
  Number(/a=ssrc-group:FID \d+ (\d+)/.exec(answer)?.[1]);
