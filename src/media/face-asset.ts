// The face asset: one file with everything that the renderer needs of one person. Made by
// src/jobs/face, drawn by native/src/core/face_*.
import { demand } from './face-asset-error.ts';
import { isSide, MAX_SIDE, MIN_SIDE } from './face-asset-size.ts';
import { i420Bytes } from './picture.ts';

/*
 * Layout of version 1, little endian. Every section starts at a multiple of 64, so that the native
 * side can use the bytes in place:
 *
 *   0   6   "MPFACE"
 *   6   u16 version (1)
 *   8   u32 total length in bytes
 *   12  u16 width, u16 height of the picture: multiples of 16, 128 to 1280 (creation: FACE_SIZES)
 *   16  u32 number of sections, at most 32
 *   64  section table, 32 bytes each: name (16 bytes of ASCII, zero padded), u32 offset,
 *       u32 length, 8 bytes zero
 *   ... sections
 *
 * No section is empty, and no two have the same name. Readers ignore unknown sections. Coordinates
 * are pixels of the asset's picture: x to the right, y down, pixel centres at integers. "Left" and
 * "right" are the viewer's.
 */

const MAGIC = 'MPFACE';
const VERSION = 1;
const PREFIX_BYTES = 64;
const ENTRY_BYTES = 32;
const ALIGNMENT = 64;
const MAX_SECTIONS = 32;
const MAX_BYTES = 64 * 1024 * 1024;

export const BREATH_CELL = 4; // side of a cell of `FaceAssetParts.shoulders`, pixels
/** Points of the MediaPipe FaceMesh topology, in its order. */
export const LANDMARK_COUNT = 468;

/**
 * Largest distance of a landmark, in widths plus heights of the picture: bounds what is derived
 * from landmarks (native/src/core/face_asset.cc).
 */
const LANDMARK_EXTENT = 2;

/**
 * A textured layer with alpha at a place of the picture. `x y width height` are even; planes have
 * no padding.
 */
export interface FacePatch {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly luma: Uint8Array; // width * height
  readonly u: Uint8Array; // width * height / 4
  readonly v: Uint8Array; // width * height / 4
  readonly alpha: Uint8Array; // width * height: 255 opaque
}

/** A colour as BT.601 limited-range Y, U, V, each 0..255. */
export type Yuv = readonly [y: number, u: number, v: number];

/** Colours of what the portrait does not show. */
export interface FaceTints {
  readonly cavity: Yuv; // the dark behind the teeth: nearly black, slightly red
  readonly gums: Yuv;
  readonly tongue: Yuv;
  readonly teeth: Yuv; // of a well-lit front tooth under this photo's light
}

/**
 * Limits of movement for this face; the renderer clamps to them. Angles in radians, lengths in
 * pixels.
 */
export interface FaceLimits {
  readonly round: number; // 0..1: most lip rounding that looks right; 0.6 for a closed smile
  readonly open: number; // 0.3..1.5: scale of mouth opening (1 for an adult's relaxed closed mouth)
  readonly yaw: number; // 0..0.1; 0.06 when in doubt
  readonly pitch: number;
  readonly roll: number;
  readonly shift: number; // 0..12: head translation
  /**
   * 0..1: share of the usual brow movement; small where glasses would bend with the brows. Default
   * 1.
   */
  readonly brow: number;
}

/** What is told about the face, and not drawn. */
export interface FaceMeta {
  readonly name: string;
  /** Codes of the quality warnings at creation, shown to the face's owner. */
  readonly warnings: readonly string[];
  /** Figures of the creation (confidence, source size, timings). JSON values only. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** The contents of a face asset. */
export interface FaceAssetParts {
  readonly width: number;
  readonly height: number;
  readonly meta: FaceMeta;
  /**
   * I420: the face at rest, bit for bit. Eyes open, mouth closed, no teeth visible between the
   * lips. The whole head is inside, with room above it. Best results: brow to chin is 40 to 55 % of
   * the height.
   */
  readonly neutral: Uint8Array;
  /**
   * LANDMARK_COUNT x (x, y, z) of the neutral picture, so after its mouth was closed. z has the
   * scale of x; smaller is nearer. The inner lip points (upper 191 80 81 82 13 312 311 310 415,
   * lower 95 88 178 87 14 317 402 318 324, corners 78 308) lie within about 1 px of the visible
   * line between the lips: the picture is cut open there.
   */
  readonly landmarks: Float32Array;
  /**
   * width * height values: how far each pixel follows the head. 255 on the head with its hair, 0
   * where the picture must never change. Between them is a ramp of 24 to 40 px, from the outline
   * into the background and down the neck to the shoulders: wide on a plain background, narrow and
   * into the hair on a busy one. At most 8 per pixel steep.
   */
  readonly matte: Uint8Array;
  /**
   * One value for each cell of BREATH_CELL squared pixels: how far it rises with the breath, besides
   * the head; 0 where it must not. Undefined in files of older servers.
   */
  readonly shoulders: Uint8Array | undefined;
  readonly tints: FaceTints;
  readonly limits: FaceLimits;
  /**
   * The closed eye on the left and on the right of the picture: skin of the lid from its crease to
   * below the lower lid, without lashes. The renderer draws the lashes at the moving edge of the
   * lid. When closed, that edge is the neutral lower-lid curve (landmarks 33 7 163 144 145 153 154
   * 155 133 and 263 249 390 373 374 380 381 382 362), lower by 10 % of the eye's height in the
   * middle.
   *
   * The patch covers the eye with about 60 % of its height above the upper lid and 30 % below the
   * lower one. Alpha is 255 over the opening, soft to 0 at the border. It is 0 where a frame of
   * glasses crosses the lid, so that the frame stays; where it is 0 everywhere (dark glasses), a
   * blink shows nothing. Undefined: the renderer paints one from the skin round the eye.
   */
  readonly lidLeft: FacePatch | undefined;
  readonly lidRight: FacePatch | undefined;
}

const align = (offset: number): number => Math.ceil(offset / ALIGNMENT) * ALIGNMENT;

const packPatch = (patch: FacePatch): Uint8Array => {
  const { x, y, width, height, luma, u, v, alpha } = patch;
  const pixels = width * height;
  demand(
    [x, y, width, height].every((n) => Number.isInteger(n) && n >= 0 && n % 2 === 0) && pixels > 0,
    'a patch must have an even, non-negative place and size',
  );
  demand(
    luma.length === pixels &&
      alpha.length === pixels &&
      u.length === pixels / 4 &&
      v.length === pixels / 4,
    'a patch has planes of the wrong size',
  );
  const bytes = new Uint8Array(ALIGNMENT + pixels * 2.5);
  new Uint16Array(bytes.buffer, 0, 4).set([x, y, width, height]);
  bytes.set(luma, ALIGNMENT);
  bytes.set(u, ALIGNMENT + pixels);
  bytes.set(v, ALIGNMENT + pixels * 1.25);
  bytes.set(alpha, ALIGNMENT + pixels * 1.5);
  return bytes;
};

const unpackPatch = (bytes: Uint8Array, pictureWidth: number, pictureHeight: number): FacePatch => {
  demand(bytes.length >= ALIGNMENT, 'a patch is cut short');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [x, y, width, height] = [0, 2, 4, 6].map((at) => view.getUint16(at, true)) as [
    number,
    number,
    number,
    number,
  ];
  const pixels = width * height;
  demand(
    (x % 2) + (y % 2) + (width % 2) + (height % 2) === 0 &&
      pixels > 0 &&
      x + width <= pictureWidth &&
      y + height <= pictureHeight,
    'a patch lies outside the picture',
  );
  demand(bytes.length === ALIGNMENT + pixels * 2.5, 'a patch has the wrong length');
  const plane = (from: number, to: number): Uint8Array =>
    bytes.subarray(ALIGNMENT + pixels * from, ALIGNMENT + pixels * to);
  return {
    x,
    y,
    width,
    height,
    luma: plane(0, 1),
    u: plane(1, 1.25),
    v: plane(1.25, 1.5),
    alpha: plane(1.5, 2.5),
  };
};

const TINTS = ['cavity', 'gums', 'tongue', 'teeth'] as const;
const LIMITS = ['round', 'open', 'yaw', 'pitch', 'roll', 'shift', 'brow'] as const;
/** Without `brow`, which is younger than some files. */
const LEAST_LIMITS = 6;
const LIMIT_RANGE: Record<(typeof LIMITS)[number], readonly [number, number]> = {
  round: [0, 1],
  open: [0.3, 1.5],
  yaw: [0, 0.1],
  pitch: [0, 0.1],
  roll: [0, 0.1],
  shift: [0, 12],
  brow: [0, 1],
};
/** Limits are stored as 32-bit floats. */
const ROUNDING = 1e-6;
const PATCHES = ['lidLeft', 'lidRight'] as const;

const cellsOf = (width: number, height: number): number =>
  (width / BREATH_CELL) * (height / BREATH_CELL);

/**
 * One file's bytes from its parts. The same parts give the same bytes.
 * @throws FaceAssetError when a part has the wrong size or a value out of range.
 */
export function encodeFaceAsset(parts: FaceAssetParts): Uint8Array {
  const { width, height } = parts;
  demand(
    [width, height].every(isSide),
    `width and height must be multiples of 16 from ${MIN_SIDE} to ${MAX_SIDE}`,
  );
  demand(
    parts.neutral.length === i420Bytes(width, height),
    'the neutral picture has the wrong size',
  );
  demand(
    parts.landmarks.length === LANDMARK_COUNT * 3 && parts.landmarks.every(Number.isFinite),
    `landmarks must be ${LANDMARK_COUNT} x 3 finite numbers`,
  );
  demand(parts.matte.length === width * height, 'the matte has the wrong size');
  demand(
    (parts.shoulders?.length ?? cellsOf(width, height)) === cellsOf(width, height),
    'the shoulders have the wrong size',
  );
  for (const name of LIMITS) {
    demand(
      parts.limits[name] >= LIMIT_RANGE[name][0] &&
        parts.limits[name] <= LIMIT_RANGE[name][1] + ROUNDING,
      `limits.${name} must be from ${LIMIT_RANGE[name].join(' to ')}`,
    );
  }

  const landmarks = Float32Array.from(parts.landmarks);
  const limits = Float32Array.from(LIMITS, (name) => parts.limits[name]);
  const sections: [string, Uint8Array][] = [
    ['meta', new TextEncoder().encode(JSON.stringify(parts.meta))],
    ['neutral', parts.neutral],
    ['landmarks', new Uint8Array(landmarks.buffer)],
    ['matte', parts.matte],
    ['tints', Uint8Array.from(TINTS.flatMap((name) => [...parts.tints[name]]))],
    ['limits', new Uint8Array(limits.buffer)],
  ];
  if (parts.shoulders) {
    sections.push(['shoulders', parts.shoulders]);
  }
  for (const name of PATCHES) {
    const patch = parts[name];
    if (patch) {
      sections.push([name, packPatch(patch)]);
    }
  }

  let offset = align(PREFIX_BYTES + sections.length * ENTRY_BYTES);
  const offsets = sections.map(([, bytes]) => {
    const at = offset;
    offset = align(offset + bytes.length);
    return at;
  });
  const out = new Uint8Array(offset);
  const view = new DataView(out.buffer);
  out.set(new TextEncoder().encode(MAGIC));
  view.setUint16(6, VERSION, true);
  view.setUint32(8, out.length, true);
  view.setUint16(12, width, true);
  view.setUint16(14, height, true);
  view.setUint32(16, sections.length, true);
  sections.forEach(([name, bytes], index) => {
    const entry = PREFIX_BYTES + index * ENTRY_BYTES;
    const at = offsets[index] as number;
    out.set(new TextEncoder().encode(name), entry);
    view.setUint32(entry + 16, at, true);
    view.setUint32(entry + 20, bytes.length, true);
    out.set(bytes, at);
  });
  return out;
}

/**
 * Reads an asset. Planes are views into `bytes`, which may be shared memory; small parts are
 * copies.
 * @throws FaceAssetError when the bytes are not a complete asset of a known version
 */
export function decodeFaceAsset(bytes: Uint8Array): FaceAssetParts {
  demand(bytes.length >= PREFIX_BYTES && bytes.length <= MAX_BYTES, 'wrong size');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const ascii = (at: number, length: number): string =>
    String.fromCharCode(...bytes.subarray(at, at + length));
  demand(ascii(0, 6) === MAGIC, `it does not begin with ${MAGIC}`);
  demand(
    view.getUint16(6, true) === VERSION,
    `version ${view.getUint16(6, true)}, and this server reads version ${VERSION}: ` +
      'create the face again',
  );
  demand(view.getUint32(8, true) === bytes.length, 'it is cut short');
  const width = view.getUint16(12, true);
  const height = view.getUint16(14, true);
  demand([width, height].every(isSide), 'impossible picture size');
  const count = view.getUint32(16, true);
  demand(
    count <= MAX_SECTIONS && PREFIX_BYTES + count * ENTRY_BYTES <= bytes.length,
    'its table of sections is broken',
  );

  const sections = new Map<string, Uint8Array>();
  for (let index = 0; index < count; index++) {
    const entry = PREFIX_BYTES + index * ENTRY_BYTES;
    const at = view.getUint32(entry + 16, true);
    const length = view.getUint32(entry + 20, true);
    const name = ascii(entry, 16).split('\0', 1)[0] as string;
    demand(
      at % ALIGNMENT === 0 && length > 0 && at + length <= bytes.length,
      'a section lies outside the file',
    );
    demand(!sections.has(name), 'two sections have one name');
    sections.set(name, bytes.subarray(at, at + length));
  }
  const section = (name: string, length: number): Uint8Array => {
    const found = sections.get(name);
    demand(found?.length === length, `section "${name}" is missing or has the wrong length`);
    return found as Uint8Array;
  };
  const floats = (name: string, length: number): Float32Array => {
    const values = new Float32Array(Uint8Array.from(section(name, length * 4)).buffer);
    demand(values.every(Number.isFinite), `section "${name}" holds a number that is not finite`);
    return values;
  };
  const tints = section('tints', TINTS.length * 3);
  const limits = Float32Array.of(
    ...floats(
      'limits',
      sections.get('limits')?.length === LEAST_LIMITS * 4 ? LEAST_LIMITS : LIMITS.length,
    ),
    1,
  ).subarray(0, LIMITS.length);
  LIMITS.forEach((name, index) => {
    demand(
      (limits[index] as number) >= LIMIT_RANGE[name][0] &&
        (limits[index] as number) <= LIMIT_RANGE[name][1] + ROUNDING,
      `limits.${name} is out of range`,
    );
  });
  const patch = (name: (typeof PATCHES)[number]): FacePatch | undefined => {
    const found = sections.get(name);
    return found ? unpackPatch(found, width, height) : undefined;
  };
  const landmarks = floats('landmarks', LANDMARK_COUNT * 3);
  const extent = LANDMARK_EXTENT * (width + height);
  demand(
    landmarks.every((value) => Math.abs(value) <= extent),
    'a landmark lies far outside the picture',
  );
  return {
    width,
    height,
    meta: decodeMeta(sections.get('meta')),
    neutral: section('neutral', i420Bytes(width, height)),
    landmarks,
    matte: section('matte', width * height),
    shoulders: sections.has('shoulders') ? section('shoulders', cellsOf(width, height)) : undefined,
    tints: Object.fromEntries(
      TINTS.map((name, index) => [name, [...tints.subarray(index * 3, index * 3 + 3)]]),
    ) as unknown as FaceTints,
    limits: Object.fromEntries(
      LIMITS.map((name, index) => [name, limits[index]]),
    ) as unknown as FaceLimits,
    lidLeft: patch('lidLeft'),
    lidRight: patch('lidRight'),
  };
}

function decodeMeta(bytes: Uint8Array | undefined): FaceMeta {
  demand(bytes !== undefined, 'section "meta" is missing');
  let meta: Partial<FaceMeta> | undefined = undefined;
  try {
    meta = JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes as Uint8Array))) as
      | Partial<FaceMeta>
      | undefined;
  } catch {
    // Reported below, like any other wrong content.
  }
  demand(
    typeof meta?.name === 'string' &&
      Array.isArray(meta.warnings) &&
      typeof meta.details === 'object',
    'section "meta" is not the JSON it should be',
  );
  return meta as FaceMeta;
}
