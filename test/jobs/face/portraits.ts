// Pictures for the tests of face creation, all rendered or drawn: seven portraits of an earlier
// generator, which stay as they are so that tests can draw over them, and variations of them.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import sharp, { type Sharp } from 'sharp';

/** The portrait of a default face. @param file as faces.json names it */
export const defaultPortrait = (file: string): Buffer =>
  readFileSync(path.resolve(import.meta.dirname, '../../../models/faces', file));
export const portraitOf = (id: string): Buffer => fixture(`drawn/${id}.webp`);
export const portrait = (id = 'mei'): Sharp => sharp(portraitOf(id));
export const fixture = (name: string): Buffer =>
  readFileSync(path.join(import.meta.dirname, 'fixtures', name));

/** A portrait with SVG drawn over it, in its 1024x1024 pixels. */
export const drawnOver = async (id: string, svg: string): Promise<Buffer> =>
  portrait(id)
    .composite([
      {
        input: Buffer.from(
          `<svg xmlns="http://www.w3.org/2000/svg" width="1024" height="1024">${svg}</svg>`,
        ),
      },
    ])
    .png()
    .toBuffer();

/** Two faces of the same size side by side. */
export async function twoFaces(left: string, right: string): Promise<Buffer> {
  const [a, b] = await Promise.all(
    [left, right].map(async (id) => portrait(id).resize(640).png().toBuffer()),
  );
  return sharp({ create: { width: 1280, height: 640, channels: 3, background: 'grey' } })
    .composite([
      { input: a!, left: 0, top: 0 },
      { input: b!, left: 640, top: 0 },
    ])
    .jpeg()
    .toBuffer();
}

/** A portrait in the corner of a large empty picture. */
export const smallIn = async (id: string, faceSide: number, side: number): Promise<Buffer> =>
  sharp({ create: { width: side, height: side, channels: 3, background: '#8a9096' } })
    .composite([
      {
        input: await portrait(id).resize(faceSide).png().toBuffer(),
        left: Math.round(side * 0.2),
        top: Math.round(side * 0.3),
      },
    ])
    .jpeg({ quality: 92 })
    .toBuffer();

export const tilted = async (id: string, degrees: number): Promise<Buffer> =>
  portrait(id).rotate(degrees, { background: '#9a9a9a' }).jpeg({ quality: 92 }).toBuffer();

/** A picture without a face: a landscape of gradients and blobs. */
export const landscape = async (): Promise<Buffer> =>
  sharp(
    Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="800" height="600">
  <defs><linearGradient id="s" x2="0" y2="1"><stop offset="0" stop-color="#79b"/><stop offset="1" stop-color="#eca"/></linearGradient></defs>
  <rect width="800" height="600" fill="url(#s)"/><path d="M0 400 L200 250 L330 380 L520 210 L800 420 V600 H0Z" fill="#465"/><circle cx="650" cy="110" r="45" fill="#ffd"/></svg>`),
  )
    .jpeg()
    .toBuffer();

/**
 * A laughing mouth painted over the closed one: dark inside, with an upper row of teeth. `height`
 * of the opening in half widths of the mouth.
 */
export async function laughing(
  id: string,
  mouth: { x: number; y: number; halfWidth: number },
  { lips = '#b5605a', inside = '#2a0f10', teeth = '#eee6d8', height = 0.52, lip = 20 } = {},
): Promise<Buffer> {
  const { x, y, halfWidth: w } = mouth;
  const h = height * w;
  return drawnOver(
    id,
    `
    <path d="M${x - w} ${y - 4} Q${x} ${y - 10 - lip} ${x + w} ${y - 4} Q${x} ${y + 2.3 * h + lip} ${x - w} ${y - 4}Z" fill="${lips}"/>
    <path d="M${x - 0.86 * w} ${y} Q${x} ${y - 8} ${x + 0.86 * w} ${y} Q${x} ${y + 2 * h} ${x - 0.86 * w} ${y}Z" fill="${inside}"/>
    <path d="M${x - 0.8 * w} ${y + 1} Q${x} ${y - 6} ${x + 0.8 * w} ${y + 1} Q${x} ${y + 1.35 * h} ${x - 0.8 * w} ${y + 1}Z" fill="${teeth}"/>`,
  );
}

/**
 * The corners of a closed mouth drawn up by `lift` of 1024 pixels: the lower face is sheared into a
 * smile column by column.
 */
export async function smilingClosed(id: string, lift: number): Promise<Buffer> {
  const { data, info } = await portrait(id)
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const out = Buffer.from(data);
  const [centre, mouthY, halfWidth] = [514, 600, 88];
  for (let y = 480; y < 760; y++) {
    for (let x = 340; x < 690; x++) {
      const r = Math.abs(x - centre) / halfWidth;
      const up =
        lift *
        Math.min(1, r * r) *
        Math.exp(-(Math.max(0, r - 1) ** 2) / 0.4) *
        Math.exp(-(((y - mouthY) / 70) ** 2));
      const from = Math.min(info.height - 1, Math.round(y + up));
      for (let c = 0; c < 3; c++) {
        out[(y * info.width + x) * 3 + c] = data[(from * info.width + x) * 3 + c]!;
      }
    }
  }
  return sharp(out, { raw: { width: info.width, height: info.height, channels: 3 } })
    .png()
    .toBuffer();
}
