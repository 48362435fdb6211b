// Lids and gaze: how a place of the neutral picture round an eye looks with the lid part-way down and the eye turned.
#pragma once
#include "core/face_inside.h"

namespace mouthpiece::face {

/** An eye in one frame. */
class Gaze {
 public:
  /** @param blink 0 open .. 1 closed; @param droop how much lower the lid rests than in the portrait, share of the eye's height; @param x, y displacement of the iris in pixels */
  Gaze(const Asset& asset, const Eye& eye, float blink, float droop, float x, float y);

  bool still() const { return blink_ <= 0 && droop_ == 0 && x_ == 0 && y_ == 0; }
  /** Places of the neutral picture outside which `look` is always false. */
  const Area& area() const { return blink_ > 0 || droop_ != 0 ? eye_.lid_area : eye_.opening; }

  /** How the place where the neutral picture's pixel `s` went looks. */
  struct Look {
    Point from{};               // where the eye's own colour comes from,
    bool elsewhere = false;     // when not from `s` itself
    Point lid{};                // the same in the lid's layer,
    float covered = 0;          // and the lid's share
    float light = 1, lash = 0;  // shade of the lid on the eye; share of the lashes
  };
  /** @returns false where the eye changes nothing. */
  bool look(Point s, Look& out) const;

  float luma(const Look& look, float plain) const;
  void chroma(const Look& look, float& u, float& v) const;

 private:
  const Asset& asset_;
  const Eye& eye_;
  float blink_, droop_, x_, y_, cover_;
};

}  // namespace mouthpiece::face
