// What may be chosen of the picture of a face at its creation.

/** Width and height of the pictures that a face may have, in pixels: multiples of 16. */
export const FACE_SIZES = [
  '512x512',
  '720x720',
  '576x1024',
  '720x1280',
  '1024x576',
  '1280x720',
] as const;
/** How much is shown: the head, as large as it looks best, or the shoulders too. */
export const FRAMINGS = ['head', 'shoulders'] as const;

/** The picture of a face, as its owner chose it. */
export interface FaceLook {
  readonly size: (typeof FACE_SIZES)[number];
  readonly framing: (typeof FRAMINGS)[number];
  /** `keep`, `blurred`, `green`, or a colour as #rrggbb. */
  readonly background: string;
}

/** The look of a face that was made without a choice. */
export const DEFAULT_LOOK: FaceLook = { size: '512x512', framing: 'head', background: 'keep' };

/** Pixels. */
export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** Width and height of a size. */
export function sizeOf(size: FaceLook['size']): PictureSize {
  const [width = 0, height = 0] = size.split('x').map(Number);
  return { width, height };
}
