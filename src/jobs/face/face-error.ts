// Why a portrait is refused: stable codes, each with words that say what to change.

export const FACE_ERRORS = {
  NOT_AN_IMAGE: 'This is not a JPEG, PNG or WebP image. Upload a photo in one of these formats.',
  UNSUPPORTED_FORMAT:
    'This image format is not supported. Save the picture as JPEG, PNG or WebP and upload that.',
  IMAGE_DAMAGED: 'The image file is damaged or incomplete. Export or download it again and retry.',
  IMAGE_TOO_LARGE: 'The image has too many pixels. Scale it down to at most 50 megapixels.',
  IMAGE_TOO_SMALL:
    'The image is too small. Use one that is at least 128 pixels on its shorter side.',
  NO_FACE:
    'No face was found. Use a portrait in which one face looks towards the camera, upright and well lit.',
  SEVERAL_FACES:
    'Several faces of similar size were found. Crop the picture to the one that shall speak.',
  FACE_TOO_SMALL:
    'The face is too small in this picture. Use one in which the face is at least 90 pixels wide, or move closer.',
  FACE_TURNED_AWAY:
    'The head is turned too far to the side, up or down. Use a portrait that looks towards the camera.',
  FACE_TILTED: 'The head is tilted too far. Rotate the picture so that the face is upright.',
  FACE_CUT_OFF:
    'Part of the face lies outside the picture. Use one that shows the whole face, from forehead to chin.',
  MOUTH_COVERED:
    'The mouth is covered or cannot be made out. Use an upright portrait without a mask, hand or object before the mouth.',
  FACE_UNCLEAR: 'The face cannot be made out well enough. Use a sharper, better lit picture.',
} as const;

export type FaceErrorCode = keyof typeof FACE_ERRORS;

/** Refusal of a portrait, safe to show to whoever uploaded it. */
export class FaceError extends Error {
  readonly code: FaceErrorCode;

  constructor(code: FaceErrorCode, message: string = FACE_ERRORS[code]) {
    super(message);
    this.name = 'FaceError';
    this.code = code;
  }
}

/** What a portrait gets through with, yet could be better. */
export const FACE_WARNINGS = {
  BLURRED: 'The face is blurred; a sharper picture will look better.',
  DARK: 'The face is dark; a better lit picture will look better.',
  OVEREXPOSED: 'Parts of the face are overexposed; softer light will look better.',
  LOW_RESOLUTION: 'The face has few pixels; a larger picture will look sharper.',
  TURNED: 'The head is turned to one side; a picture that faces the camera will move better.',
  MOUTH_OPEN:
    'The mouth is open; it was closed for the resting face. A picture with the lips together will look more natural.',
  EYES_HIDDEN: 'The eyes cannot be seen, so they will not blink.',
  EYES_CLOSED:
    'The eyes are closed, so they will not blink. A picture with open eyes will look more alive.',
  CHIN_COVERED:
    'Something covers the chin, perhaps a microphone or a scarf, and will move with the mouth. A picture without it will look better.',
  OTHER_FACES: 'Other faces are in the picture; the largest one was used.',
  CROPPED: 'There is little room around the head; it will move less.',
} as const;

export type FaceWarning = keyof typeof FACE_WARNINGS;
