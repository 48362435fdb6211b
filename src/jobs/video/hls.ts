// How a static video is cut into HLS segments: known from its length alone, by the renderer and by whoever serves it.
import { FPS } from '../../media/timeline.ts';

/** The first segment is short, so that playing can begin soon. */
const FIRST_SEGMENT_FRAMES = FPS;
const SEGMENT_FRAMES = 2 * FPS;

export const TARGET_SECONDS = SEGMENT_FRAMES / FPS;

/** Whether a segment begins with this frame; each begins with a key frame. */
export const isSegmentStart = (frame: number): boolean =>
  frame === 0 ||
  (frame >= FIRST_SEGMENT_FRAMES && (frame - FIRST_SEGMENT_FRAMES) % SEGMENT_FRAMES === 0);

export const segmentCount = (frames: number): number =>
  frames <= FIRST_SEGMENT_FRAMES
    ? 1
    : 1 + Math.ceil((frames - FIRST_SEGMENT_FRAMES) / SEGMENT_FRAMES);

/** Frames of segment `index` of a video of `frames`. */
export const framesInSegment = (index: number, frames: number): number =>
  index === 0
    ? Math.min(frames, FIRST_SEGMENT_FRAMES)
    : Math.min(SEGMENT_FRAMES, frames - FIRST_SEGMENT_FRAMES - (index - 1) * SEGMENT_FRAMES);

/** Frames that show `samples` at `rate`: the last one may reach beyond the sound. */
export const frameCount = (samples: number, rate: number): number =>
  Math.max(1, Math.ceil((samples / rate) * FPS - 1e-6));

export const INIT_NAME = 'init.mp4';
export const PLAYLIST_NAME = 'output.m3u8';
export const segmentName = (index: number): string =>
  `segment-${String(index).padStart(4, '0')}.m4s`;

/**
 * The media playlist (RFC 8216) once `done` segments are there. While there are more to come its type is EVENT, so players keep asking;
 * they are told to begin at the beginning, for a file that grows is no broadcast.
 */
export function playlist(frames: number, done: number): string {
  const isWhole = done === segmentCount(frames);
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${TARGET_SECONDS}`,
    '#EXT-X-MEDIA-SEQUENCE:0',
    `#EXT-X-PLAYLIST-TYPE:${isWhole ? 'VOD' : 'EVENT'}`,
    '#EXT-X-INDEPENDENT-SEGMENTS',
    '#EXT-X-START:TIME-OFFSET=0,PRECISE=YES',
    `#EXT-X-MAP:URI="${INIT_NAME}"`,
  ];
  for (let index = 0; index < done; index++) {
    lines.push(`#EXTINF:${(framesInSegment(index, frames) / FPS).toFixed(6)},`, segmentName(index));
  }
  if (isWhole) {
    lines.push('#EXT-X-ENDLIST');
  }
  return `${lines.join('\n')}\n`;
}
