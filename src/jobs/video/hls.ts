// The HLS segments and playlist of a static video. Segment boundaries follow from its length alone,
// so renderer and server agree on them.
import { FPS } from '../../media/timeline.ts';

/** Frames of the first segment, which is short for a fast start, and of the others. */
const FIRST_SEGMENT_FRAMES = FPS;
const SEGMENT_FRAMES = 2 * FPS;

/** Duration of the longest segment, seconds. */
export const TARGET_SECONDS = SEGMENT_FRAMES / FPS;

/** Whether a segment begins with this frame. Each begins with a key frame. */
export const isSegmentStart = (frame: number): boolean =>
  frame === 0 ||
  (frame >= FIRST_SEGMENT_FRAMES && (frame - FIRST_SEGMENT_FRAMES) % SEGMENT_FRAMES === 0);

/** Number of segments of a video of `frames`. */
export const segmentCount = (frames: number): number =>
  frames <= FIRST_SEGMENT_FRAMES
    ? 1
    : 1 + Math.ceil((frames - FIRST_SEGMENT_FRAMES) / SEGMENT_FRAMES);

/** Number of frames of segment `index` in a video of `frames`. */
export const framesInSegment = (index: number, frames: number): number =>
  index === 0
    ? Math.min(frames, FIRST_SEGMENT_FRAMES)
    : Math.min(SEGMENT_FRAMES, frames - FIRST_SEGMENT_FRAMES - (index - 1) * SEGMENT_FRAMES);

/** Number of frames for `samples` at `rate` Hz. The last frame may extend beyond the sound. */
export const frameCount = (samples: number, rate: number): number =>
  Math.max(1, Math.ceil((samples / rate) * FPS - 1e-6));

/** File names of the initialisation segment, the playlist and the media segments. */
export const INIT_NAME = 'init.mp4';
export const PLAYLIST_NAME = 'output.m3u8';
/** @param index from 0 */
export const segmentName = (index: number): string =>
  `segment-${String(index).padStart(4, '0')}.m4s`;

/**
 * The media playlist (RFC 8216) when `done` segments are ready. Until all are, its type is EVENT,
 * so that players ask again. EXT-X-START makes players begin at the start, because a growing file
 * is not a live broadcast.
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
