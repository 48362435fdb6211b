// The characters. All values were chosen by eye on renderings at full size.
#include <cstring>

#include "character.h"

namespace {

Character ava() {
  Character c{.id = "ava"};
  c.sculpt = {.faceWidth = .945f,
              .mouthWidth = 1.17f,
              .upperLip = .92f,
              .cheekbones = -.015f,
              .jawTaper = .085f,
              .chinTaper = .03f,
              .upperLid = .002f,
              .cheeks = .018f,
              .hollows = .010f,
              .noseLength = -.010f,
              .noseWidth = 1.10f,
              .shoulders = 1.72f};
  c.browThickness = 1.05f;
  c.skin = {.635f, .318f, .240f};
  c.lips = {.50f, .15f, .135f};
  c.iris = {.040f, .040f, .026f};
  c.hairRoot = {.060f, .022f, .010f};
  c.hairTip = {.130f, .050f, .021f};
  c.hairLight = 1.485f;
  c.brow = {.055f, .028f, .016f};
  c.cloth = {.045f, .070f, .105f};
  c.clothes = Clothes::kTee;
  c.hair = Hair::kLong;
  c.freckles = .85f;
  c.lashes = 1.25f;
  c.makeup = .4f;
  c.yaw = .05f;
  c.lipLine = .5f;
  c.parting = .20f;
  c.hairFall = -1.75f;
  c.hairline = -.09f;
  c.lightSide = 1;
  c.seed = 11;
  c.expression = {.calm = .008f, .cheeks = .022f, .uneven = .009f, .smile = .775f};
  c.smile = .0245f;
  c.roll = .0158f;
  c.bodyYaw = .34f;
  c.browHeight = -.016f;
  return c;
}

Character noah() {
  Character c{.id = "noah"};
  c.sculpt = {.faceWidth = .965f,
              .eyeSize = 1.04f,
              .mouthWidth = 1.07f,
              .upperLip = 1.08f,
              .lowerLip = .72f,
              .jawTaper = .015f,
              .chinTaper = -.04f,
              .upperLid = .002f,
              .chinLength = .035f,
              .hollows = .025f,
              .noseTip = .070f,
              .noseLength = .020f,
              .brows = .032f,
              .noseWidth = 1.06f,
              .shoulders = 1.93f};
  c.browThickness = 1.3f;
  c.beard = .34f;
  c.skin = {.58f, .290f, .214f};
  c.lips = {.40f, .170f, .148f};
  c.iris = {.038f, .052f, .064f};
  c.hairRoot = {.035f, .020f, .012f};
  c.hairTip = {.088f, .045f, .023f};
  c.hairLight = 1.43f;
  c.brow = {.035f, .021f, .013f};
  c.cloth = {.018f, .032f, .066f};
  c.clothes = Clothes::kCrew;
  c.hair = Hair::kCrop;
  c.lashes = .7f;
  c.blush = .8f;
  c.yaw = -.04f;
  c.hairline = -.05f;
  c.lightSide = 1;
  c.seed = 22;
  c.expression = {.calm = .002f, .cheeks = .020f, .uneven = -.012f, .smile = .682f};
  c.smile = .0287f;
  c.bow = 0;
  c.roll = -.0123f;
  c.raised = .06f;
  c.bodyYaw = -.3f;
  c.browHeight = -.036f;
  c.browArch = .8f;
  c.browAngle = .026f;
  return c;
}

Character mei() {
  Character c{.id = "mei"};
  c.sculpt = {.faceWidth = 1.015f,
              .eyeSize = 1.12f,
              .mouthWidth = 1.08f,
              .lowerLip = .92f,
              .cheekbones = -.01f,
              .jawTaper = .035f,
              .chinTaper = .04f,
              .eyesApart = .020f,
              .upperLid = .002f,
              .chinLength = -.025f,
              .cheeks = .024f,
              .noseWidth = 1.08f,
              .shoulders = 1.70f};
  c.browThickness = 1.0f;
  c.age = .10f;
  c.freckles = .05f;
  c.skin = {.61f, .338f, .240f};
  c.lips = {.45f, .14f, .135f};
  c.iris = {.040f, .021f, .011f};
  c.hairRoot = {.006f, .0052f, .0055f};
  c.hairTip = {.017f, .013f, .011f};
  c.hairLight = 1.32f;
  c.brow = {.018f, .014f, .012f};
  c.cloth = {.62f, .60f, .56f};
  c.clothes = Clothes::kShirt;
  c.hair = Hair::kBob;
  c.blush = 1.05f;
  c.lashes = 1.1f;
  c.makeup = .3f;
  c.yaw = .03f;
  c.lidCrease = .75f;
  c.hairline = -.04f;
  c.hairFall = -.70f;
  c.whites = 1.05f;
  c.seed = 33;
  c.expression = {.calm = 0, .cheeks = .030f, .uneven = -.0045f, .smile = .775f};
  c.smile = .0378f;
  c.bow = .6f;
  c.lipLine = .33f;
  c.roll = -.014f;
  c.bodyYaw = -.26f;
  c.browHeight = .005f;
  c.browAngle = .008f;
  c.browArch = .8f;
  return c;
}

Character samuel() {
  Character c{.id = "samuel"};
  c.sculpt = {.faceWidth = 1.f,
              .eyeSize = 1.02f,
              .earsOut = 1.f,
              .mouthWidth = 1.06f,
              .upperLip = .92f,
              .lowerLip = .76f,
              .cheekbones = .01f,
              .jawTaper = -.025f,
              .chinTaper = -.04f,
              .eyesApart = .018f,
              .upperLid = .004f,
              .noseTip = .05f,
              .brows = .030f,
              .noseWidth = 1.04f,
              .shoulders = 1.97f};
  c.browThickness = 1.3f;
  c.skin = {.190f, .086f, .048f};
  c.lips = {.092f, .032f, .027f};
  c.iris = {.018f, .009f, .005f};
  c.blush = .5f;
  c.gloss = .95f;
  c.hairRoot = {.010f, .008f, .007f};
  c.hairTip = {.022f, .018f, .016f};
  c.brow = {.010f, .008f, .007f};
  c.cloth = {.20f, .29f, .40f};
  c.clothes = Clothes::kShirt;
  c.hair = Hair::kAfro;
  c.hairAmount = .7f;
  c.beard = .30f;
  c.lashes = .9f;
  c.yaw = -.03f;
  c.whites = .29f;
  c.hairline = -.09f;
  c.seed = 44;
  c.lipLine = .33f;
  c.expression = {.calm = 0, .cheeks = .020f, .uneven = .012f, .smile = .682f};
  c.smile = .0322f;
  c.roll = .0105f;
  c.raised = .06f;
  c.bodyYaw = .36f;
  c.browHeight = -.036f;
  c.browArch = .8f;
  c.browAngle = .026f;
  return c;
}

Character priya() {
  Character c{.id = "priya"};
  c.sculpt = {.faceWidth = .955f,
              .eyeSize = 1.10f,
              .mouthWidth = 1.16f,
              .lowerLip = .86f,
              .cheekbones = .025f,
              .jawTaper = .055f,
              .chinTaper = .07f,
              .eyesApart = .006f,
              .upperLid = .002f,
              .chinLength = .045f,
              .cheeks = .012f,
              .hollows = .010f,
              .noseLength = .022f,
              .noseWidth = 1.04f,
              .shoulders = 1.72f};
  c.browThickness = 1.2f;
  c.skin = {.335f, .175f, .112f};
  c.lips = {.28f, .078f, .070f};
  c.iris = {.034f, .018f, .010f};
  c.hairRoot = {.011f, .008f, .007f};
  c.hairTip = {.036f, .020f, .013f};
  c.brow = {.014f, .010f, .008f};
  c.cloth = {.016f, .018f, .024f};
  c.clothes = Clothes::kBlazer;
  c.under = Clothes::kTee;
  c.cloth2 = {.62f, .58f, .54f};
  c.hair = Hair::kLong;
  c.lashes = 1.25f;
  c.makeup = .45f;
  c.yaw = -.04f;
  c.parting = -.06f;
  c.hairFall = -1.55f;
  c.hairBehind = -1;
  c.hairline = -.11f;
  c.lipLine = .62f;
  c.whites = .72f;
  c.seed = 66;
  c.expression = {.calm = 0, .cheeks = .022f, .uneven = .009f, .smile = .682f};
  c.smile = .0168f;
  c.bow = .6f;
  c.roll = .0175f;
  c.bodyYaw = -.36f;
  c.browHeight = -.018f;
  c.browAngle = .002f;
  return c;
}

Character walter() {
  Character c{.id = "walter"};
  c.sculpt = {.faceWidth = 1.02f,
              .eyeSize = 1.12f,
              .mouthWidth = 1.08f,
              .jawTaper = .005f,
              .chinTaper = -.03f,
              .jowls = .03f,
              .noseTip = .070f,
              .noseLength = .030f,
              .brows = .030f,
              .noseWidth = 1.07f,
              .shoulders = 1.90f};
  c.browThickness = 1.1f;
  c.age = .62f;
  c.beard = .24f;
  c.skin = {.635f, .324f, .252f};
  c.lips = {.43f, .185f, .170f};
  c.iris = {.052f, .070f, .082f};
  c.hairRoot = {.20f, .19f, .175f};
  c.hairTip = {.27f, .257f, .24f};
  c.hairLight = 1.43f;
  c.brow = {.062f, .054f, .046f};
  c.grey = 1;
  c.cloth = {.018f, .024f, .042f};
  c.clothes = Clothes::kOverShirt;
  c.under = Clothes::kShirt;
  c.cloth2 = {.42f, .48f, .55f};
  c.hair = Hair::kCrop;
  c.hairAmount = .5f;
  c.hairline = .10f;
  c.lashes = .6f;
  c.blush = .65f;
  c.yaw = .04f;
  c.lightSide = 1;
  c.seed = 77;
  c.expression = {.calm = .006f, .cheeks = .024f, .uneven = .015f, .smile = .682f};
  c.smile = .0322f;
  c.roll = -.0105f;
  c.raised = .06f;
  c.bodyYaw = .28f;
  c.browHeight = -.026f;
  c.browArch = .8f;
  c.browAngle = .026f;
  return c;
}

Character ruth() {
  Character c{.id = "ruth"};
  c.sculpt = {.faceWidth = .98f,
              .eyeSize = 1.14f,
              .mouthWidth = 1.12f,
              .jawTaper = .03f,
              .chinTaper = .01f,
              .jowls = .028f,
              .shoulders = 1.70f};
  c.browThickness = .85f;
  c.age = .68f;
  c.skin = {.65f, .338f, .260f};
  c.lips = {.46f, .20f, .19f};
  c.iris = {.078f, .098f, .110f};
  c.hairRoot = {.21f, .190f, .165f};
  c.hairTip = {.35f, .322f, .285f};
  c.hairLight = 1.76f;
  c.brow = {.070f, .062f, .054f};
  c.grey = 1;
  c.cloth = {.110f, .020f, .032f};
  c.cloth2 = {.66f, .62f, .56f};
  c.clothes = Clothes::kCardigan;
  c.under = Clothes::kTee;
  c.hair = Hair::kPartedBob;
  c.hairFall = -.55f;
  c.parting = -.22f;
  c.lashes = .7f;
  c.blush = .75f;
  c.glasses = true;
  c.yaw = .04f;
  c.hairline = -.08f;
  c.seed = 55;
  c.expression = {.calm = .012f, .cheeks = .030f, .uneven = -.012f, .smile = .775f};
  c.smile = .0343f;
  c.roll = .0158f;
  c.bodyYaw = .3f;
  c.browAngle = .026f;
  return c;
}

Character amara() {
  Character c{.id = "amara"};
  c.sculpt = {.faceWidth = .98f,
              .eyeSize = 1.06f,
              .mouthWidth = 1.13f,
              .upperLip = .92f,
              .lowerLip = .86f,
              .jawTaper = .07f,
              .chinTaper = .03f,
              .upperLid = .002f,
              .cheeks = .014f,
              .noseWidth = 1.03f,
              .shoulders = 1.70f};
  c.age = .06f;
  c.skin = {.136f, .059f, .032f};
  c.lips = {.092f, .026f, .022f};
  c.gloss = .68f;
  c.iris = {.015f, .008f, .005f};
  c.blush = .5f;
  c.hairRoot = {.008f, .006f, .005f};
  c.hairTip = {.016f, .012f, .010f};
  c.brow = {.008f, .006f, .005f};
  c.browThickness = 1.05f;
  c.cloth = {.030f, .056f, .043f};
  c.clothes = Clothes::kTee;
  c.hair = Hair::kCurls;
  c.lashes = 1.1f;
  c.makeup = .25f;
  c.yaw = .05f;
  c.whites = .15f;
  c.hairline = -.06f;
  c.lightSide = 1;
  c.seed = 88;
  c.lipLine = .90f;
  c.expression = {.calm = 0, .cheeks = .024f, .uneven = .0105f, .smile = .775f};
  c.smile = .0252f;
  c.roll = -.0175f;
  c.bodyYaw = -.3f;
  c.browHeight = -.002f;
  c.browAngle = .006f;
  return c;
}

const Character* characterTable(int* count) {
  static const Character all[] = {ava(),   noah(), mei(),    samuel(),
                                  priya(), ruth(), walter(), amara()};
  *count = int(sizeof all / sizeof *all);
  return all;
}

}  // namespace

const Character* allCharacters(int* count) {
  return characterTable(count);
}

const Character* findCharacter(const char* id) {
  int count;
  const Character* all = characterTable(&count);
  for (int i = 0; i < count; i++) {
    if (std::strcmp(all[i].id, id) == 0) {
      return all + i;
    }
  }
  return nullptr;
}
