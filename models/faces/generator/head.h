// The shape of a head and its clothes as a signed distance function. y is up, z towards the viewer,
// the eyes are near y = 0.07, the head is about 2 units high.
#pragma once
#include "character.h"

enum class Material { kSkin, kEye, kCloth, kCloth2, kGlasses };

/** Raises the body by this much. It sets the length of the neck. */
constexpr float kShoulderLift = .35f;

class Head {
 public:
  explicit Head(const Character& character);

  /**
   * @returns the distance to the nearest surface
   * @param material if given, receives its material
   */
  float distance(Vec3 p, Material* material = nullptr) const;
  /** @returns the distance to the skin without pores and wrinkles, for hair */
  float smooth(Vec3 p) const;
  Vec3 normal(Vec3 p, float epsilon) const;
  Vec3 smoothNormal(Vec3 p, float epsilon) const;
  /** World to head coordinates and back. The neck turns with the head. */
  Vec3 toHead(Vec3 p) const;
  Vec3 fromHead(Vec3 p) const;

  // Positions on the face for shading and hair, in the head's coordinates.
  /** @returns 1 on the lips, 0 elsewhere, soft at the border */
  float lipMask(Vec3 p) const;
  /** @returns the signed height above the seam of the lips */
  float seamOffset(Vec3 p) const;
  Vec3 eyeCentre(bool right) const;
  float eyeRadius() const { return eyeRadius_; }
  /** @returns height of the lid's margin above the eye's centre; x from there, outwards positive */
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
