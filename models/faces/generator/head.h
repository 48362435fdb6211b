// The shape of a head: a mesh, and what hair, skin and light need to know of it. y is up, z towards
// the viewer, a unit is a decimetre, the eyes are near y = 0.07.
#pragma once
#include <string>

#include "character.h"
#include "lips.h"
#include "mesh.h"

struct Eye {
  Vec3 centre;
  float radius;
};

/** Positions on the face, in the head's coordinates. */
struct Landmarks {
  Vec3 mouth, noseTip;
  /** Half the mouth's width. */
  float mouthHalf;
  float lipTop, lipBottom;
  float chin;
  /** Where the wing of the nose ends, and where it is attached. */
  float noseHalf, noseBase;
  /** The middle of a nostril on the side of positive x, half its width, its rise outwards, and the
   * outermost point of the wing beside it. */
  Vec3 nostril;
  float nostrilHalf, nostrilRise, wing;
  /** Front (z) and top (y) of the ears, and the highest point of the skull (y). */
  float earFront, earTop, crown;
};

class Head {
 public:
  /** @param folder holds topology.bin and <id>.bin @throws std::runtime_error */
  Head(const Character& character, const std::string& folder);

  /** @returns the distance to the skin, negative inside; p in the head's coordinates */
  float distance(Vec3 p) const;
  /** @returns the direction away from the skin, a unit vector */
  Vec3 away(Vec3 p) const;
  /** @returns the first point of the skin seen from the front at (x, y), and its normal */
  bool onFront(float x, float y, Vec3& point, Vec3& normal) const;
  /** The same, with everything that is known of the point. */
  bool vertexOnFront(float x, float y, Vertex& vertex) const;
  bool isOnEar(Vec3 p) const;
  /** From the head's coordinates to the world's: the head turns, and so does the body. */
  Vec3 turned(Vec3 p) const;
  /** The inverse of `turned`, by iteration. */
  Vec3 atRest(Vec3 p) const;
  /** @returns height of the lid's margin above the eye's centre; x from there, outwards positive */
  float lid(bool upper, float x) const;
  /** People differ little in it: A. C. Bron et al. 1997 give 11.7 mm for the whole iris. */
  float irisRadius() const { return .060f; }
  /** @returns where the lids meet, from the eye's centre, outwards positive */
  float innerCorner() const { return corners_[0]; }
  float outerCorner() const { return corners_[1]; }

  const Character& character() const { return c_; }
  const Landmarks& landmarks() const { return marks_; }
  const LipOutline& lips() const { return lips_; }
  /** Everything that is made of triangles, in the world's coordinates. */
  const Mesh& scene() const { return scene_; }
  /** Left of the picture, right of it. `eyes` in the world's, `eyesAtRest` in the head's. */
  const std::array<Eye, 2>& eyes() const { return eyes_; }
  const std::array<Eye, 2>& eyesAtRest() const { return eyesAtRest_; }

 private:
  static constexpr int kLids = 48;
  void read(const std::string& folder, Quads& skin);
  void moveMouth(Quads& skin);
  /** Makes `rest_` from a coarse mesh. */
  void setRest(const Quads& coarse);
  void closeLips(Quads& skin);
  void fitLids(Quads& skin);
  void findLandmarks(const Quads& skin);
  void findNostril();
  void findLids();
  void fillGrid();
  Vec3 gridPoint(int x, int y, int z) const;

  Character c_;
  Mesh rest_, scene_;
  std::array<Eye, 2> eyes_{}, eyesAtRest_{};
  Landmarks marks_{};
  LipOutline lips_;
  std::array<float, 2> corners_{};
  std::array<float, kLids> upper_{}, lower_{};
  std::vector<float> grid_;
  /** A box about the ear at the right. */
  Vec3 earLow_{9, 9, 9}, earHigh_{-9, -9, -9};
};

/** Gives a head its own proportions. Eyes and vertices are in the head's coordinates. */
void sculpt(const Sculpt& amounts, uint32_t seed, Quads& skin, std::array<Eye, 2>& eyes);
/** A friendly face: calm brows, raised cheeks. @param eye the centre of one */
void relax(const Expression& expression, Vec3 eye, Quads& skin);
/** Lowers the arms. @param shoulders half the width of the shoulders, decimetres */
void poseBody(float shoulders, Quads& skin);
/** Clothes over the body: quadrilaterals of the skin, moved outwards and smoothed. */
void addClothes(const Quads& skin, const Head& head, Mesh& out);
void addGlasses(const Head& head, Mesh& out);
