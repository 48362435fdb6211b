// One session's face: draws frame after frame into the same picture and tells which macroblocks
// changed.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/face_eyes.h"
#include "core/face_model.h"
#include "core/face_mouth_interior.h"
#include "core/face_mouth_shape.h"
#include "core/face_warp.h"

namespace mouthpiece::face {

/** Not thread-safe; the model may be shared by renderers of one thread or of several. */
class Renderer {
 public:
  explicit Renderer(const Model& model, const Warp& warp = choose_warp());

  /**
   * Draws into `picture` (I420 of the asset's size, the same every time) what differs visibly from
   * the frame before, and writes 1 into `dirty` (row by row of 16x16 macroblocks) where it drew,
   * else 0. What would move by less than is seen stays as it was drawn: places lie within a quarter
   * of a pixel (of a 512 picture) of where the input puts them.
   */
  void render(const Articulation& articulation, const Pose& pose, std::span<uint8_t> picture,
              std::span<uint8_t> dirty);
  /** Eases towards the mood over the next frames. */
  void set_emotion(int emotion, float strength);
  void invalidate() { valid_ = false; }

  size_t picture_bytes() const {
    return size_t(model_.asset.width) * size_t(model_.asset.height) * 3 / 2;
  }
  size_t macroblocks() const {
    return size_t(model_.asset.width / 16) * size_t(model_.asset.height / 16);
  }

 private:
  struct Box {
    int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    bool empty() const { return x0 >= x1 || y0 >= y1; }
  };  // multiples of 16
  /** Displacements of all nodes in 1/SUBPIXEL pixel. */
  struct Shifts {
    std::vector<int16_t> x, y;
    explicit Shifts(size_t nodes) : x(nodes + 8, 0), y(nodes + 8, 0) {}  // tiles read ahead
    void swap(Shifts& other) {
      x.swap(other.x);
      y.swap(other.y);
    }
  };
  /** The same as numbers, or places, of all nodes. */
  struct Places {
    std::vector<float> x, y;
    explicit Places(size_t nodes) : x(nodes, 0.f), y(nodes, 0.f) {}
  };

  /** Where to draw: planes and the luma plane's stride (chroma's is half). */
  struct Target {
    uint8_t* y;
    uint8_t* u;
    uint8_t* v;
    int stride;
    /** Moved by (x, y) luma pixels. */
    Target at(int x, int dy) const {
      return {y + dy * stride + x, u + dy / 2 * (stride / 2) + x / 2,
              v + dy / 2 * (stride / 2) + x / 2, stride};
    }
  };
  /** Of four pixels. */
  struct Seam {
    F4 x, y;           // places in the mouth's frame
    F4 top, bottom;    // the lips' inner edges there
    F4 side;           // 0 upper lip .. 1 lower lip
    F4 cover, crease;  // shares: of the opening, of the shadow between pressed lips
  };

  void apply_limits(const Articulation& articulation, const Pose& pose);
  void hold_small_head_motion();
  void displace_head();
  void displace_mouth();
  void hold_small_node_motion();
  void mark_changes(std::span<uint8_t> dirty) const;
  void mark(Box box, std::span<uint8_t> dirty) const;
  bool touched(Box box, std::span<const uint8_t> dirty) const;
  Box grid_box(float left, float top, float right, float bottom) const;
  Box mouth_box() const;
  Box eye_box(const EyeOverlay& overlay) const;
  Area moved(const Area& area) const;
  Nodes nodes_at(const Shifts& nodes, int x, int y) const;
  Target target(uint8_t* picture, int x, int y) const;
  void draw_box(const Shifts& nodes, Box box, const Target& out) const;
  void draw_blocks(std::span<const uint8_t> dirty, uint8_t* picture) const;
  void draw_mouth(Box box, uint8_t* picture);
  void draw_seam(Box box, uint8_t* picture);
  void draw_cell(size_t k, const Target& upper, const Target& lower, const Target& out) const;
  Seam seam_at(size_t k, F4 x, F4 y, float half) const;
  void draw_eye(const EyeOverlay& overlay, uint8_t* picture) const;

  const Model& model_;
  const Warp& warp_;
  bool valid_ = false;
  Mood mood_, goal_;
  Articulation articulation_{}, last_articulation_{};
  Pose pose_{}, last_pose_{};
  Mood last_mood_;
  Mouth mouth_;
  MouthInterior interior_;
  Places head_;                // of each node: how far the head's pose moves it
  Shifts head_nodes_;          // the same in units
  Shifts nodes_, last_nodes_;  // whole displacement, on the lip's side where the node lies
  Shifts upper_, lower_;       // the same by either lip's side; only round the mouth
  Places local_;  // of each node: its place in the resting mouth's frame, head's pose taken away;
                  // only round the mouth
  std::vector<uint8_t> seam_;  // of each node round the mouth: whether a lip's edge may run nearby
  Box mouth_drawn_, eyes_drawn_[2];
  std::vector<uint8_t> by_upper_, by_lower_;
};

}  // namespace mouthpiece::face
