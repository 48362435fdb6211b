// The studio: lamps with a size, a dim room, and how much of them reaches a point.
#pragma once
#include "hair.h"

/** A rectangular lamp that shines towards the head. */
struct Lamp {
  Vec3 centre, right, up, radiance;
};

/** What a point receives: diffuse light by colour, before the skin's own colour. */
struct Lighting {
  Vec3 diffuse{0, 0, 0}, specular{0, 0, 0};
};

/** How a surface reflects. */
struct Gloss {
  /** Two lobes of GGX and the share of the first. */
  float rough1 = .5f, rough2 = .3f, share = .6f, amount = 1;
};

/** @returns the direction of the middle of the key lamp, a unit vector */
Vec3 keyDirectionOf(const Character& character);

class Studio {
 public:
  Studio(const Head& head, const HairOcclusion& hair);
  /**
   * Light that arrives at a point, by random rays.
   * @param n the normal for diffuse light @param fine the normal for reflections
   */
  Lighting light(Vec3 p, Vec3 geometric, Vec3 n, Vec3 fine, Vec3 view, const Gloss& gloss,
                 int samples, Random& random) const;
  /** What a mirror sees in a direction. */
  Vec3 room(Vec3 direction) const;
  /** The key lamp's direction, and what it gives at the head. */
  Vec3 keyDirection() const { return normalize(lamps_[0].centre); }
  Vec3 keyColour() const { return {1.9f, 1.78f, 1.62f}; }
  Vec3 fillDirection() const { return normalize(lamps_[1].centre); }
  Vec3 rimDirection() const { return normalize(lamps_[2].centre); }
  const std::array<Lamp, 3>& lamps() const { return lamps_; }
  bool isBlocked(Vec3 p, Vec3 direction, float limit) const;

 private:
  const Head& head_;
  const HairOcclusion& hair_;
  std::array<Lamp, 3> lamps_;
};
