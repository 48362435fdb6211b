// The shape of a head and its clothes as a signed distance: y up, z to the viewer, eyes near y =
// .07, the head about 2 units tall.
#pragma once
#include "character.h"

enum class Material { kSkin, kEye, kCloth, kCloth2, kGlasses };

class Head {
 public:
  explicit Head(const Character& character);

  /** Distance to the nearest surface; `material` (if given) says which. */
  float distance(Vec3 p, Material* material = nullptr) const;
  /** Of the skin without pores and wrinkles, for hair to lie on. */
  float smooth(Vec3 p) const;
  Vec3 normal(Vec3 p, float epsilon) const;
  Vec3 smoothNormal(Vec3 p, float epsilon) const;
  /** From the picture's space to the head's own, and back: the neck turns with the head. */
  Vec3 toHead(Vec3 p) const;
  Vec3 fromHead(Vec3 p) const;

  // Places on the face that shading and hair share; in the head's space.
  /** 1 on the lips, 0 off, soft at the vermilion border. */
  float lipMask(Vec3 p) const;
  /** Signed height over the seam between the lips. */
  float seamOffset(Vec3 p) const;
  Vec3 eyeCentre(bool right) const;
  float eyeRadius() const { return eyeRadius_; }
  /** Lid margins at x (from the eye's centre, positive outwards), as heights over the eye's centre.
   */
  float upperLid(float x) const;
  float lowerLid(float x) const;
  float eyeHalfWidth() const { return .150f * c_.eyeSize; }
  Vec3 onSkin(Vec3 near, Vec3 direction) const;
  const Character& character() const { return c_; }

 private:
  float skull(Vec3 p) const;
  float features(Vec3 p, float d) const;
  float nose(Vec3 p) const;
  float mouth(Vec3 p, float d) const;
  float lids(Vec3 p, float d) const;
  float ear(Vec3 p) const;
  float folds(Vec3 p) const;
  float torso(Vec3 p, Material* material) const;
  float glasses(Vec3 p) const;

  Character c_;
  float eyeRadius_;
  float cosYaw_, sinYaw_, cosPitch_, sinPitch_, cosRoll_, sinRoll_;
};
