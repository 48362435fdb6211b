// The parameters of a character: proportions, age, colours, hair, clothes, light.
#pragma once
#include "vec.h"

enum class Hair { kShort, kLong, kBob, kCurly, kReceding };
enum class Clothes { kCrew, kTurtleneck, kBlazer };

struct Character {
  const char* id;
  // Shape: factors of the average, unless noted.
  float jawWidth = 1, jawHeight = 1, chin = 1, cheekbone = 1, cheekFat = 1;
  float noseWidth = 1, noseLength = 1, noseBridge = 1;
  float lipUpper = 1, lipLower = 1, mouthWidth = 1, smile = .35f;
  float eyeSize = 1, eyeTilt = .0f, eyeOpen = 1, browHeight = 0, browThickness = 1, browAngle = 0;
  float neckWidth = 1, faceLength = 1;
  /** 0 young to 1 old: folds, bags under the eyes, jowls, age spots. */
  float age = 0;
  /** Linear RGB. */
  Vec3 skin{.62f, .37f, .27f}, lips{.50f, .20f, .18f}, iris{.20f, .11f, .05f},
      hairRoot{.05f, .028f, .016f}, hairTip{.11f, .065f, .036f};
  Vec3 brow{.05f, .03f, .02f}, cloth{.08f, .12f, .22f}, cloth2{.7f, .7f, .7f},
      backdropLight{.55f, .58f, .62f}, backdropDark{.18f, .20f, .24f};
  float blush = 1, freckles = 0, gloss = 1;
  Hair hair = Hair::kShort;
  float hairAmount = 1, grey = 0;
  /** 0 shaved, 0.2 shadow, 0.6 stubble, 1 full beard. */
  float beard = 0;
  float lashes = 1, makeup = 0;
  Clothes clothes = Clothes::kCrew;
  bool glasses = false;
  uint32_t seed = 1;
  /** Turn of the head, radians. */
  float yaw = 0, pitch = 0, roll = 0;
};

/** @returns the character with that id, or null */
const Character* findCharacter(const char* id);
const Character* allCharacters(int* count);
