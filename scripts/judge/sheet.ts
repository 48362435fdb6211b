// The pictures that a judge looks at: a contact sheet of single moments, and a film of moments that
// follow each other. Sheets show single sounds; films show how far a mouth moves, and blinks.
import sharp, { type Sharp } from 'sharp';
import { ARTICULATOR_INDEX } from '../../src/media/articulation.ts';
import { PICTURE_SIZE } from '../../src/media/picture.ts';
import { FPS } from '../../src/media/timeline.ts';
import type { Clip } from './clip.ts';

const SIZE = PICTURE_SIZE;
const TILE = 256;
const LABEL = 20;

/** Pictures of a film, ten a second, and how many stand in a row. */
const FILM_PICTURES = 15;
const FILM_COLUMNS = 5;
const FILM_STEP = FPS / 10;
/** What of the head a film shows: its side, and how much is below the chin; widths of the face. */
const FILM_SIDE = 1.3;
const BELOW_CHIN = 0.12;
/** Landmarks at the sides of the face and at the chin. */
const [LEFT, RIGHT, CHIN] = [234, 454, 152];

/** A picture with what is written above it. */
interface Tile {
  readonly name: string;
  readonly picture: Sharp;
}

/** @param rgb a picture of SIZE x SIZE */
const pictureOf = (rgb: Buffer): Sharp =>
  sharp(rgb, { raw: { width: SIZE, height: SIZE, channels: 3 } });

/**
 * Writes the portrait, and beside it the moments in two rows.
 * @param moments names and pictures, RGB, SIZE x SIZE
 */
export async function writeSheet(
  file: string,
  portrait: Buffer,
  moments: readonly (readonly [name: string, rgb: Buffer])[],
): Promise<void> {
  const columns = 1 + moments.length / 2;
  // As tolerant as createFace: cameras write files that are a little wrong.
  const first: Tile = { name: 'portrait', picture: sharp(portrait, { failOn: 'error' }).rotate() };
  const tiles: (Tile | undefined)[] = moments.map(([name, rgb]) => ({
    name,
    picture: pictureOf(rgb),
  }));
  // The second row begins below the portrait.
  tiles.splice(columns - 1, 0, undefined);
  await writeTiles(file, [first, ...tiles], columns);
}

/** @returns the frames of a film: those of the speech in which the lips move most */
export function filmFrames({ frames, spoken }: Clip): number[] {
  const { open, round, wide } = ARTICULATOR_INDEX;
  const moved = frames.map(({ articulation }, frame) => {
    const before = frames[Math.max(0, frame - 1)]!.articulation;
    return [open, round, wide].reduce(
      (sum, channel) => sum + Math.abs(articulation[channel]! - before[channel]!),
      0,
    );
  });
  const length = FILM_PICTURES * FILM_STEP;
  const movedFrom = (start: number): number =>
    moved.slice(start, start + length).reduce((sum, one) => sum + one, 0);
  const starts = Array.from({ length: Math.max(1, spoken - length + 1) }, (_, i) => movedFrom(i));
  const first = starts.indexOf(Math.max(...starts));
  return Array.from({ length: FILM_PICTURES }, (_, i) => first + i * FILM_STEP);
}

/**
 * Writes a film of the head.
 * @param pictures RGB, SIZE x SIZE
 * @param landmarks of the face: x, y, z of each, pixels
 */
export async function writeFilm(
  file: string,
  pictures: readonly Buffer[],
  landmarks: ArrayLike<number>,
): Promise<void> {
  const at = (index: number): readonly [number, number] => [
    landmarks[index * 3]!,
    landmarks[index * 3 + 1]!,
  ];
  const [left, right, chin] = [at(LEFT), at(RIGHT), at(CHIN)];
  const face = Math.hypot(left[0] - right[0], left[1] - right[1]);
  const side = Math.min(SIZE, Math.round(FILM_SIDE * face));
  const within = (from: number): number => Math.min(SIZE - side, Math.max(0, Math.round(from)));
  const part = {
    left: within((left[0] + right[0] - side) / 2),
    top: within(chin[1] + BELOW_CHIN * face - side),
    width: side,
    height: side,
  };
  const tiles = pictures.map((rgb, i) => ({
    name: `${(i * FILM_STEP) / FPS} s`,
    picture: pictureOf(rgb).extract(part),
  }));
  await writeTiles(file, tiles, FILM_COLUMNS);
}

/** Writes tiles in rows; one that is undefined is black. */
async function writeTiles(
  file: string,
  tiles: readonly (Tile | undefined)[],
  columns: number,
): Promise<void> {
  const parts = tiles.map(
    async (tile, i) =>
      tile && {
        input: await tile.picture
          .resize(TILE, TILE, { fit: 'contain', background: 'black' })
          .extend({ top: LABEL, background: 'black' })
          .composite([{ input: caption(tile.name), left: 0, top: 0 }])
          .removeAlpha()
          .png()
          .toBuffer(),
        left: (i % columns) * TILE,
        top: Math.floor(i / columns) * (TILE + LABEL),
      },
  );
  const drawn = (await Promise.all(parts)).filter((part) => part !== undefined);
  const size = {
    width: columns * TILE,
    height: Math.ceil(tiles.length / columns) * (TILE + LABEL),
  };
  await sharp({ create: { ...size, channels: 3, background: 'black' } })
    .composite(drawn)
    .png()
    .toFile(file);
}

function caption(words: string): Buffer {
  return Buffer.from(
    `<svg width="${TILE}" height="${LABEL}"><text x="4" y="15" font-family="sans-serif" ` +
      `font-size="14" fill="white">${words}</text></svg>`,
  );
}
