// The parameters of a character: colours, age, hair, clothes, light. Its shape is in shapes.json.
#pragma once
#include "vec.h"

enum class Hair { kCrop, kPartedBob, kLong, kBob, kAfro, kCurls };
/** What is worn; kOverShirt is a V neck over a shirt. */
enum class Clothes { kNone, kCrew, kVneck, kTee, kShirt, kBlazer, kCardigan, kOverShirt };

/** Proportions that the targets of MakeHuman do not give; see sculpt.cc. */
struct Sculpt {
  /** Factors: width of the head, size of the eyes, how far ears stand out, width of the mouth,
   * height of the lips. */
  float faceWidth = .95f, eyeSize = 1.08f, earsOut = .7f, mouthWidth = 1.06f, upperLip = 1,
        lowerLip = 1;
  /** Shares of the width at a height: positive is wider, or tapers more. */
  float skull = 0, temples = 0, cheekbones = 0, jawTaper = .08f, chinTaper = .05f, neck = 0;
  /** Decimetres. */
  float eyesApart = .012f, upperLid = 0, lowerLid = 0, chinLength = 0, cheeks = .02f, hollows = 0,
        jowls = 0;
  /** How far the tip of the nose is raised, so that the nostrils are seen, how much longer the nose
   * is, how far the brows lie deeper and stand out; decimetres. */
  float noseTip = 0, noseLength = 0, brows = 0;
  /** A factor. */
  float noseWidth = 1;
  /** How far the bridge of the nose stands out between the eyes, decimetres. */
  float bridge = .030f;
  /** Half the width of the shoulders with the arms, decimetres. */
  float shoulders = 1.70f;
};

/** What muscles do to a face at rest, decimetres; see expression.cc. */
struct Expression {
  /** How far the inner ends of the brows sink, and how far the cheeks rise. */
  float calm = .030f, cheeks = .026f;
  /** How much more of it is on the right of the picture, a share. */
  float uneven = .07f;
  /** A closed smile of lips, cheeks and lower lids together: 0 none, 1 friendly. */
  float smile = 1;
};

struct Character {
  const char* id;
  /** 0 young to 1 old: wrinkles, bags under the eyes, age spots. */
  float age = 0;
  /** Linear RGB. */
  Vec3 skin{.62f, .37f, .27f}, lips{.50f, .20f, .18f}, iris{.20f, .11f, .05f},
      hairRoot{.05f, .028f, .016f}, hairTip{.11f, .065f, .036f};
  Vec3 brow{.05f, .03f, .02f}, cloth{.08f, .12f, .22f}, cloth2{.7f, .7f, .7f};
  float blush = 1, freckles = 0, gloss = 1;
  float browThickness = 1, browHeight = 0, browAngle = 0, browArch = 1;
  /** Light on the line between the lips: more for full lips, so that it is not taken for a gap. */
  float lipLine = .27f;
  Hair hair = Hair::kCrop;
  float hairAmount = 1, grey = 0;
  /** Brightness of hair of the head, by its colours: each hair shades others and lights them. */
  float hairLight = 1.21f;
  /** Height where long hair is cut, decimetres (the chin is near -1). */
  float hairFall = -1.4f;
  /** The side, -1 or 1, on which long hair is behind the shoulder; 0 for none. */
  float hairBehind = 0;
  /** Height of the hairline over the average. */
  float hairline = 0;
  /** Where long hair is parted. */
  float parting = -.17f;
  /** 0 shaved, 0.2 shadow, 0.6 stubble, 1 full beard. */
  float beard = 0;
  float lashes = 1, makeup = 0;
  /** How deep the fold over the upper lid is. */
  float lidCrease = 1;
  Clothes clothes = Clothes::kCrew;
  /** What is worn below, of the second colour. */
  Clothes under = Clothes::kNone;
  bool glasses = false;
  uint32_t seed = 1;
  Sculpt sculpt{};
  Expression expression{};
  /** Height of the corners of the mouth over its middle, decimetres. */
  float smile = .01f;
  /** How deep the edge of the upper lip dips below the nose; less below a moustache. */
  float bow = 1;
  /** Turn of the head, and of the body below it, radians. */
  float yaw = 0, pitch = 0, roll = 0, bodyYaw = 0;
  /** How far the shoulders are raised, decimetres: necks of the meshes are long. */
  float raised = .15f;
  /** Which side most of the light comes from: -1 or 1. */
  float lightSide = -1;
  /** Brightness of the whites of the eyes: beside dark skin bright ones seem to glow. */
  float whites = 1;
};

/** @returns whether hair hangs beside the face */
inline bool hangs(Hair hair) {
  return hair == Hair::kLong || hair == Hair::kBob || hair == Hair::kPartedBob;
}

/** @returns the character with that id, or null */
const Character* findCharacter(const char* id);
const Character* allCharacters(int* count);
