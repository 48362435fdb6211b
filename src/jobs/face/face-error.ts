// Why a portrait is refused, and what could be better about one that is accepted: stable codes,
// each with a text that says what to change.

/** Reasons to refuse a portrait. */
export const FACE_ERRORS = {
  NOT_AN_IMAGE: 'This is not a JPEG, PNG or WebP image. Upload a photo in one of these formats.',
  UNSUPPORTED_FORMAT:
    'This image format is not supported. Save the picture as JPEG, PNG or WebP and upload that.',
  IMAGE_DAMAGED: 'The image file is damaged or incomplete. Export or download it again and retry.',
  IMAGE_TOO_LARGE: 'The image has too many pixels. Scale it down to at most 52 megapixels.',
  IMAGE_TOO_SMALL:
    'The image is too small. Use one that is at least 128 pixels on its shorter side.',
  NO_FACE:
    'No face was found. Use an upright, well lit portrait in which one face looks towards the camera.',
  SEVERAL_FACES: 'Several faces of similar size were found. Crop the picture to the face to use.',
  FACE_TOO_SMALL:
    'The face is too small in this picture. Use one in which the face is at least 90 pixels wide.',
  FACE_TURNED_AWAY:
    'The head is turned too far to the side, up or down. Use a portrait that looks towards the camera.',
  FACE_TILTED: 'The head is tilted too far. Rotate the picture so that the face is upright.',
  FACE_CUT_OFF:
    'Part of the face lies outside the picture. Use one that shows it from brows to chin, and the ' +
    'whole head where the video is not square.',
  MOUTH_COVERED:
    'The mouth is covered or cannot be seen clearly. Use an upright portrait without a ' +
    'mask, hand or object in front of the mouth.',
  MOUTH_WIDE_OPEN:
    'The mouth is wide open or the tongue is out. Use a portrait with closed or slightly open lips.',
  FACE_TOO_DARK: 'The face is too dark. Use a picture with more light on the face.',
  FACE_OVEREXPOSED:
    'The face is overexposed, its features are lost in white. Use a picture with softer light.',
  FACE_BLURRED: 'The face is too blurred. Use a sharper picture.',
  FACE_UNCLEAR:
    'No face of a person can be seen clearly enough. Use a sharp, well lit portrait of a person; ' +
    'animals cannot be animated.',
} as const;

/** Why a portrait is refused. */
export type FaceErrorCode = keyof typeof FACE_ERRORS;

/** A portrait is refused. The message may be shown to the user who uploaded it. */
export class FaceError extends Error {
  readonly code: FaceErrorCode;

  constructor(code: FaceErrorCode, message: string = FACE_ERRORS[code], options?: ErrorOptions) {
    super(message, options);
    this.name = 'FaceError';
    this.code = code;
  }
}

/** Problems with which a portrait is accepted. */
export const FACE_WARNINGS = {
  BLURRED: 'The face is blurred; a sharper picture will look better.',
  DARK: 'The face is dark; a better lit picture will look better.',
  OVEREXPOSED: 'Parts of the face are overexposed; softer light will look better.',
  ROTATED: 'The picture was upside down or on its side, so it was turned.',
  LOW_RESOLUTION: 'The face has few pixels; a larger picture will look sharper.',
  TURNED: 'The head is turned to one side; a picture that faces the camera will move better.',
  MOUTH_OPEN:
    'The mouth is open, so it was closed by image processing. A picture with closed lips ' +
    'will look more natural.',
  EYES_HIDDEN: 'The eyes are hidden, so they will not blink.',
  EYES_CLOSED:
    'The eyes are closed, so they will not blink. A picture with open eyes will look more natural.',
  CHIN_COVERED:
    'Something covers the chin or touches a lip, perhaps a hand, a microphone or a scarf, and will ' +
    'move with the mouth. A picture without it will look better.',
  EXTENDED:
    'The picture shows more than the portrait does: what is missing is out of focus. A portrait with ' +
    'more space around the head and the shoulders will look better.',
  BACKGROUND_KEPT:
    'The background could not be told from the person, so it was kept. Use a picture in front of ' +
    'a plain wall.',
  OTHER_FACES:
    'There are other faces in the picture; the largest one of a person was used. Crop the picture ' +
    'to another face to use that.',
  CROPPED: 'There is little space around the head, so it will move less.',
} as const;

/** What could be better about an accepted portrait. */
export type FaceWarning = keyof typeof FACE_WARNINGS;
